package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
)

// Spans gives what handles cover, to be restored, pinned or released: a block,
// or a whole message if they name none. A handle of another session, or of
// something that is not there, is an error wrapping furl.ErrNotOnPath.
func (s *Session) Spans(handles ...string) ([]furl.Span, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spans := make([]furl.Span, len(handles))
	for i, text := range handles {
		h, _, m, err := s.named(text)
		if err != nil {
			return nil, err
		}
		spans[i] = spanOf(h.Pos())
		if h.Block < 0 {
			spans[i].Last.Block = max(0, len(m.Blocks)-1)
		}
	}
	return spans, nil
}

// named finds what a handle names.
func (s *Session) named(text string) (recall.Handle, furl.Record, *furl.Message, error) {
	h, err := recall.ParseHandle(text)
	if err != nil {
		return h, furl.Record{}, nil, err
	}
	if (h.Session == "" || h.Session == s.key.Session) && h.Msg <= furl.Seq(s.log.Len()) {
		r := s.log.At(h.Msg)
		if m, ok := r.Body.(*furl.Message); ok && h.Block < len(m.Blocks) {
			return h, r, m, nil
		}
	}
	return h, furl.Record{}, nil, fmt.Errorf("%s in session %s: %w", h, s.key.Session, furl.ErrNotOnPath)
}

// Scope says where a search looks.
type Scope uint8

// The scopes.
const (
	Hidden     Scope = iota // on this path, and not shown as recorded
	Path                    // on this path, shown or not
	Everywhere              // in the whole session, other branches too
	OffPath                 // on other branches only
	Visible                 // on this path, and shown as recorded
)

// SearchOptions narrow a search.
type SearchOptions struct {
	// Limit is the most hits. If zero, 5. Offset leaves out the best ones,
	// those of the pages before.
	Limit, Offset int
	// Scope is where to look. If zero, what this path's view does not show. A
	// search of all sessions looks everywhere.
	Scope Scope
	// Roles, Tools and Kinds, if not empty, are those that count. A tool is
	// that of a call, or of the call that a result answers.
	Roles []furl.Role
	Tools []string
	Kinds []furl.Kind
	// Errors leaves all out but results that report a failure.
	Errors bool
	// Since and Before limit when a message was recorded; zero: no limit.
	Since, Before time.Time
	// Excerpt is about how many bytes of a hit to give. If zero, 240.
	Excerpt int

	// WithoutRecall leaves out what recall itself once answered.
	WithoutRecall bool
}

// Hit is something a search found.
type Hit struct {
	Session furl.SessionID `json:"session"`
	Handle  string         `json:"handle"`
	Pos     furl.Pos       `json:"-"`
	Role    furl.Role      `json:"role"`
	Kind    string         `json:"kind"`
	Tool    string         `json:"tool,omitempty"`
	Time    time.Time      `json:"time,omitzero"`
	Error   bool           `json:"error,omitempty"`
	// Hidden says that its session's path does not show it as recorded: it is
	// hidden, or on another branch.
	Hidden  bool    `json:"hidden"`
	Score   float64 `json:"score"`
	Excerpt string  `json:"excerpt"`
	// Matched are the pieces of the query that were found.
	Matched []string `json:"matched,omitempty"`
}

// MarshalJSON gives the tool and the time of every hit, "" and null where there
// is none, so that readers find the same keys in each.
func (h Hit) MarshalJSON() ([]byte, error) {
	type plain Hit
	out := struct {
		plain
		Tool string     `json:"tool"`
		Time *time.Time `json:"time"`
	}{plain: plain(h), Tool: h.Tool}
	if !h.Time.IsZero() {
		out.Time = &h.Time
	}
	return json.Marshal(out)
}

// Search finds blocks by what is in them, best first: by default among
// what the path's view does not show. It finds what was appended before, also
// by another process.
func (s *Session) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	err := s.refresh(ctx)
	if errors.Is(err, storage.ErrNoSession) {
		return nil, ctx.Err() // nothing was appended yet
	}
	if err != nil {
		return nil, err
	}
	req := o.request(s.key, query)
	if o.Scope != Everywhere {
		req.Only = func(_ furl.SessionID, p furl.Pos) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.inScope(p, o.Scope) && !(o.WithoutRecall && s.answers(p))
		}
	}
	if err := s.all.indexer.Catchup(ctx, s.key); err != nil {
		// The search reads what is not indexed itself.
		s.all.log.Warn("a session could not be indexed", "session", s.key.Session, "error", err)
	}
	found, err := s.all.searcher.Search(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("search session %s: %w", s.key.Session, err)
	}
	hits := make([]Hit, len(found.Hits))
	for i := range found.Hits {
		hits[i] = s.hit(&found.Hits[i], false)
	}
	return hits, nil
}

// Search finds blocks in all sessions. Their handles name the session too.
func (a *Sessions) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	found, err := a.searcher.Search(ctx, o.request(furl.SessionKey{Tenant: a.tenant}, query))
	if err != nil {
		return nil, fmt.Errorf("search all sessions: %w", err)
	}
	a.openAll(ctx, found.Hits)
	hits := make([]Hit, 0, len(found.Hits))
	for i := range found.Hits {
		s, err := a.Open(ctx, found.Hits[i].Session)
		if errors.Is(err, storage.ErrNoSession) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		hits = append(hits, s.hit(&found.Hits[i], true))
	}
	return hits, nil
}

