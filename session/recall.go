package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
)

// Spans returns the spans of handles, for Restore and Hold. A handle without
// a block covers the whole message. If a handle is unknown or of another session,
// the error wraps furl.ErrNotOnPath.
func (s *Session) Spans(handles ...string) (spans []furl.Span, err error) {
	s.Internal().Read(func(c *open.Change) { spans, err = spansOf(c, handles) })
	return spans, err
}

// spansOf returns the spans of handles.
func spansOf(c *open.Change, handles []string) ([]furl.Span, error) {
	spans := make([]furl.Span, len(handles))
	for i, h := range handles {
		var err error
		if spans[i], err = spanOfHandle(c, h); err != nil {
			return nil, err
		}
	}
	return spans, nil
}

// spanOfHandle returns the span of a handle.
func spanOfHandle(c *open.Change, handle string) (furl.Span, error) {
	h, _, m, err := resolve(c, handle)
	if err != nil {
		return furl.Span{}, err
	}
	span := spanOf(h.Pos())
	if h.Block < 0 {
		span.Last.Block = max(0, len(m.Blocks)-1)
	}
	return span, nil
}

// resolve returns the message of a handle and its record.
func resolve(c *open.Change, text string) (recall.Handle, furl.Record, *furl.Message, error) {
	h, err := recall.ParseHandle(text)
	if err != nil {
		return h, furl.Record{}, nil, err
	}
	if (h.Session == "" || h.Session == c.Key().Session) && h.Msg <= furl.Seq(c.Log().Len()) {
		r := c.Log().At(h.Msg)
		if m, ok := r.Body.(*furl.Message); ok && h.Block < len(m.Blocks) {
			return h, r, m, nil
		}
	}
	return h, furl.Record{}, nil, fmt.Errorf("%s in session %s: %w", h, c.Key().Session, furl.ErrNotOnPath)
}

// Scope is the part of a session that a search covers.
type Scope uint8

// The scopes.
const (
	defaultScope Scope = iota // Hidden in a search of one session, Everywhere in one of all sessions
	Hidden                    // blocks on the path that are not shown as recorded
	Path                      // all blocks on the path
	Everywhere                // all blocks of the session, on all branches
	OffPath                   // blocks on other branches
	Visible                   // blocks on the path that are shown as recorded
)

// SearchOptions narrow a search.
type SearchOptions struct {
	// Limit is the largest number of hits. If zero, defaults to 5. Offset is the
	// number of hits to skip, for paging.
	Limit, Offset int
	// Scope is the part of each session to search. If zero, defaults to Hidden in a
	// search of one session, and to Everywhere in a search of all sessions. A search of
	// all sessions with another scope opens each session that has matches.
	Scope Scope
	// Roles, Tools and Kinds, if not empty, restrict the search to blocks of
	// these. The tool of a result is that of its call.
	Roles []furl.Role
	Tools []string
	Kinds []furl.Kind
	// Errors restricts the search to results that report an error.
	Errors bool
	// Since and Before restrict the search by the time of recording; zero means no
	// limit.
	Since, Before time.Time
	// Excerpt is the approximate length of an excerpt in bytes. If zero, defaults
	// to 240.
	Excerpt int

	// Context is the approximate length in bytes of the messages before and after a hit
	// that are returned with it. If zero, they are not.
	Context int

	// WithoutRecall excludes calls and results of recall tools.
	WithoutRecall bool
}

