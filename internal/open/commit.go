package open

import (
	"context"
	"errors"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// Durability says what a commit waits for.
type Durability bool

const (
	// OnDisk waits until the records are on disk. It is for changes by a person.
	OnDisk Durability = true
	// Committed waits until the records survive the end of the process, but not
	// always a power loss (storage.EarlyAppender). It is for requests, which a
	// client repeats.
	Committed Durability = false
)

// maxTries is how often a change is tried when other processes append first.
const maxTries = 16

// Read calls f with the session locked. f must not change it.
func (s *Session) Read(f func(c *Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.current())
}

// Try makes a change and discards it.
func (s *Session) Try(f func(c *Change) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.try(f)
	return err
}

// Update makes a change and commits it, all or nothing. If another process appends
// first, the change is made again on top of its records.
func (s *Session) Update(ctx context.Context, d Durability, f func(c *Change) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(ctx, d, nil, func() (*Change, error) { return s.try(f) })
}

// Observe records the result of a request, see Change.Observe, and then ends it if f is not
// nil.
func (s *Session) Observe(ctx context.Context, sent *policy.Fit, bodies Bodies, reply *protocol.Reply, f *Flight) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.commit(ctx, Committed, nil, func() (*Change, error) {
		return s.try(func(c *Change) error {
			_, err := c.Observe(ctx, sent, bodies, reply)
			return err
		})
	})
	if err == nil && f != nil {
		s.current().End(f)
	}
	return err
}

// commit appends a change to the store and then to the log. It calls again for a new
// change if the given one is nil or not current. The session is locked.
func (s *Session) commit(ctx context.Context, d Durability, held *Change, again func() (*Change, error)) error {
	s.active.Add(1)
	defer s.active.Add(-1)
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	for try := 1; ; try++ {
		had, was := s.log.Len(), s.meta
		var err error
		if held == nil || !held.isCurrent() {
			held, err = again()
		}
		if err == nil {
			err = s.apply(ctx, d, held)
		}
		if err == nil || !errors.Is(err, furl.ErrConflict) || try == maxTries {
			return err
		}
		if loadErr := s.load(ctx); loadErr != nil {
			return errors.Join(err, loadErr)
		}
		if s.log.Len() == had && SameMeta(was, s.meta) {
			return err // no other process has changed anything
		}
	}
}

// apply appends a change that is current.
func (s *Session) apply(ctx context.Context, d Durability, c *Change) error {
	staged := c.staged
	if staged != nil && !SameMeta(staged.meta, s.meta) {
		staged = nil
	}
	var b *storage.Batch
	if staged != nil {
		b = staged.batch
	} else if b = s.batchOf(c); b == nil {
		return nil
	}
	had := s.size.Load()
	if err := s.reserveFor(c.records); err != nil {
		return err
	}
	if err := s.appendToStore(ctx, d, b, staged); err != nil {
		s.resize(had)
		return s.appendFailed(ctx, err)
	}
	if err := s.log.Load(c.records); err != nil {
		s.stale = true
		return err
	}
	s.sizes = *c.sizes
	s.appended(b)
	if c.summaryRecorded {
		s.setReady(nil)
	}
	return nil
}

// batchOf returns the batch of a change that is current, nil if there is nothing to store.
func (s *Session) batchOf(c *Change) *storage.Batch {
	b := s.batch(c.base, c.records, c.newMeta)
	if b == nil {
		return nil
	}
	b.Contents = c.contents
	if b.Meta != nil && c.base > 0 {
		was := s.meta.Clone()
		b.MetaWas = &was
	}
	return b
}

// appendToStore appends a batch to the store. staged is nil or what the store has made of it.
func (s *Session) appendToStore(ctx context.Context, d Durability, b *storage.Batch, staged *stagedAppend) error {
	if d == OnDisk {
		return s.all.store.Append(ctx, s.key, *b)
	}
	done := make(chan error, 1)
	go func() {
		told := false
		err := s.appendEarly(ctx, b, staged, func() { told = true; done <- nil })
		switch {
		case !told:
			done <- err
		case err != nil:
			s.all.storeErrors.Add(1)
			s.all.health.failed()
			s.all.log.Error("write to disk failed after commit; records may be lost on power loss", "session", s.key.Session, "error", err)
		}
	}()
	return <-done
}

// appendEarly appends a batch, and calls committed as soon as it is committed.
func (s *Session) appendEarly(ctx context.Context, b *storage.Batch, staged *stagedAppend, committed func()) (err error) {
	defer func() {
		if recover() != nil { // the value is not logged: it may contain message content
			err = errStorePanicked
		}
	}()
	if ready := staged.wait(); ready != nil {
		return ready.Append(ctx, committed)
	}
	if early, ok := s.all.store.(storage.EarlyAppender); ok {
		return early.AppendEarly(ctx, s.key, *b, committed)
	}
	if err = s.all.store.Append(ctx, s.key, *b); err == nil {
		committed()
	}
	return err
}

var errStorePanicked = errors.New("the store panicked")
