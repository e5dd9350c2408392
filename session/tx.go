package session

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// Tx is a locked session. Its results are read-only and valid until the function
// that received the Tx returns; records stay valid.
type Tx struct{ s *Session }

// Read calls f with the session locked. f must not change it.
func (s *Session) Read(f func(tx *Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(&Tx{s})
}

// Update calls f, and commits what f has appended and set, or nothing if f returns an
// error. When Update returns, the changes are on disk. f is called again if another
// process has appended meanwhile.
func (s *Session) Update(ctx context.Context, f func(tx *Tx) error) error {
	return s.update(ctx, onDisk, func() error { return f(&Tx{s}) })
}

// UpdateEarly is Update without waiting for the disk, if the store supports that
// (storage.EarlyAppender). The changes survive the end of the process, but not always
// a power loss. It is for changes that a client would repeat.
func (s *Session) UpdateEarly(ctx context.Context, f func(tx *Tx) error) error {
	return s.update(ctx, committed, func() error { return f(&Tx{s}) })
}

// Try calls f and discards what f has appended and set.
func (s *Session) Try(f func(tx *Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.draft(func() error { return f(&Tx{s}) })
	return err
}

// Acquire keeps the session in memory until release is called.
func (s *Session) Acquire() (release func()) {
	s.holders.Add(1)
	return func() { s.holders.Add(-1) }
}

// InUse reports whether the session is acquired.
func (s *Session) InUse() bool { return s.holders.Load() > 0 }

// Log returns the session's log with the appended records. It is read-only.
func (t *Tx) Log() *furl.Log { return t.s.log }

// Meta returns the session's metadata. Clone it before changing Settings.
func (t *Tx) Meta() storage.Meta {
	if t.s.newMeta != nil {
		return *t.s.newMeta
	}
	return t.s.meta
}

// SetMeta changes the session's metadata.
func (t *Tx) SetMeta(m storage.Meta) { t.s.newMeta = &m }

// Append appends a record after the head.
func (t *Tx) Append(by furl.Actor, body furl.Body) (furl.Record, error) {
	return t.s.appendRecord(by, body)
}

// AppendMessage appends a message and counts its tokens. The log keeps m.
func (t *Tx) AppendMessage(m *furl.Message, c furl.Counter) (furl.Record, error) {
	return t.s.appendMessage(m, c)
}

// Rewind continues the conversation from an earlier record; see furl.Log.
func (t *Tx) Rewind(to furl.Seq, by furl.Actor) (furl.Record, error) {
	return t.s.log.Rewind(to, t.s.all.o.Now(), by)
}

// Observe records the result of a request, as Session.Observe does. fresh is false
// if it was recorded before.
func (t *Tx) Observe(ctx context.Context, sent *Fit, reply *protocol.Reply) (fresh bool, err error) {
	return t.s.observe(ctx, sent, reply)
}

// Measure sets the sizes of the context before and after a reduction that no policy
// has planned.
func (t *Tx) Measure(red *furl.Reduction) {
	s := t.s
	if s.meta.Model == "" {
		return
	}
	b, before, _ := s.budgetFor(Prompt{Model: s.meta.Model})
	if st, err := s.log.State().With(red); err == nil {
		red.Before, red.After, red.Scale = b.Size, b.After(before, st.View(b.Model)).Size, b.Scale
	}
}

// Model is Session.Model.
func (t *Tx) Model(name string) furl.Model { return t.s.model(name) }

// Counter returns the token counter of a model.
func (t *Tx) Counter(model string) furl.Counter {
	m := t.s.all.Model(model, t.s.format())
	return t.s.all.counter(&m)
}

// Memo returns the value stored in memory with the session under a key. It calls
// create for the first one. The value is lost when the session is evicted.
func (t *Tx) Memo(key any, create func() any) any {
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