// Hit is a search result.
type Hit struct {
	Session furl.SessionID `json:"session"`
	Handle  string         `json:"handle"`
	Pos     furl.Pos       `json:"-"`
	// Whole reports whether the block is all of its message, so that the message's
	// handle names it too.
	Whole bool      `json:"-"`
	Role  furl.Role `json:"role"`
	Kind  string    `json:"kind"`
	Tool  string    `json:"tool,omitempty"`
	Time  time.Time `json:"time,omitzero"`
	Error bool      `json:"error,omitempty"`
	// Hidden reports whether the session's path does not show it as recorded: it
	// is hidden or on another branch. OffPath is set if it is on another branch.
	Hidden  bool    `json:"hidden"`
	OffPath bool    `json:"off_path"`
	Score   float64 `json:"score"`
	Excerpt string  `json:"excerpt"`
	// Matched are the parts of the query that match.
	Matched []string `json:"matched,omitempty"`
	// Query is set if nothing matched the query: the query with letters swapped, which
	// was searched for instead.
	Query string `json:"query,omitempty"`
	// Before and After are the messages before and after the hit's, if Context was set.
	Before *Neighbor `json:"before,omitempty"`
	After  *Neighbor `json:"after,omitempty"`
}

// Neighbor is a message before or after a hit.
type Neighbor struct {
	Handle string    `json:"handle"`
	Role   furl.Role `json:"role"`
	// Text is the beginning of the text of the message.
	Text string `json:"text"`
}

// MarshalJSON includes the tool and the time of every hit, "" or null if it has
// none, so that all hits have the same keys.
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

// Search returns the blocks that match a query, best first; by default only hidden
// blocks of the path. It covers everything appended before, also by other
// processes.
func (s *Session) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	err := s.Internal().Refresh(ctx)
	if errors.Is(err, storage.ErrNoSession) {
		return nil, ctx.Err() // nothing was appended yet
	}
	if err != nil {
		return nil, err
	}
	key, core := s.Internal().Key(), s.Internal().All().Options()
	req := o.request(key, query)
	if o.Scope == defaultScope {
		o.Scope = Hidden
	}
	if o.Scope != Everywhere || o.WithoutRecall {
		req.Only = func(_ furl.SessionID, p furl.Pos) bool { return s.selects(p, o.Scope, o.WithoutRecall) }
	}
	if err := core.Indexer.Catchup(ctx, key); err != nil {
		// The search reads records that are not indexed.
		core.Logger.Warn("could not index session", "session", key.Session, "error", err)
	}
	found, err := core.Searcher.Search(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("search session %s: %w", key.Session, err)
	}
	hits := make([]Hit, len(found.Hits))
	for i := range found.Hits {
		hits[i] = s.newHit(&found.Hits[i], false, o.Context)
		hits[i].Query = found.Query
	}
	return hits, nil
}

// Search returns the blocks in all sessions that match a query; by default those of
// all branches, hidden or not. Their handles include the session.
func (a *Sessions) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	req := o.request(furl.SessionKey{Tenant: a.Tenant()}, query)
	f := scopeFilter{ctx: ctx, all: a, scope: o.Scope, withoutRecall: o.WithoutRecall}
	if o.Scope != defaultScope && o.Scope != Everywhere || o.WithoutRecall {
		req.Only = f.selects
	}
	found, err := a.open.Options().Searcher.Search(ctx, req)
	if err = cmp.Or(f.err, err); err != nil {
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
		hit := s.newHit(&found.Hits[i], true, o.Context)
		hit.Query = found.Query
		hits = append(hits, hit)
	}
	return hits, nil
}

// scopeFilter selects the blocks of a scope in a search of all sessions. The search
// asks for the blocks of one session after the other, so the filter holds only one.
type scopeFilter struct {
	ctx           context.Context
	all           *Sessions
	scope         Scope
	withoutRecall bool
	id            furl.SessionID
	session       *Session // with this id; nil: it was deleted meanwhile
	err           error    // the first error of opening a session
}

func (f *scopeFilter) selects(id furl.SessionID, p furl.Pos) bool {
	if f.err != nil {
		return false
	}
	if id != f.id {
		s, err := f.all.Open(f.ctx, id)
		if err != nil && !errors.Is(err, storage.ErrNoSession) {
			f.err = err
			return false
		}
		f.id, f.session = id, s
	}
	return f.session != nil && f.session.selects(p, f.scope, f.withoutRecall)
}

