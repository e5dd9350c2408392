package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

func init() {
	transact.OfSessions = func(all any) any { return allSessions{all.(*Sessions)} }
	transact.OfSession = func(s any) any { return oneSession{s.(*Session)} }
}

var (
	_ transact.Sessions[*Session] = allSessions{}
	_ transact.Session[*Fit]      = oneSession{}
	_ transact.Tx[*Fit]           = &tx{}
	_ transact.Draft              = &draft{}
)

type (
	txFunc      = func(transact.Tx[*Fit]) error
	preparation = transact.Preparation[*Fit]
)

// allSessions implements transact.Sessions.
type allSessions struct{ *Sessions }

// FindByHead implements transact.Sessions.
func (a allSessions) FindByHead(chain furl.Digest) *Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.heads[headKey{a.tenant, chain}]
	if c == nil {
		return nil
	}
	a.clock++
	c.used, c.at = a.clock, time.Now()
	return c.s
}

// OpenCached implements transact.Sessions.
func (a allSessions) OpenCached(ctx context.Context, id furl.SessionID) (*Session, error) {
	a.mu.Lock()
	c := a.open[furl.SessionKey{Tenant: a.tenant, Session: id}]
	if c != nil {
		a.clock++
		c.used, c.at = a.clock, time.Now()
	}
	a.mu.Unlock()
	if c == nil || !c.s.recentlyRead() {
		return a.Open(ctx, id)
	}
	return c.s, nil
}

// InMemory implements transact.Sessions.
func (a allSessions) InMemory() []*Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*Session
	for k, c := range a.open {
		if k.Tenant == a.tenant {
			list = append(list, c.s)
		}
	}
	slices.SortFunc(list, func(x, y *Session) int { return strings.Compare(string(x.key.Session), string(y.key.Session)) })
	return list
}

// Forget implements transact.Sessions.
func (a allSessions) Forget(s *Session) {
	s.mu.Lock()
	empty := s.holders.Load() == 0 && s.log.Len() == 0 && !s.stale
	s.mu.Unlock()
	if empty {
		a.forget(s)
	}
}

// Match implements transact.Sessions.
func (a allSessions) Match(ctx context.Context, chains []furl.Digest, limit int) ([]storage.Matched, error) {
	found, err := a.store.Match(ctx, a.tenant, chains, limit)
	if err != nil {
		a.storeError(ctx, err)
	}
	return found, err
}

// MetaOf implements transact.Sessions.
func (a allSessions) MetaOf(ctx context.Context, id furl.SessionID) (storage.Meta, error) {
	key := furl.SessionKey{Tenant: a.tenant, Session: id}
	a.mu.Lock()
	c := a.open[key]
	a.mu.Unlock()
	if c != nil {
		return c.s.Meta(), nil
	}
	info, _, err := a.storedInfo(ctx, key)
	if err != nil {
		return storage.Meta{}, fmt.Errorf("read session %s: %w", id, err)
	}
	return info.Meta, nil
}

// OthersHaveEnded implements transact.Sessions.
func (a allSessions) OthersHaveEnded(at time.Time) bool {
	e, ok := a.store.(storage.Exclusive)
	return ok && at.Before(e.AloneAt())
}

// Memo implements transact.Sessions.
func (a allSessions) Memo(key any, create func() transact.Memo) transact.Memo {
	v, ok := a.memo.Load(key)
	if !ok {
		v, _ = a.memo.LoadOrStore(key, create())
	}
	return v.(transact.Memo)
}

// oneSession implements transact.Session.
type oneSession struct{ *Session }

// Acquire implements transact.Session.
func (s oneSession) Acquire() (release func()) { return s.acquire() }

// acquire keeps the session in memory until release is called.
func (s *Session) acquire() (release func()) {
	s.holders.Add(1)
	return func() { s.holders.Add(-1) }
}

// InUse implements transact.Session.
func (s oneSession) InUse() bool { return s.holders.Load() > 0 }

