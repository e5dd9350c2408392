// Package inmem stores sessions in memory: for tests, for short-lived
// programs, and as the reference with which other stores are compared.
//
// It implements every optional interface of a store that applies. Nothing is
// written to disk.
package inmem

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Store is a store in memory. Create one with New; it is safe for concurrent
// use.
type Store struct {
	mu       sync.RWMutex
	tenants  map[furl.Tenant]*tenant
	watchers map[*watcher]struct{}
	last     int64                  // the time of the newest record, in nanoseconds
	keys     map[furl.Tenant][]byte // wrapped
	closed   bool
}

var (
	_ storage.Store        = (*Store)(nil)
	_ storage.Searchable   = (*Store)(nil)
	_ storage.VectorStore  = (*Store)(nil)
	_ storage.Watcher      = (*Store)(nil)
	_ storage.Deleter      = (*Store)(nil)
	_ storage.Checker      = (*Store)(nil)
	_ storage.TenantLister = (*Store)(nil)
	_ storage.ContentStore = (*Store)(nil)
)

// tenant is the data of one tenant.
type tenant struct {
	sessions map[furl.SessionID]*session
	// chains maps each chain to the messages that end it, oldest first.
	chains  map[furl.Digest][]place
	vectors map[vectorKey]*vector
}

// place is the position of a message, and when it was appended.
type place struct {
	session furl.SessionID
	seq     furl.Seq
	at      int64
}

// session is one session. Its records are append-only, so that a reader may
// continue with the slice it has seen.
type session struct {
	key              furl.SessionKey
	meta             []byte // JSON
	records          []stored
	created, updated int64
	messages         int
	bytes            int64
	contents         map[furl.Digest][]byte

	indexed furl.Seq
	pages   map[pageKey][]byte
	vectors map[vectorKey]struct{}
}

// stored is a record in the form of record.Encode.
type stored struct {
	head, body []byte
	shared     *furl.Record // instead of both, see Share
	chain      furl.Digest  // zero for other records
	message    bool
	size       int // of the message on the wire
}

// New returns an empty store.
func New() *Store {
	return &Store{tenants: make(map[furl.Tenant]*tenant), watchers: make(map[*watcher]struct{})}
}

var errClosed = errors.New("the store is closed")

// ready returns why the store cannot be used: the context ended, or the store
// is closed.
func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed {
		return errClosed
	}
	return nil
}

// session finds a session.
func (s *Store) session(key furl.SessionKey) (*session, error) {
	if t := s.tenants[key.Tenant]; t != nil {
		if ses := t.sessions[key.Session]; ses != nil {
			return ses, nil
		}
	}
	return nil, fmt.Errorf("session %.140q: %w", key.Session, storage.ErrNoSession)
}

// Append implements storage.Store.
func (s *Store) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	if err := s.append(ctx, key, b); err != nil {
		return fmt.Errorf("append to session %.140q: %w", key.Session, err)
	}
	return nil
}

func (s *Store) append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	if err := storage.CheckBatch(key, &b); err != nil {
		return err
	}
	records, err := encode(b.Records)
	if err != nil {
		return err
	}
	var meta []byte
	if b.Meta != nil {
		if meta, err = json.Marshal(b.Meta); err != nil {
			return err
		}
	}
	contents := make(map[furl.Digest][]byte, len(b.Contents))
	for i, c := range b.Contents {
		contents[b.ContentID(i)] = append([]byte{}, c...)
	}
	return s.put(ctx, key, &b, records, contents, meta)
}

// Share is like Append, but keeps the records themselves, not copies. Neither
// the caller nor readers may change them. It halves the memory for data that
// is only read, such as a recording.
func (s *Store) Share(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	if err := storage.CheckBatch(key, &b); err != nil {
		return fmt.Errorf("append to session %.140q: %w", key.Session, err)
	}
	var meta []byte
	if b.Meta != nil {
		var err error
		if meta, err = json.Marshal(b.Meta); err != nil {
			return fmt.Errorf("append to session %.140q: %w", key.Session, err)
		}
	}
	records := make([]stored, len(b.Records))
	for i := range b.Records {
		r := &b.Records[i]
		records[i].shared = r
		records[i].describe(r)
	}
	contents := make(map[furl.Digest][]byte, len(b.Contents))
	for _, c := range b.Contents {
		contents[furl.DigestOf(c)] = c
	}
	if err := s.put(ctx, key, &b, records, contents, meta); err != nil {
		return fmt.Errorf("append to session %.140q: %w", key.Session, err)
	}
	return nil
}

