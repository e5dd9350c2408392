package session

import (
	"context"
	"errors"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Every change of a session is made on a draft of its log. It is in neither the log
// nor the store until it is committed, so nothing has to be rolled back when the
// store or the provider refuses it.

// draft holds uncommitted records.
type draft struct {
	base            int           // number of records in the log that it follows
	baseMeta        storage.Meta  // the session's metadata at that time
	records         []furl.Record // numbered from base+1
	contents        [][]byte      // referred to by the records
	meta            *storage.Meta // nil: unchanged
	sizes           sizer         // after the records
	summaryRecorded bool          // the records include the ready summary

	// Set for a prepared request.
	of      *Session
	request preparation
	fit     *Fit
}

// draft runs f on a draft of the log and returns the records that f appended. The
// session is locked, and unchanged afterwards.
func (s *Session) draft(f func() error) (*draft, error) {
	log, sizes := s.log, s.sizes
	defer func() {
		s.log, s.sizes, s.newMeta, s.newContents, s.summaryRecorded = log, sizes, nil, nil, false
	}()
	s.log, s.newMeta, s.newContents, s.summaryRecorded = log.Draft(), nil, nil, false
	if err := f(); err != nil {
		return nil, err
	}
	return &draft{
		base: log.Len(), baseMeta: s.meta.Clone(), records: slices.Clone(s.log.Records(furl.Seq(log.Len()))),
		contents: s.newContents, meta: s.newMeta, sizes: s.sizes, summaryRecorded: s.summaryRecorded,
	}, nil
}

// isCurrent reports whether the session has not changed since d was made.
func (d *draft) isCurrent(s *Session) bool {
	return d.base == s.log.Len() && (d.meta == nil || sameMeta(d.baseMeta, s.meta))
}

// durability says what a commit waits for.
type durability bool

const (
	// onDisk waits until the records are on disk. It is for changes by a person.
	onDisk durability = true
	// committed waits until the records survive the end of the process, but not
	// always a power loss (storage.EarlyAppender). It is for requests, which a
	// client repeats.
	committed durability = false
)

// maxTries is how often a change is tried when other processes append first.
const maxTries = 16

// update runs f on a draft and commits it, all or nothing. If another process
// appends first, f runs again on top of its records.
func (s *Session) update(ctx context.Context, d durability, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(ctx, d, nil, func() (*draft, error) { return s.draft(f) })
}

// commit appends a draft to the store and then to the log. It calls again for a new
// draft if the given one is nil or not current. The session is locked.
func (s *Session) commit(ctx context.Context, d durability, held *draft, again func() (*draft, error)) error {
	s.active.Add(1)
	defer s.active.Add(-1)
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	for try := 1; ; try++ {
		had, was := s.log.Len(), s.meta
		var err error
		if held == nil || !held.isCurrent(s) {
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
		if s.log.Len() == had && sameMeta(was, s.meta) {
			return err // no other process has changed anything
		}
	}
}

// appendDraft appends a draft that is current.
func (s *Session) appendDraft(ctx context.Context, d durability, made *draft) error {
	b := s.batch(made.base, made.records, made.meta)
	if b == nil {
		return nil
	}
	b.Contents = made.contents
	if b.Meta != nil && made.base > 0 {
		was := s.meta.Clone()
		b.MetaWas = &was
	}
	had := s.size.Load()
	if err := s.reserveFor(made.records); err != nil {
		return err
	}
	if err := s.appendToStore(ctx, d, b); err != nil {
		s.size.Store(had)
		return s.appendFailed(ctx, err)
	}
	if err := s.log.Load(made.records); err != nil {
		s.stale = true
		return err
	}
	s.sizes = made.sizes
	s.appended(b)
	if made.summaryRecorded {
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
			s.all.health.failed()
			s.all.log.Error("write to disk failed after commit; records may be lost on power loss", "session", s.key.Session, "error", err)
		}
	}()
	return <-done
}

// appendEarly appends a batch, and calls committed as soon as it is committed.
func (s *Session) appendEarly(ctx context.Context, b *storage.Batch, committed func()) (err error) {
	defer func() {
		if recover() != nil { // the value is not logged: it may contain message content
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