// ReadSince implements transact.Session.
func (s oneSession) ReadSince(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.stale && s.lastRead.After(t)
}

// Read implements transact.Session.
func (s oneSession) Read(f txFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(&tx{s.Session})
}

// Try implements transact.Session.
func (s oneSession) Try(f txFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.draft(func() error { return f(&tx{s.Session}) })
	return err
}

// Update implements transact.Session.
func (s oneSession) Update(ctx context.Context, f txFunc) error {
	return s.update(ctx, committed, func() error { return f(&tx{s.Session}) })
}

// Prepare implements transact.Session.
func (s oneSession) Prepare(ctx context.Context, p preparation) (transact.Draft, error) {
	d, err := s.prepareRequest(ctx, p)
	if err != nil {
		return nil, err // not a nil *draft
	}
	return d, nil
}

// tx implements transact.Tx.
type tx struct{ s *Session }

// Log implements transact.Tx.
func (t *tx) Log() *furl.Log { return t.s.log }

// Meta implements transact.Tx.
func (t *tx) Meta() storage.Meta {
	if t.s.newMeta != nil {
		return *t.s.newMeta
	}
	return t.s.meta
}

// SetMeta implements transact.Tx.
func (t *tx) SetMeta(m storage.Meta) { t.s.newMeta = &m }

// Append implements transact.Tx.
func (t *tx) Append(by furl.Actor, body furl.Body) (furl.Record, error) {
	return t.s.appendRecord(by, body)
}

// AppendMessage implements transact.Tx.
func (t *tx) AppendMessage(m *furl.Message, c furl.Counter) (furl.Record, error) {
	return t.s.appendMessage(m, c)
}

// AppendRedacted implements transact.Tx.
func (t *tx) AppendRedacted(m, form *furl.Message) (furl.Record, error) {
	by := furl.Client
	if m.Role == furl.RoleAssistant {
		by = furl.Upstream
	}
	return t.s.appendRedacted(by, m, form)
}

// Rewind implements transact.Tx.
func (t *tx) Rewind(to furl.Seq, by furl.Actor) (furl.Record, error) {
	return t.s.log.Rewind(to, t.s.now(), by)
}

// Observe implements transact.Tx.
func (t *tx) Observe(ctx context.Context, sent *Fit, reply *protocol.Reply) (fresh bool, err error) {
	return t.s.observe(ctx, sent, reply)
}

// Await implements transact.Tx.
func (t *tx) Await(sent *Fit) error { return t.s.await(sent) }

// Awaited implements transact.Tx.
func (t *tx) Awaited() *Fit { return t.s.awaited() }

// ObserveAwaited implements transact.Tx.
func (t *tx) ObserveAwaited(ctx context.Context, sent *Fit, reply *protocol.Reply) error {
	return t.s.observeAwaited(ctx, sent, reply)
}

// Measure implements transact.Tx.
func (t *tx) Measure(red *furl.Reduction) {
	s := t.s
	if s.meta.Model == "" {
		return
	}
	b, before, _ := s.budgetFor(transact.Prompt{Model: s.meta.Model})
	if st, err := s.log.State().With(red); err == nil {
		red.Before, red.After, red.Scale = b.Size, b.After(before, st.View(b.Model)).Size, b.Scale
	}
}

// Model implements transact.Tx.
func (t *tx) Model(name string) furl.Model { return t.s.model(name) }

// Counter implements transact.Tx.
func (t *tx) Counter(model string) furl.Counter {
	m := t.s.all.Model(model, t.s.format())
	return t.s.all.counter(&m)
}

// Memo implements transact.Tx.
func (t *tx) Memo(key any, create func() any) any {
	if v, ok := t.s.memo[key]; ok {
		return v
	}
	if t.s.memo == nil {
		t.s.memo = make(map[any]any)
	}
	v := create()
	t.s.memo[key] = v
	return v
}
