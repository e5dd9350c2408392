package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/storage"
)

// Session is one open session. It is safe for concurrent use, also by several
// processes on one store: what another one appended is read when it turns out
// to be there, and the change is made again on top of it.
type Session struct {
	all *shared
	key furl.SessionKey

	mu          sync.Mutex
	log         *furl.Log
	meta        storage.Meta
	newMeta     *storage.Meta // to be stored with the change under way
	newContents [][]byte      // to be stored with it
	lists       []knownLists  // of requests, the one used last first
	info        storage.SessionInfo
	stale       bool          // the store may have more than log
	read        time.Time     // when it was last held against the store
	changed     chan struct{} // closed when something is appended
	policy      furl.Policy   // of meta and of the options it was made by; nil: to be made
	made        *Options
	warned      map[string]bool // codes of warnings that the log has
	busy        atomic.Int32    // who holds it, see Hold
	memo        map[any]any     // see Tx.Memo
	// ready is a summary that waits for its place, see PrepareSummary; waits
	// says that there is one.
	ready     *readySummary
	waits     atomic.Bool
	settled   bool // the change under way has recorded it
	preparing bool
	size      atomic.Int64 // estimated memory, see memoryOf
	using     atomic.Int32 // loads and changes under way

	// Derived from the log, up to the record that it names.
	sizes sizer
}

// ID names the session.
func (s *Session) ID() furl.SessionID { return s.key.Session }

// Meta is what is known about the session beside its records.
func (s *Session) Meta() storage.Meta {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cloneMeta(s.meta)
}

// Info is what the store said of the session when it was last opened or
// refreshed, with the number of records as it is now.
func (s *Session) Info() storage.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	info.SessionKey, info.Meta, info.Records = s.key, cloneMeta(s.meta), furl.Seq(s.log.Len())
	return info
}

// Head is the record that the conversation goes on from.
func (s *Session) Head() furl.Seq {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Head()
}

// Records gives the records above after, in order.
func (s *Session) Records(after furl.Seq) []furl.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log.Records(after))
}

// refresh reads what the store has and this session does not.
func (s *Session) refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load(ctx)
}

// load reads what is new. The session is locked. The memory for it is reserved
// before anything is read.
func (s *Session) load(ctx context.Context) error {
	s.using.Add(1)
	defer s.using.Add(-1)
	info, known, err := s.all.stored(ctx, s.key)
	if err != nil {
		return fmt.Errorf("read session %s: %w", s.key.Session, err)
	}
	if known && int(info.Records) > s.log.Len() {
		if err := s.all.reserve(s, membudget.Session(info.Bytes, int64(info.Records))); err != nil {
			return fmt.Errorf("read session %s of %d records: %w", s.key.Session, info.Records, err)
		}
	}
	var fresh []furl.Record
	for r, err := range s.all.store.Read(ctx, s.key, furl.Seq(s.log.Len())) {
		if err != nil {
			s.all.storeError(ctx, err)
			return fmt.Errorf("read session %s: %w", s.key.Session, err)
		}
		fresh = append(fresh, r)
	}
	if len(fresh) > 0 {
		if err := s.log.Load(fresh); err != nil {
			return fmt.Errorf("read session %s: %w", s.key.Session, err)
		}
	}
	if known {
		s.info = info
		s.setMeta(info.Meta)
	}
	s.stale = false
	s.ends()
	if len(fresh) > 0 {
		s.size.Store(memoryOf(s.log.Records(0)))
		s.tell()
	}
	return nil
}

func (s *Session) setMeta(m storage.Meta) {
	if m.Policy != s.meta.Policy || !sameSettings(m.Settings, s.meta.Settings) {
		s.policy = nil
	}
	s.meta = m
}

// tell wakes those who watch.
func (s *Session) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// catchUp reads what the store may have and this session does not. The session
// is locked.
func (s *Session) catchUp(ctx context.Context) error {
	if !s.stale {
		return nil
	}
	if err := s.load(ctx); err != nil && !errors.Is(err, storage.ErrNoSession) {
		return err
	}
	return nil
}

// batch is what is to be stored with the records that follow the first had of
// the log, nil if there is nothing to store.
func (s *Session) batch(had int, records []furl.Record, meta *storage.Meta) *storage.Batch {
	b := storage.Batch{Records: slices.Clone(records), Meta: meta}
	if len(b.Records) == 0 && (b.Meta == nil || had == 0) {
		if b.Meta != nil { // of a session that has no record yet
			s.setMeta(*b.Meta)
		}
		return nil
	}
	if had == 0 && b.Meta == nil {
		m := cloneMeta(s.meta)
		b.Meta = &m
	}
	if t := s.title(b.Records); t != "" {
		if b.Meta == nil {
			m := cloneMeta(s.meta)
			b.Meta = &m
		}
		if b.Meta.Title == "" {
			b.Meta.Title = t
		}
	}
	return &b
}

