package open

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// Session is one open session. It is safe for concurrent use, also by several
// processes on one store: after a conflict, the other process's records are read and
// the change is made again on top of them.
type Session struct {
	all *shared
	key furl.SessionKey

	mu            sync.Mutex
	log           *furl.Log
	meta          storage.Meta
	lists         []knownLists // of requests, most recently used first
	info          storage.SessionInfo
	stale         bool          // the store may have more records than log
	lastRead      time.Time     // when it was last compared with the store
	changed       chan struct{} // closed when records are appended
	policy        furl.Policy   // made from meta and policyOptions; nil: not made yet
	policyOptions *Options
	warned        map[string]bool // codes of warnings that were logged
	holders       atomic.Int32    // number of callers of Acquire
	exchanges     Exchanges       // of this process
	// ready is a summary that is not recorded yet, see PrepareSummary; hasReady
	// reports whether it is set.
	ready       *PendingSummary
	hasReady    atomic.Bool
	waiting     *PendingSummary    // meta.Waiting decoded; nil: none
	decided     bool               // a person has decided about the last one that waited, and no request was planned since
	hourCache   protocol.HourCache // of the newest request
	nextSummary int                // no summary is due below this size, in tokens
	preparing   bool
	unused      storage.Savings // cost of discarded summaries, not in the ledger yet
	size        atomic.Int64    // estimated memory, see memoryOf
	active      atomic.Int32    // loads and changes in progress

	// Derived from the log.
	sizes account.Sizer
	index Index
	items itemIndex
}

// ID returns the id of the session.
func (s *Session) ID() furl.SessionID { return s.key.Session }

// Meta returns the metadata of the session.
func (s *Session) Meta() storage.Meta {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta.Clone()
}

// Info returns the store's description of the session as of the last read, with the
// current number of records.
func (s *Session) Info() storage.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	info.SessionKey, info.Meta, info.Records = s.key, s.meta.Clone(), furl.Seq(s.log.Len())
	return info
}

// Head returns the last record of the current path.
func (s *Session) Head() furl.Seq {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Head()
}

// Records returns the records with numbers above after, in order.
func (s *Session) Records(after furl.Seq) []furl.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log.Records(after))
}

// Refresh reads new records from the store.
func (s *Session) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load(ctx)
}

// load reads new records from the store, after reserving memory for them. The
// session is locked.
func (s *Session) load(ctx context.Context) error {
	s.active.Add(1)
	defer s.active.Add(-1)
	info, records, err := storage.ReadInfo(ctx, s.all.store, s.key, furl.Seq(s.log.Len()))
	if err != nil {
		s.all.storeError(ctx, err)
		return fmt.Errorf("read session %s: %w", s.key.Session, err)
	}
	size := s.size.Load()
	if int(info.Records) > s.log.Len() {
		if err := s.all.reserve(s, membudget.Session(info.Bytes, int64(info.Records))); err != nil {
			return fmt.Errorf("read session %s of %d records: %w", s.key.Session, info.Records, err)
		}
	}
	redacted := s.redactedSince(&info.Meta)
	if redacted {
		records, size = s.all.store.Read(ctx, s.key, 0), 0
	}
	var fresh []furl.Record
	for r, err := range records {
		if err != nil {
			s.readFailed(ctx, err)
			return fmt.Errorf("read session %s: %w", s.key.Session, err)
		}
		Judge(r)
		fresh = append(fresh, r)
	}
	if !redacted && s.log.Len() > 0 && slices.ContainsFunc(fresh, MovesHead) {
		// It may say that the session was redacted after info was read.
		var known bool
		if info, known, err = s.all.storedInfo(ctx, s.key); err != nil {
			return fmt.Errorf("read session %s: %w", s.key.Session, err)
		}
		if known && s.redactedSince(&info.Meta) {
			return s.load(ctx)
		}
	}
	if redacted {
		s.replaceLog(furl.NewLog())
	}
	if err := s.loadFresh(fresh); err != nil {
		return fmt.Errorf("read session %s: %w", s.key.Session, err)
	}
	s.info = info
	s.setMeta(info.Meta)
	s.stale = false
	s.indexHead()
	if len(fresh) > 0 {
		s.resize(size + memoryOf(fresh))
		s.notifyWatchers()
	}
	return nil
}

// readFailed handles the failure of a read or an append. The session is locked.
func (s *Session) readFailed(ctx context.Context, err error) bool {
	if errors.Is(err, storage.ErrDestroyed) {
		s.replaceLog(furl.NewLog())
		s.setMeta(storage.Meta{})
		s.info, s.stale = storage.SessionInfo{}, true
		s.resize(0)
		s.all.dropTenant(s.key.Tenant)
	}
	return s.all.storeError(ctx, err)
}

