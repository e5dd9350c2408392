package session

import (
	"context"
	"errors"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Every change of a session is made on a draft of its log, and is in neither the
// log nor the store until it is committed. So nothing has to be undone when the
// store, or the provider of a request, refuses it.

// Draft is what is to be recorded for a request, see Session.Prepare. It is
// committed by Session.Commit, or forgotten.
type Draft struct {
	had      int           // records of the log that it follows
	was      storage.Meta  // of the session then
	records  []furl.Record // numbered from had+1
	contents [][]byte      // that they refer to
	meta     *storage.Meta // nil: as it was
	sizes    sizer         // of the log with the records
	settled  bool          // the records have the summary that was ready

	// Of a request that was prepared:
	request Preparation
	fit     *Fit
}

// draft runs f on a draft of the log and returns what f appended. The session
// stays as it was. It must be locked.
func (s *Session) draft(f func() error) (*Draft, error) {
	log, sizes := s.log, s.sizes
	defer func() { s.log, s.sizes, s.newMeta, s.newContents, s.settled = log, sizes, nil, nil, false }()
	s.log, s.newMeta, s.newContents, s.settled = log.Draft(), nil, nil, false
	if err := f(); err != nil {
		return nil, err
	}
	return &Draft{
		had: log.Len(), was: cloneMeta(s.meta), records: slices.Clone(s.log.Records(furl.Seq(log.Len()))),
		contents: s.newContents, meta: s.newMeta, sizes: s.sizes, settled: s.settled,
	}, nil
}

// fits reports whether d can be appended to the session as it is now.
func (d *Draft) fits(s *Session) bool {
	return d.had == s.log.Len() && (d.meta == nil || sameMeta(d.was, s.meta))
}

// durability is what a commit waits for.
type durability bool

const (
	// onDisk: what a person changes is acknowledged when it is on the disk.
	onDisk durability = true
	// committed: it outlives the process, but not always a loss of power,
	// where the store can tell the two apart (storage.EarlyAppender). A client
	// sends again what it has sent.
	committed durability = false
)

// maxTries bounds how often a change is made again because another process was
// faster.
const maxTries = 16

// update runs f on a draft and commits it, all or nothing. f runs again if another
// process was faster, on top of what that one appended.
func (s *Session) update(ctx context.Context, d durability, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(ctx, d, nil, func() (*Draft, error) { return s.draft(f) })
}

// commit appends a draft to the store and then to the log. The draft is made
// anew if it is nil, or no longer fits. The session is locked.
func (s *Session) commit(ctx context.Context, d durability, held *Draft, again func() (*Draft, error)) error {
	s.using.Add(1)
	defer s.using.Add(-1)
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	for try := 1; ; try++ {
		had := s.log.Len()
		var err error
		if held == nil || !held.fits(s) {
			held, err = again()
		}
		if err == nil {
			err = s.appendDraft(ctx, d, held)
		}
		if err == nil || !errors.Is(err, furl.ErrConflict) || try == maxTries {
			return err
		}
		if loadErr := s.load(ctx); loadErr != nil {
			return errors.Join(err, loadErr)
		}
		if s.log.Len() == had {
			return err // another process has not appended anything
		}
	}
}

// appendDraft appends a draft that fits.
func (s *Session) appendDraft(ctx context.Context, d durability, made *Draft) error {
	b := s.batch(made.had, made.records, made.meta)
	if b == nil {
		return nil
	}
	b.Contents = made.contents
	had := s.size.Load()
	if err := s.reserveFor(made.records); err != nil {
		return err
	}
	if err := s.appendToStore(ctx, d, b); err != nil {
		s.size.Store(had)
		return s.refused(ctx, err)
	}
	if err := s.log.Load(made.records); err != nil {
		s.stale = true
		return err
	}
	s.sizes = made.sizes
	s.stored(b)
	if made.settled {
		s.setReady(nil)
	}
	return nil
}

// appendToStore appends a batch to the store.
func (s *Session) appendToStore(ctx context.Context, d durability, b *storage.Batch) error {
	if d == onDisk {
		return s.all.store.Append(ctx, s.key, *b)
	}
	done := make(chan error, 1)
	go func() {
		told := false
		err := s.appendEarly(ctx, b, func() { told = true; done <- nil })
		switch {
		case !told:
			done <- err
		case err != nil:
			s.all.storeErrors.Add(1)
			s.all.refusing.refused()
			s.all.log.Error("what was recorded may be lost with the power", "session", s.key.Session, "error", err)
		}
	}()
	return <-done
}

// appendEarly calls committed as soon as a batch is committed.
func (s *Session) appendEarly(ctx context.Context, b *storage.Batch, committed func()) (err error) {
	defer func() {
		if recover() != nil { // a store's; it may hold what was said
			err = errors.New("the store panicked")
		}
	}()
	if early, ok := s.all.store.(storage.EarlyAppender); ok {
		return early.AppendEarly(ctx, s.key, *b, committed)
	}
	if err = s.all.store.Append(ctx, s.key, *b); err == nil {
		committed()
	}
	return err
}
