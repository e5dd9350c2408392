package session

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// Tx is a session while nothing else uses it. What it returns is valid, and must
// not be changed, until the function that got it returns; records may be kept.
type Tx struct{ s *Session }

// Read calls f while nothing else uses the session. f must not change it.
func (s *Session) Read(f func(tx *Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(&Tx{s})
}

// Update calls f, and records what f has appended and set, all of it or, after an
// error, nothing. When it returns, that is on the disk. f is called again if another
// process has appended something meanwhile.
func (s *Session) Update(ctx context.Context, f func(tx *Tx) error) error {
	return s.update(ctx, onDisk, func() error { return f(&Tx{s}) })
}

// UpdateEarly is Update without waiting for the disk, where the store can tell
// (storage.EarlyAppender): what is recorded outlives the process, but maybe not a
// loss of power. It is for what a client would send again.
func (s *Session) UpdateEarly(ctx context.Context, f func(tx *Tx) error) error {
	return s.update(ctx, committed, func() error { return f(&Tx{s}) })
}

// Try calls f and forgets what f has appended and set.
func (s *Session) Try(f func(tx *Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.draft(func() error { return f(&Tx{s}) })
	return err
}

// Hold keeps the session in memory until release is called.
func (s *Session) Hold() (release func()) {
	s.busy.Add(1)
	return func() { s.busy.Add(-1) }
}

// Held reports whether somebody holds the session.
func (s *Session) Held() bool { return s.busy.Load() > 0 }

// Log is the session's log with what was appended. It is for reading.
func (t *Tx) Log() *furl.Log { return t.s.log }

// Meta is what is known about the session beside its records. Clone Settings
// before changing them.
func (t *Tx) Meta() storage.Meta {
	if t.s.newMeta != nil {
		return *t.s.newMeta
	}
	return t.s.meta
}

// SetMeta changes what is known about the session beside its records.
func (t *Tx) SetMeta(m storage.Meta) { t.s.newMeta = &m }

// Append appends a record after the head.
func (t *Tx) Append(by furl.Actor, body furl.Body) (furl.Record, error) { return t.s.add(by, body) }

// AppendMessage appends a message and counts its tokens. The message is the log's
// from then on.
func (t *Tx) AppendMessage(m *furl.Message, c furl.Counter) (furl.Record, error) {
	return t.s.addMessage(m, c)
}

// Rewind makes the conversation continue from an earlier record; see furl.Log.
func (t *Tx) Rewind(to furl.Seq, by furl.Actor) (furl.Record, error) {
	return t.s.log.Rewind(to, t.s.all.o.Now(), by)
}

// Observe records what came of a request, as Session.Observe does. It reports
// whether that was new.
func (t *Tx) Observe(ctx context.Context, sent *Fit, reply *protocol.Reply) (fresh bool, err error) {
	return t.s.observe(ctx, sent, reply)
}

// Measure fills in how large the context is before and after a reduction that no
// policy has planned.
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

// Model is what is known about a model, with the session's own limit.
func (t *Tx) Model(name string) furl.Model { return t.s.model(name) }

// Counter counts the tokens of a model.
func (t *Tx) Counter(model string) furl.Counter {
	m := t.s.all.Model(model, t.s.format())
	return t.s.all.counter(&m)
}

// Memo returns what is kept in memory with the session under a key, as create made
// it. It is forgotten with the session.
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