// openAll opens the sessions of hits, some at once: each is read whole to say
// what of it is hidden. Whoever opens them after that waits for none, or meets
// the error.
func (a *Sessions) openAll(ctx context.Context, hits []recall.Hit) {
	ids := make(chan furl.SessionID, len(hits))
	seen := make(map[furl.SessionID]bool)
	for i := range hits {
		if id := hits[i].Session; !seen[id] {
			seen[id] = true
			ids <- id
		}
	}
	close(ids)
	var all sync.WaitGroup
	for range min(len(seen), 4) {
		all.Go(func() {
			for id := range ids {
				_, _ = a.Open(ctx, id)
			}
		})
	}
	all.Wait()
}

func (o *SearchOptions) request(key furl.SessionKey, query string) recall.Request {
	req := recall.Request{
		Tenant: key.Tenant, Session: key.Session, Text: query, Limit: o.Limit, Offset: o.Offset,
		Roles: o.Roles, Kinds: o.Kinds, Tools: o.Tools, Since: o.Since, Before: o.Before, Errors: o.Errors,
		Excerpt: o.Excerpt,
	}
	if req.Excerpt == 0 {
		req.Excerpt = 240
	}
	return req
}

func (s *Session) hit(f *recall.Hit, all bool) Hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Hit{
		Session: f.Session, Handle: f.Handle(all).String(), Pos: f.Pos, Role: f.Role, Kind: f.Kind.String(),
		Tool: f.Tool, Time: f.At, Error: f.Error, Hidden: !s.inScope(f.Pos, Visible), Score: f.Score,
		Excerpt: f.Excerpt, Matched: f.Matched,
	}
}

func (s *Session) inScope(p furl.Pos, scope Scope) bool {
	st := s.log.State()
	_, onPath := st.Find(p.Msg)
	switch scope {
	case Path:
		return onPath
	case Everywhere:
		return true
	case OffPath:
		return !onPath
	case Visible:
		return onPath && st.ShownBy(p) == 0
	}
	return onPath && st.ShownBy(p) != 0
}

// answers reports whether a block is furl's own.
func (s *Session) answers(p furl.Pos) bool {
	m, ok := s.log.At(p.Msg).Body.(*furl.Message)
	return ok && p.Block < len(m.Blocks) && m.Blocks[p.Block].Own
}

// Original is what a handle names, as it was recorded.
type Original struct {
	Session furl.SessionID `json:"session"`
	Handle  string         `json:"handle"`
	Role    furl.Role      `json:"role"`
	Kind    string         `json:"kind"` // "message" of a whole one
	Tool    string         `json:"tool,omitempty"`
	Time    time.Time      `json:"time,omitzero"`
	Error   bool           `json:"error,omitempty"`
	// Hidden says that the path does not show it as recorded.
	Hidden bool `json:"hidden"`
	// Text is the words of the block, or a call's arguments; of a whole
	// message those of all blocks, an empty line between them. A piece of it
	// is what recall.Range cuts out.
	Text string `json:"text"`
	// Raw is the block as it was on the wire, where it had bytes of its own
	// there, else the whole message.
	Raw []byte `json:"-"`
}

// Get gives the exact original of what a handle names, on whatever branch it
// is. Something that is not there is an error wrapping furl.ErrNotOnPath.
func (s *Session) Get(handle string) (*Original, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, r, m, err := s.named(handle)
	if err != nil {
		return nil, err
	}
	out := &Original{Session: s.key.Session, Handle: h.String(), Role: m.Role, Kind: "message", Time: r.At, Raw: m.Raw}
	if h.Block < 0 {
		texts := make([]string, len(m.Blocks))
		for i := range m.Blocks {
			texts[i] = textOf(&m.Blocks[i])
			out.Hidden = out.Hidden || !s.inScope(furl.Pos{Msg: h.Msg, Block: i}, Visible)
		}
		out.Text = strings.Join(texts, "\n\n")
	} else {
		b := &m.Blocks[h.Block]
		out.Kind, out.Text, out.Tool, out.Error = b.Kind.String(), textOf(b), s.toolOf(r, b), b.Error
		out.Hidden = !s.inScope(h.Pos(), Visible)
		if b.End > b.Start && b.End <= len(m.Raw) {
			out.Raw = m.Raw[b.Start:b.End]
		}
	}
	out.Raw = slices.Clone(out.Raw)
	return out, nil
}

// toolOf names the tool of a call, or of the call that a result in record r
// answers.
func (s *Session) toolOf(r furl.Record, b *furl.Block) string {
	switch b.Kind {
	case furl.KindCall:
		return b.Name
	case furl.KindResult:
		for at := r.Parent; at != 0; at = s.log.At(at).Parent {
			m, ok := s.log.At(at).Body.(*furl.Message)
			for i := 0; ok && i < len(m.Blocks); i++ {
				if c := &m.Blocks[i]; c.Kind == furl.KindCall && c.ID == b.ID {
					return c.Name
				}
			}
		}
	}
	return ""
}

// textOf is what can be read in a block: its words, or a call's arguments as
// they are.
func textOf(b *furl.Block) string {
	if b.Kind == furl.KindCall {
		return string(b.Args)
	}
	return b.Text
}