// refused notes that the store has not taken a batch.
func (s *Session) refused(ctx context.Context, err error) error {
	// Whatever the store says, it may have what it was given.
	s.stale = true
	if s.all.storeError(ctx, err) {
		s.all.refusing.refused()
	}
	return fmt.Errorf("append to session %s: %w", s.key.Session, err)
}

// stored notes that the store has a batch.
func (s *Session) stored(b *storage.Batch) {
	s.all.refusing.took()
	if b.Meta != nil {
		s.setMeta(*b.Meta)
	}
	s.ends()
	if len(b.Records) > 0 {
		s.tell()
		if x := s.all.o.Indexer; x != nil {
			x.Touch(s.key.Tenant)
		}
	}
}

// add appends one record after the head.
func (s *Session) add(by furl.Actor, body furl.Body) (furl.Record, error) {
	r, err := s.log.Append(s.log.Head(), s.all.o.Now(), by, body)
	if err == nil {
		s.sizes.added(r, s.log, s.all)
	}
	return r, err
}

// addMessage appends a message that is the log's from now on.
func (s *Session) addMessage(m *furl.Message, c furl.Counter) (furl.Record, error) {
	m.Measure(c)
	if m.Digest.IsZero() {
		m.Seal()
	}
	by := furl.Client
	if m.Role == furl.RoleAssistant {
		by = furl.Upstream
	}
	return s.add(by, m)
}

// Append adds messages after the head, all or none, and gives their records.
// They are the session's from then on and must not be changed. Words of the
// user while a call waits for its result are an error wrapping
// furl.ErrOpenCall. To repeat an append that may have been made already, use
// AppendAfter.
func (s *Session) Append(ctx context.Context, msgs ...*furl.Message) ([]furl.Record, error) {
	return s.appendMessages(ctx, nil, msgs)
}

// AppendAfter adds messages after the record after, which must be the head:
// otherwise the error wraps furl.ErrConflict, unless just these messages
// follow it already on the path. Then nothing is added, and their records are
// given: repeating an append is not an error.
func (s *Session) AppendAfter(ctx context.Context, after furl.Seq, msgs ...*furl.Message) ([]furl.Record, error) {
	return s.appendMessages(ctx, &after, msgs)
}

func (s *Session) appendMessages(ctx context.Context, after *furl.Seq, msgs []*furl.Message) ([]furl.Record, error) {
	var records []furl.Record
	err := s.update(ctx, onDisk, func() error {
		records = records[:0]
		at := s.log.Head()
		if after != nil {
			at = *after
		}
		c := s.counterOf()
		for _, m := range msgs {
			if at == s.log.Head() {
				r, err := s.addMessage(m, c)
				if err != nil {
					return err
				}
				records, at = append(records, r), r.Seq
				continue
			}
			by := furl.Client
			if m.Role == furl.RoleAssistant {
				by = furl.Upstream
			}
			r, err := s.log.Append(at, s.all.o.Now(), by, m)
			if err != nil {
				return err
			}
			records, at = append(records, r), r.Seq
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// counterOf is the counter of the session's model.
func (s *Session) counterOf() furl.Counter {
	m := s.all.Model(s.meta.Model, s.format())
	return s.all.counter(&m)
}

// format is the wire format of the session's messages.
func (s *Session) format() furl.Format {
	if s.meta.Format != "" {
		return s.meta.Format
	}
	st := s.log.State()
	for i := st.Len() - 1; i >= 0; i-- {
		if _, m := st.Message(i); m.Format != "" {
			return m.Format
		}
	}
	return ""
}

// maxTitle is the most characters of a title that furl gives itself.
const maxTitle = 60

// title is the beginning of the first words of the user, if the session has no
// title yet.
func (s *Session) title(fresh []furl.Record) string {
	if s.meta.Title != "" {
		return ""
	}
	return Title(fresh)
}

// Title is the title of a session without a given one: the
// beginning of the first words of the user among the records, "" without any.
func Title(records []furl.Record) string {
	for _, r := range records {
		if m, ok := r.Body.(*furl.Message); ok && m.Role == furl.RoleUser {
			if title := titleOf(m); title != "" {
				return title
			}
		}
	}
	return ""
}

// titleLook is how many bytes of a line are looked at for a title. A line can be
// as long as a request, and the list of its words many times that.
const titleLook = 16 * maxTitle

// titleOf gives the first line of words. What clients put in front in angle
// brackets are not words of the user.
func titleOf(m *furl.Message) string {
	for i := range m.Blocks {
		if m.Blocks[i].Kind != furl.KindText {
			continue
		}
		for line := range strings.Lines(m.Blocks[i].Text) {
			if line = strings.TrimSpace(line); len(line) > titleLook {
				line = strings.ToValidUTF8(line[:titleLook], "")
			}
			line = strings.Join(strings.Fields(line), " ")
			if line == "" || strings.HasPrefix(line, "<") {
				if strings.HasPrefix(line, "<") {
					break
				}
				continue
			}
			if utf8.RuneCountInString(line) <= maxTitle {
				return line
			}
			return string([]rune(line)[:maxTitle-1]) + "…"
		}
	}
	return ""
}