// put adds records in their stored form, with their contents.
func (s *Store) put(ctx context.Context, key furl.SessionKey, b *storage.Batch, records []stored, contents map[furl.Digest][]byte, meta []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	if len(records) == 0 {
		ses, err := s.session(key)
		if err != nil {
			return err
		}
		if !b.MetaMatches(ses.meta) {
			return errMeta
		}
		ses.setMeta(meta)
		return nil
	}
	ses, _ := s.session(key)
	var has furl.Seq
	if ses != nil {
		has = furl.Seq(len(ses.records))
	}
	switch first := b.Records[0].Seq; {
	case first <= has && ses.repeats(first, records):
		return nil
	case first != has+1:
		return fmt.Errorf("record %d: the session has %d: %w", first, has, furl.ErrConflict)
	}
	if ses != nil && !b.MetaMatches(ses.meta) {
		return errMeta
	}
	if ses == nil {
		ses = s.create(key)
	}
	s.add(ses, records)
	for digest, content := range contents {
		if _, ok := ses.contents[digest]; !ok {
			ses.contents[digest] = content
		}
	}
	ses.setMeta(meta)
	s.notify(key)
	return nil
}

var errMeta = fmt.Errorf("the session's metadata has changed: %w", furl.ErrConflict)

// encode returns the stored form of records, which shares no memory with
// them.
func encode(records []furl.Record) ([]stored, error) {
	out := make([]stored, len(records))
	for i, r := range records {
		head, body, err := record.Encode(r)
		if err != nil {
			return nil, err
		}
		out[i] = stored{head: head, body: bytes.Clone(body)}
		out[i].describe(&r)
	}
	return out, nil
}

// describe fills in the fields that are used without decoding the record.
func (st *stored) describe(r *furl.Record) {
	if size, ok := record.MessageSize(r); ok {
		st.message, st.chain, st.size = true, r.Chain, size
	}
}

// encoded returns the encoded form, also of a shared record.
func (st *stored) encoded() (head, body []byte) {
	if st.shared == nil {
		return st.head, st.body
	}
	head, body, err := record.Encode(*st.shared)
	if err != nil {
		return nil, nil // not equal to any other
	}
	return head, body
}

// record returns the record, a copy unless it is shared.
func (st *stored) record() (furl.Record, error) {
	if st.shared != nil {
		return *st.shared, nil
	}
	return record.Decode(st.head, bytes.Clone(st.body))
}

// repeats reports whether the session already has these records.
func (ses *session) repeats(first furl.Seq, records []stored) bool {
	at := int(first) - 1
	if at+len(records) > len(ses.records) {
		return false
	}
	for i, r := range records {
		head, body := r.encoded()
		hadHead, hadBody := ses.records[at+i].encoded()
		if head == nil || !bytes.Equal(head, hadHead) || !bytes.Equal(body, hadBody) {
			return false
		}
	}
	return true
}

func (s *Store) create(key furl.SessionKey) *session {
	t := s.tenants[key.Tenant]
	if t == nil {
		t = &tenant{
			sessions: make(map[furl.SessionID]*session),
			chains:   make(map[furl.Digest][]place),
			vectors:  make(map[vectorKey]*vector),
		}
		s.tenants[key.Tenant] = t
	}
	ses := &session{key: key, contents: make(map[furl.Digest][]byte), pages: make(map[pageKey][]byte), vectors: make(map[vectorKey]struct{})}
	t.sessions[key.Session] = ses
	return ses
}

func (s *Store) add(ses *session, records []stored) {
	chains := s.tenants[ses.key.Tenant].chains
	for _, r := range records {
		s.last = max(s.last+1, time.Now().UnixNano())
		ses.records = append(ses.records, r)
		if !r.message {
			continue
		}
		ses.messages++
		ses.bytes += int64(r.size)
		if !r.chain.IsZero() {
			chains[r.chain] = append(chains[r.chain], place{ses.key.Session, furl.Seq(len(ses.records)), s.last})
		}
	}
	if ses.created == 0 {
		ses.created = s.last
	}
	ses.updated = s.last
}

func (ses *session) setMeta(meta []byte) {
	if meta != nil {
		ses.meta = meta
	}
}

