package recall

import (
	"errors"
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// Request is a search in a store.
type Request struct {
	Tenant furl.Tenant
	// Session is the session to search; if empty, all sessions of the tenant.
	Session furl.SessionID
	// Text is the query: words and names in any order. There are no operators.
	Text string
	// Limit is the maximum number of hits, up to 1,000. If zero, 5.
	Limit int
	// Offset is the number of hits to skip, up to 10,000: those of the pages
	// before.
	Offset int

	// Roles, Kinds and Tools select blocks with one of these values; nil selects
	// all. A call and its result have the tool of the call.
	Roles []furl.Role
	Kinds []furl.Kind
	Tools []string
	// SkipTool, if set, excludes calls and results of the tools for which it returns
	// true.
	SkipTool func(tool string) bool
	// Since (inclusive) and Before (exclusive) limit the time at which a message
	// was appended, in milliseconds. Zero is not a limit.
	Since, Before time.Time
	// Errors selects results that report an error.
	Errors bool
	// Only, if set, selects blocks, such as those that a view does not show. It
	// is not called concurrently.
	Only func(furl.SessionID, furl.Pos) bool

	// Excerpt is the maximum length of excerpts in bytes. If zero, 300; if
	// negative, there are no excerpts.
	Excerpt int
	// Lexical turns vectors off.
	Lexical bool
}

const (
	defaultLimit   = 5
	maxLimit       = 1000
	maxOffset      = 10_000
	defaultExcerpt = 300
)

// Result is the result of a search.
type Result struct {
	Hits []Hit // the best first
	// More says that there are more hits than Offset and Limit return.
	More bool
	// Query is set if nothing matched the text of the request: the text with two
	// letters of a word swapped, which was searched for instead.
	Query string
	// Warnings say what the search had to do without, such as vectors whose
	// endpoint does not respond.
	Warnings []furl.Warning
}

// Codes of warnings.
const (
	WarnIndex   = "index_damaged" // pages of the search index were damaged
	WarnVectors = "no_vectors"    // the search did not use vectors
)

// Hit is a block that matches a search.
type Hit struct {
	Session furl.SessionID
	Pos     furl.Pos
	Role    furl.Role
	Kind    furl.Kind
	Tool    string // of a call or result, if known
	At      time.Time
	Error   bool
	// Score orders the hits of one search. Scores of different searches cannot
	// be compared.
	Score float64
	// Exact is the number of names of the query that the block has.
	Exact int
	// Matched are the pieces of the query that the block has; none if it was
	// found by its vector or by the question that it answers alone.
	Matched []string
	// Similar is the cosine similarity to the query, from -1 to 1; 0 if the block
	// was found by its words alone.
	Similar float64
	// Excerpt is the piece of the block's text that matches best.
	Excerpt string
}

// Handle returns the handle of the block, with its session if session is true.
func (h *Hit) Handle(session bool) Handle {
	handle := HandleOf(h.Pos)
	if session {
		handle.Session = h.Session
	}
	return handle
}

// ErrNotFound is returned for a message, block or line that does not exist.
var ErrNotFound = errors.New("not found")

// hasFilter reports whether the request selects blocks by more than their text.
func (r *Request) hasFilter() bool {
	return r.Roles != nil || r.Kinds != nil || r.Tools != nil || r.SkipTool != nil || r.Errors || r.Only != nil || !r.Since.IsZero() || !r.Before.IsZero()
}

// selects reports whether a document passes the filters of the request.
func (r *Request) selects(session furl.SessionID, d *document) bool {
	switch {
	case r.Roles != nil && !slices.Contains(r.Roles, d.role),
		r.Kinds != nil && !slices.Contains(r.Kinds, d.kind),
		r.Tools != nil && !slices.Contains(r.Tools, d.tool),
		r.SkipTool != nil && d.tool != "" && r.SkipTool(d.tool),
		r.Errors && !d.error,
		!r.Since.IsZero() && d.at < millis(r.Since),
		!r.Before.IsZero() && d.at >= millis(r.Before):
		return false
	}
	return r.Only == nil || r.Only(session, d.pos)
}
