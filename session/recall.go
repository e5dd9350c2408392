package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
)

// words is the session's search index in memory. It grows with the log.
type words struct {
	upto  furl.Seq
	index *recall.Index
}

func (w *words) follow(log *furl.Log) {
	if w.index == nil {
		w.index = new(recall.Index)
	}
	for _, r := range log.Records(w.upto) {
		if m, ok := r.Body.(*furl.Message); ok {
			for i := range m.Blocks {
				w.index.Add(furl.Pos{Msg: r.Seq, Block: i}, slices.Collect(m.Blocks[i].Texts())...)
			}
		}
		w.upto = r.Seq
	}
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
	// Limit is the most hits. If zero, 5.
	Limit int
	// Scope is where to look. If zero, what this path's view does not show.
	Scope Scope
	// Roles, Tools and Kinds, if not empty, are those that count. A tool is
	// that of a call, or of the call that a result answers.
	Roles []furl.Role
	Tools []string
	Kinds []furl.Kind
	// Since and Before limit when a message was recorded; zero: no limit.
	Since, Before time.Time
	// Excerpt is about how many characters of a hit to give. If zero, 240.
	Excerpt int
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
	Hidden  bool           `json:"hidden"`
	Score   float64        `json:"score"`
	Excerpt string         `json:"excerpt"`
	// Matched are the pieces of the query that were found.
	Matched []string `json:"matched,omitempty"`
}

// Search finds blocks by what stands in them, best first: by default among
// what the path's view does not show.
func (s *Session) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.words.follow(s.log)
	tools := s.tools()
	only := func(p furl.Pos) bool { return s.inScope(p, o.Scope) && s.wanted(p, &o, tools) }
	found := s.words.index.Search(query, recall.Options{Limit: o.Limit, Only: only})
	limit := o.Excerpt
	if limit <= 0 {
		limit = 240
	}
	hits := make([]Hit, 0, len(found))
	for _, h := range found {
		r := s.log.At(h.Pos.Msg)
		m := r.Body.(*furl.Message)
		b := &m.Blocks[h.Pos.Block]
		excerpt, _, _ := recall.Excerpt(textOf(b), query, limit)
		hits = append(hits, Hit{
			Session: s.key.Session, Handle: Handle(h.Pos), Pos: h.Pos, Role: m.Role, Kind: b.Kind.String(),
			Tool: toolOf(b, tools), Time: r.At, Hidden: s.hidden(h.Pos), Score: h.Score,
			Excerpt: excerpt, Matched: h.Matched,
		})
	}
	return hits, nil
}

// hidden reports whether the path's view does not show the block as recorded.
func (s *Session) hidden(p furl.Pos) bool {
	return s.log.State().ShownBy(p) != 0
}

func (s *Session) inScope(p furl.Pos, scope Scope) bool {
	_, onPath := s.log.State().Find(p.Msg)
	switch scope {
	case Path:
		return onPath
	case Everywhere:
		return true
	case OffPath:
		return !onPath
	case Visible:
		return onPath && !s.hidden(p)
	}
	return onPath && s.hidden(p)
}

func (s *Session) wanted(p furl.Pos, o *SearchOptions, tools map[string]string) bool {
	r := s.log.At(p.Msg)
	m := r.Body.(*furl.Message)
	b := &m.Blocks[p.Block]
	return (len(o.Roles) == 0 || slices.Contains(o.Roles, m.Role)) &&
		(len(o.Kinds) == 0 || slices.Contains(o.Kinds, b.Kind)) &&
		(len(o.Tools) == 0 || slices.Contains(o.Tools, toolOf(b, tools))) &&
		(o.Since.IsZero() || !r.At.Before(o.Since)) &&
		(o.Before.IsZero() || r.At.Before(o.Before))
}

// tools names the tool of each call by its id.
func (s *Session) tools() map[string]string {
	names := make(map[string]string)
	for _, r := range s.log.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			for i := range m.Blocks {
				if b := &m.Blocks[i]; b.Kind == furl.KindCall {
					names[b.ID] = b.Name
				}
			}
		}
	}
	return names
}

func toolOf(b *furl.Block, tools map[string]string) string {
	switch b.Kind {
	case furl.KindCall:
		return b.Name
	case furl.KindResult:
		return tools[b.ID]
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

// Original is a block as it was recorded.
type Original struct {
	Session furl.SessionID `json:"session"`
	Handle  string         `json:"handle"`
	Role    furl.Role      `json:"role"`
	Kind    string         `json:"kind"`
	Tool    string         `json:"tool,omitempty"`
	Time    time.Time      `json:"time,omitzero"`
	Hidden  bool           `json:"hidden"`
	// Text is the words of the block, or a call's arguments.
	Text string `json:"text"`
	// Raw is the block as it was on the wire, where it had bytes of its own
	// there, else the whole message.
	Raw []byte `json:"-"`
}

// Get gives the exact original of the block that a handle names, on whatever
// branch it is. One that there is not is an error wrapping furl.ErrNotOnPath.
func (s *Session) Get(handle string) (*Original, error) {
	p, err := ParseHandle(handle)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Msg > furl.Seq(s.log.Len()) {
		return nil, fmt.Errorf("%s in session %s: %w", handle, s.key.Session, furl.ErrNotOnPath)
	}
	r := s.log.At(p.Msg)
	m, ok := r.Body.(*furl.Message)
	if !ok || p.Block >= len(m.Blocks) {
		return nil, fmt.Errorf("%s in session %s: %w", handle, s.key.Session, furl.ErrNotOnPath)
	}
	b := &m.Blocks[p.Block]
	raw := []byte(m.Raw)
	if b.End > b.Start && b.End <= len(m.Raw) {
		raw = m.Raw[b.Start:b.End]
	}
	return &Original{
		Session: s.key.Session, Handle: Handle(p), Role: m.Role, Kind: b.Kind.String(),
		Tool: toolOf(b, s.tools()), Time: r.At, Hidden: s.hidden(p), Text: textOf(b), Raw: slices.Clone(raw),
	}, nil
}