// selects reports whether a block is in a scope, and not of a recall tool if those are
// excluded.
func (s *Session) selects(p furl.Pos, scope Scope, withoutRecall bool) (ok bool) {
	s.Internal().Read(func(c *open.Change) {
		// It may be appended by another process after the session was opened.
		ok = p.Msg <= furl.Seq(c.Log().Len()) && inScope(c.Log(), p, scope) && !(withoutRecall && isOwn(c.Log(), p))
	})
	return ok
}

// openAll opens the sessions of hits concurrently: each must be read to know what it
// hides. Errors are ignored, because the caller opens the sessions again.
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

func (s *Session) newHit(f *recall.Hit, all bool, context int) (hit Hit) {
	s.Internal().Read(func(c *open.Change) { hit = hitIn(c.Log(), f, all, context) })
	return hit
}

func hitIn(log *furl.Log, f *recall.Hit, all bool, context int) Hit {
	_, onPath := log.State().Find(f.Pos.Msg)
	whole := false
	if f.Pos.Msg >= 1 && f.Pos.Msg <= furl.Seq(log.Len()) {
		m, ok := log.At(f.Pos.Msg).Body.(*furl.Message)
		whole = ok && len(m.Blocks) == 1
	}
	hit := Hit{
		Whole:   whole,
		OffPath: !onPath, Session: f.Session, Handle: f.Handle(all).String(), Pos: f.Pos, Role: f.Role, Kind: f.Kind.String(),
		Tool: f.Tool, Time: f.At, Error: f.Error, Hidden: !inScope(log, f.Pos, Visible), Score: f.Score,
		Excerpt: f.Excerpt, Matched: f.Matched,
	}
	if context > 0 && f.Pos.Msg <= furl.Seq(log.Len()) {
		text := f.Kind == furl.KindText
		hit.Before = neighbor(log, before(log, f.Pos.Msg), f.Session, text, all, context)
		hit.After = neighbor(log, after(log, f.Pos.Msg, onPath), f.Session, text, all, context)
	}
	return hit
}

// before returns the message before a message on its branch; 0: none.
func before(log *furl.Log, msg furl.Seq) furl.Seq {
	for at := log.At(msg).Parent; at != 0; at = log.At(at).Parent {
		if _, ok := log.At(at).Body.(*furl.Message); ok {
			return at
		}
	}
	return 0
}

// maxAfter is how many records after a message are searched for the message that
// follows it. Usually it is within a few records.
const maxAfter = 1000

// after returns the message that follows a message, on the path if that is there; 0:
// none.
func after(log *furl.Log, msg furl.Seq, onPath bool) furl.Seq {
	st := log.State()
	for at := msg + 1; at <= min(msg+maxAfter, furl.Seq(log.Len())); at++ {
		if _, ok := log.At(at).Body.(*furl.Message); !ok || before(log, at) != msg {
			continue
		}
		if _, on := st.Find(at); on || !onPath {
			return at
		}
	}
	return 0
}

// neighbor returns a message beside a hit. Beside a text it is nil if the message has
// no text.
func neighbor(log *furl.Log, msg furl.Seq, id furl.SessionID, text, all bool, length int) *Neighbor {
	if msg == 0 {
		return nil
	}
	m := log.At(msg).Body.(*furl.Message)
	for i := range m.Blocks {
		b := &m.Blocks[i]
		t := strings.TrimSpace(textOf(b))
		if t == "" || b.Own || text && b.Kind != furl.KindText {
			continue
		}
		h := recall.HandleOf(furl.Pos{Msg: msg, Block: i})
		if all {
			h.Session = id
		}
		return &Neighbor{Handle: h.String(), Role: m.Role, Text: beginning(t, length)}
	}
	return nil
}

// beginning returns the first bytes of a text, cut between words if possible.
func beginning(text string, length int) string {
	if len(text) <= length {
		return text
	}
	cut := text[:length]
	if i := strings.LastIndexAny(cut, " \n"); i > length/2 {
		cut = cut[:i]
	}
	return strings.ToValidUTF8(cut, "") + "…"
}