// Read implements storage.Store.
func (s *Store) Read(ctx context.Context, key furl.SessionKey, after furl.Seq) iter.Seq2[furl.Record, error] {
	return func(yield func(furl.Record, error) bool) {
		records, err := s.recordsOf(ctx, key)
		if err != nil {
			yield(furl.Record{}, fmt.Errorf("read session %.140q: %w", key.Session, err))
			return
		}
		for _, st := range records[min(after, furl.Seq(len(records))):] {
			if err := ctx.Err(); err != nil {
				yield(furl.Record{}, err)
				return
			}
			r, err := st.record()
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (s *Store) recordsOf(ctx context.Context, key furl.SessionKey) ([]stored, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	ses, err := s.session(key)
	if err != nil {
		return nil, err
	}
	return ses.records, nil
}

// Content implements storage.ContentStore.
func (s *Store) Content(ctx context.Context, key furl.SessionKey, digest furl.Digest) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err := s.ready(ctx)
	var ses *session
	if err == nil {
		ses, err = s.session(key)
	}
	if err == nil {
		if content, ok := ses.contents[digest]; ok {
			return append([]byte{}, content...), nil
		}
		err = storage.ErrNoContent
	}
	return nil, fmt.Errorf("read content %v of session %.140q: %w", digest, key.Session, err)
}

// Match implements storage.Store.
func (s *Store) Match(ctx context.Context, tenant furl.Tenant, chains []furl.Digest, limit int) ([]storage.Matched, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	t := s.tenants[tenant]
	if t == nil {
		return nil, nil
	}
	type found struct {
		storage.Matched
		at int64
	}
	var all []found
	seen := make(map[furl.Digest]bool, len(chains))
	for _, chain := range chains {
		if seen[chain] {
			continue
		}
		seen[chain] = true
		for _, p := range t.chains[chain] {
			all = append(all, found{storage.Matched{Session: p.session, Seq: p.seq, Chain: chain}, p.at})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(b.at, a.at) })
	matched := make([]storage.Matched, 0, max(0, min(limit, len(all))))
	for _, f := range all[:cap(matched)] {
		matched = append(matched, f.Matched)
	}
	return matched, nil
}

// Sessions implements storage.Store.
func (s *Store) Sessions(ctx context.Context, tenant furl.Tenant, q storage.SessionQuery) iter.Seq2[storage.SessionInfo, error] {
	return s.infos(ctx, "list sessions", tenant, q.Limit, func(ses *session, info *storage.SessionInfo) bool {
		return strings.HasPrefix(string(info.Session), q.Prefix) &&
			(q.Hint == "" || info.Hint == q.Hint) &&
			(q.Since.IsZero() || !info.Updated.Before(q.Since)) &&
			(q.Before.IsZero() || info.Updated.Before(q.Before))
	})
}

// Tenants implements storage.TenantLister.
func (s *Store) Tenants(ctx context.Context) ([]furl.Tenant, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return slices.Sorted(maps.Keys(s.tenants)), nil
}

// infos yields the matching sessions of a tenant, newest first.
func (s *Store) infos(ctx context.Context, doing string, tenant furl.Tenant, limit int, want func(*session, *storage.SessionInfo) bool) iter.Seq2[storage.SessionInfo, error] {
	list := func() ([]storage.SessionInfo, error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		if err := s.ready(ctx); err != nil || s.tenants[tenant] == nil {
			return nil, err
		}
		var infos []storage.SessionInfo
		for _, ses := range s.tenants[tenant].sessions {
			info, err := ses.info()
			if err != nil {
				return nil, err
			}
			if want(ses, &info) {
				infos = append(infos, info)
			}
		}
		slices.SortFunc(infos, func(a, b storage.SessionInfo) int { return b.Updated.Compare(a.Updated) })
		if limit > 0 && limit < len(infos) {
			infos = infos[:limit]
		}
		return infos, nil
	}
	return func(yield func(storage.SessionInfo, error) bool) {
		infos, err := list()
		if err != nil {
			yield(storage.SessionInfo{}, fmt.Errorf("%s: %w", doing, err))
			return
		}
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (ses *session) info() (storage.SessionInfo, error) {
	info := storage.SessionInfo{
		SessionKey: ses.key,
		Created:    time.Unix(0, ses.created).UTC(),
		Updated:    time.Unix(0, ses.updated).UTC(),
		Records:    furl.Seq(len(ses.records)),
		Messages:   ses.messages,
		Bytes:      ses.bytes,
	}
	if ses.meta != nil {
		if err := json.Unmarshal(ses.meta, &info.Meta); err != nil {
			return info, err
		}
	}
	return info, nil
}

// Close implements storage.Store. It discards all data.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.tenants = nil
	for w := range s.watchers {
		s.unwatch(w)
	}
	return nil
}