// Judge marks the blocks of a stored message that furl does not understand today,
// whatever the version that recorded it understood.
func Judge(r furl.Record) {
	if m, ok := r.Body.(*furl.Message); ok {
		if api := wire.For(m.Format); api != nil {
			api.Judge(m)
		}
	}
}

// redactedSince reports whether texts of records in memory were redacted by another
// process.
func (s *Session) redactedSince(m *storage.Meta) bool {
	return s.log.Len() > 0 && !slices.EqualFunc(m.Redactions, s.meta.Redactions, func(x, y storage.Redaction) bool {
		return x.At.Equal(y.At) && x.Record == y.Record && slices.Equal(x.Records, y.Records)
	})
}

// replaceLog replaces the log, and drops what was derived from the one before. The
// session is locked.
func (s *Session) replaceLog(log *furl.Log) {
	s.log, s.sizes, s.lists, s.index, s.items = log, account.Sizer{}, nil, Index{}, itemIndex{}
	if s.ready != nil {
		s.discardReady("the session was redacted")
	}
}

// loadFresh appends records of the store to the log. If the sizes of requests are
// known up to its head, they are continued, so that the path is not folded again.
func (s *Session) loadFresh(fresh []furl.Record) error {
	if !s.sizes.Continues(s.log.Head()) || slices.ContainsFunc(fresh, MovesHead) {
		return s.log.Load(fresh)
	}
	for i := range fresh {
		if err := s.log.Load(fresh[i : i+1]); err != nil {
			return err
		}
		s.sizes.RecordAppended(s.log.At(fresh[i].Seq), s.log, s.current().models())
	}
	return nil
}

func (s *Session) setMeta(m storage.Meta) {
	if !samePolicy(&m, &s.meta) {
		s.policy = nil
	}
	s.readWaiting(&m)
	s.meta = m
}

// notifyWatchers wakes the callers of Watch.
func (s *Session) notifyWatchers() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// catchUp reads new records from the store if there may be any. The session is
// locked.
func (s *Session) catchUp(ctx context.Context) error {
	if !s.stale {
		return nil
	}
	if err := s.load(ctx); err != nil && !errors.Is(err, storage.ErrNoSession) {
		return err
	}
	return nil
}

// batch returns the batch to store for records that follow the first had records of
// the log, nil if there is nothing to store.
func (s *Session) batch(had int, records []furl.Record, meta *storage.Meta) *storage.Batch {
	b := storage.Batch{Records: slices.Clone(records), Meta: meta}
	if len(b.Records) == 0 && (b.Meta == nil || had == 0) {
		if b.Meta != nil { // a session without records is not stored yet
			s.setMeta(*b.Meta)
		}
		return nil
	}
	if had == 0 && b.Meta == nil {
		m := s.meta.Clone()
		b.Meta = &m
	}
	if t := s.title(b.Records); t != "" {
		if b.Meta == nil {
			m := s.meta.Clone()
			b.Meta = &m
		}
		if b.Meta.Title == s.meta.Title {
			b.Meta.Title = t
		}
	}
	return &b
}

// appendFailed handles the failure of an append to the store.
func (s *Session) appendFailed(ctx context.Context, err error) error {
	// Despite the error, the store may have the batch.
	s.stale = true
	if s.readFailed(ctx, err) {
		s.all.health.failed()
	}
	return fmt.Errorf("append to session %s: %w", s.key.Session, err)
}

// appended handles the success of an append to the store.
func (s *Session) appended(b *storage.Batch) {
	s.all.health.succeeded()
	if b.Meta != nil {
		if s.all.addSavings(s.key, s.meta.Ledger, b.Meta.Ledger) {
			s.unused = storage.Savings{}
		}
		if !bytes.Equal(s.meta.Waiting, b.Meta.Waiting) {
			defer s.notifyWatchers()
		}
		s.setMeta(*b.Meta)
	}
	s.indexHead()
	if len(b.Records) > 0 {
		s.notifyWatchers()
		if x := s.all.o.Appended; x != nil {
			x(s.key, furl.Seq(s.log.Len()), sizeOf(b.Records))
		}
	}
}

// sizeOf returns the bytes of the messages of records on the wire.
func sizeOf(records []furl.Record) (n int) {
	for i := range records {
		size, _ := record.MessageSize(&records[i])
		n += size
	}
	return n
}

// SessionCounter returns the token counter of the session's model.
func (c *Change) SessionCounter() furl.Counter {
	m := c.all.Model(c.Meta().Model, c.Format())
	return c.all.CounterOf(&m)
}

// Format returns the wire format of the session's messages.
func (c *Change) Format() furl.Format {
	if c.Meta().Format != "" {
		return c.Meta().Format
	}
	st := c.log.State()
	for i := st.Len() - 1; i >= 0; i-- {
		if _, m := st.Message(i); m.Format != "" {
			return m.Format
		}
	}
	return ""
}