// inScope reports whether a block is in a scope.
func inScope(log *furl.Log, p furl.Pos, scope Scope) bool {
	st := log.State()
	_, onPath := st.Find(p.Msg)
	switch scope {
	case Path:
		return onPath
	case Everywhere, defaultScope:
		return true
	case OffPath:
		return !onPath
	case Visible:
		return onPath && st.ShownBy(p) == 0
	}
	return onPath && st.ShownBy(p) != 0
}

// isOwn reports whether a block has Own set.
func isOwn(log *furl.Log, p furl.Pos) bool {
	m, ok := log.At(p.Msg).Body.(*furl.Message)
	return ok && p.Block < len(m.Blocks) && m.Blocks[p.Block].Own
}

// Original is a block or message as it was recorded.
type Original struct {
	Session furl.SessionID `json:"session"`
	Handle  string         `json:"handle"`
	Role    furl.Role      `json:"role"`
	Kind    string         `json:"kind"` // "message" of a whole one
	Tool    string         `json:"tool,omitempty"`
	Time    time.Time      `json:"time,omitzero"`
	Error   bool           `json:"error,omitempty"`
	// Hidden reports whether the path does not show it as recorded.
	Hidden bool `json:"hidden"`
	// Text is the text of the block or the arguments of a call. For a message it
	// is the text of all blocks, separated by empty lines. recall.Range cuts out
	// a part of it.
	Text string `json:"text"`
	// Raw are the bytes of the block in its wire format if it had its own, else
	// those of the message.
	Raw []byte `json:"-"`
}

// Get returns the original of a handle, on any branch. If the handle is unknown, the
// error wraps furl.ErrNotOnPath.
func (s *Session) Get(handle string) (out *Original, err error) {
	s.Internal().Read(func(c *open.Change) { out, err = originalOf(c, handle) })
	return out, err
}

func originalOf(c *open.Change, handle string) (*Original, error) {
	log := c.Log()
	h, r, m, err := resolve(c, handle)
	if err != nil {
		return nil, err
	}
	out := &Original{Session: c.Key().Session, Handle: h.String(), Role: m.Role, Kind: "message", Time: r.At, Raw: m.Raw}
	if h.Block < 0 {
		texts := make([]string, len(m.Blocks))
		for i := range m.Blocks {
			texts[i] = textOf(&m.Blocks[i])
			out.Hidden = out.Hidden || !inScope(log, furl.Pos{Msg: h.Msg, Block: i}, Visible)
		}
		out.Text = strings.Join(texts, "\n\n")
	} else {
		b := &m.Blocks[h.Block]
		out.Kind, out.Text, out.Tool, out.Error = b.Kind.String(), textOf(b), toolOf(log, r, b), b.Error
		out.Hidden = !inScope(log, h.Pos(), Visible)
		if b.End > b.Start && b.End <= len(m.Raw) {
			out.Raw = m.Raw[b.Start:b.End]
		}
	}
	out.Raw = slices.Clone(out.Raw)
	return out, nil
}

// toolOf returns the tool of a call, or of the call that a result in record r
// belongs to.
func toolOf(log *furl.Log, r furl.Record, b *furl.Block) string {
	switch b.Kind {
	case furl.KindCall:
		return b.Name
	case furl.KindResult:
		for at := r.Parent; at != 0; at = log.At(at).Parent {
			m, ok := log.At(at).Body.(*furl.Message)
			for i := 0; ok && i < len(m.Blocks); i++ {
				if c := &m.Blocks[i]; c.Kind == furl.KindCall && c.ID == b.ID {
					return c.Name
				}
			}
		}
	}
	return ""
}

// textOf returns the text of a block, or the arguments of a call.
func textOf(b *furl.Block) string {
	if b.Kind == furl.KindCall {
		return string(b.Args)
	}
	return b.Text
}
