package recall

import (
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// Request is a search over a store.
type Request struct {
	Tenant furl.Tenant
	// Session is where to search; "" in all sessions of the tenant.
	Session furl.SessionID
	// Text is what is searched for, see Parse.
	Text string
	// Limit is the most hits to return. If zero, 5; at most 1,000.
	Limit int
	// Offset is how many of the best hits to leave out: those of the pages
	// before. At most 10,000.
	Offset int

	// Roles, Kinds and Tools narrow the search to blocks of one of these; nil:
	// any. A call and the result that answers it have the call's tool.
	Roles []furl.Role
	Kinds []furl.Kind
	Tools []string
	// Since and Before limit when a message was appended, to the
	// millisecond, the first inclusive and the second exclusive; zero: no
	// limit.
	Since, Before time.Time
	// Errors narrows the search to results that report a failure.
	Errors bool
	// Only, if set, says which blocks may be found, such as those that a
	// view does not show. It is asked about one block at a time.
	Only func(furl.SessionID, furl.Pos) bool

	// Excerpt is the length of the excerpts in bytes. If zero, 300; if
	// negative, there are none.
	Excerpt int
	// Lexical leaves vectors out where there are any.
	Lexical bool
}

const (
	maxLimit       = 1000
	maxOffset      = 10_000
	defaultExcerpt = 300
)

// Result is what a search found.
type Result struct {
	Hits []Found // the best first
	// More says that there are hits behind these.
	More bool
	// Warnings say what was left out, such as vectors whose endpoint does
	// not answer.
	Warnings []furl.Warning
}

// Codes of warnings.
const (
	WarnIndex   = "index_damaged" // a damaged search index was read past
	WarnVectors = "no_vectors"    // the search did without vectors
)

// Found is a block that was found.
type Found struct {
	Session furl.SessionID
	Pos     furl.Pos
	Role    furl.Role
	Kind    furl.Kind
	Tool    string // of a call or result, where it is known
	At      time.Time
	Error   bool
	// Score orders the hits of one search; it means nothing beside that of
	// another.
	Score float64
	// Exact counts the names of the query that stand in the block as they
	// are.
	Exact int
	// Matched are the pieces of the query that were found in the block;
	// none if it was found by its meaning alone.
	Matched []string
	// Similar is the likeness of the meanings, from -1 to 1; 0 if the block
	// was found by its words alone.
	Similar float64
	// Excerpt is the piece of the block's texts that shows best why it fits.
	Excerpt string
}

// Handle names the block, with its session if all was true.
func (f *Found) Handle(all bool) Handle {
	h := HandleOf(f.Pos)
	if all {
		h.Session = f.Session
	}
	return h
}

// filtered reports whether the request asks more of a block than its words.
func (r *Request) filtered() bool {
	return r.Roles != nil || r.Kinds != nil || r.Tools != nil || r.Errors || r.Only != nil || !r.Since.IsZero() || !r.Before.IsZero()
}

// wants reports whether the request is for such blocks.
func (r *Request) wants(session furl.SessionID, d *document) bool {
	switch {
	case r.Roles != nil && !slices.Contains(r.Roles, d.role),
		r.Kinds != nil && !slices.Contains(r.Kinds, d.kind),
		r.Tools != nil && !slices.Contains(r.Tools, d.tool),
		r.Errors && !d.error,
		!r.Since.IsZero() && d.at < millis(r.Since),
		!r.Before.IsZero() && d.at >= millis(r.Before):
		return false
	}
	return r.Only == nil || r.Only(session, d.pos)
}
