package encrypted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Inner is what a store must be able to do to be encrypted.
type Inner interface {
	storage.Store
	storage.Searchable
	storage.VectorStore
	storage.Watcher
	storage.Deleter
	storage.Checker
	storage.TenantLister
	storage.ContentStore
	storage.Rewriter
	storage.KeyStore
}

// Layer is a store with encryption. It is also a storage.EarlyAppender, storage.Stager,
// storage.Versioned and storage.ManyDeleter if the store below is.
type Layer interface {
	Inner
	// Inner returns the store below.
	Inner() storage.Store
	// OpenRecord, OpenMeta and OpenContent decrypt what another store has, see the
	// methods of Store.
	OpenRecord(ctx context.Context, key furl.SessionKey, r furl.Record) (furl.Record, error)
	OpenMeta(ctx context.Context, key furl.SessionKey, meta *storage.Meta) error
	OpenContent(ctx context.Context, key furl.SessionKey, digest furl.Digest, read func(id furl.Digest) ([]byte, error)) ([]byte, error)
	layer() *Store
}

// New returns a store that encrypts what it writes to inner, and decrypts what it
// reads. Closing it closes inner. If master is nil, tenants without keys are
// stored as they are, and others are refused with a *KeyError. With a master key,
// a tenant gets its keys with its first append; what it had before stays as it is
// until Enable encrypts it.
func New(inner Inner, master Master) Layer {
	s := &Store{inner: inner, master: master, tenants: make(map[furl.Tenant]*cached)}
	if l, ok := inner.(localInner); ok {
		return &localStore{s, l}
	}
	return s
}

// Store is a store with encryption, made by New.
type Store struct {
	inner  Inner
	master Master // nil: none

	mu      sync.Mutex
	tenants map[furl.Tenant]*cached
}

// localInner are abilities that only stores of one machine have.
type localInner interface {
	storage.EarlyAppender
	storage.Stager
	storage.Versioned
	storage.ManyDeleter
}

// localStore is a Store over one with all of them.
type localStore struct {
	*Store
	local localInner
}

var (
	_ Layer      = (*Store)(nil)
	_ localInner = (*localStore)(nil)
)

// Inner implements Layer.
func (s *Store) Inner() storage.Store { return s.inner }

func (s *Store) layer() *Store { return s }

// cached is what is known of a tenant's keys.
type cached struct {
	raw  []byte // as stored
	keys *keys  // nil: none
	at   time.Time
}

// keysFresh is how long a process uses keys before it checks whether another
// process has changed them. With the second for which a session in memory is not
// compared with the store (session.Options.Poll), destroyed keys are noticed within
// two seconds.
const keysFresh = time.Second

// maxTenants is how many tenants' keys are kept.
const maxTenants = 4096

// keysOf returns a tenant's keys, nil if it has none.
func (s *Store) keysOf(ctx context.Context, tenant furl.Tenant) (*keys, error) {
	s.mu.Lock()
	had := s.tenants[tenant]
	s.mu.Unlock()
	if had != nil && time.Since(had.at) < keysFresh {
		return had.keys, nil
	}
	ring, raw, err := loadRing(ctx, s.inner, tenant)
	now := &cached{raw: raw, at: time.Now()}
	switch {
	case err != nil:
		return nil, err
	case ring == nil:
	case had != nil && had.keys != nil && bytes.Equal(had.raw, raw):
		now.keys = had.keys
	default:
		if now.keys, err = ring.open(ctx, s.master, tenant); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tenants) >= maxTenants {
		clear(s.tenants)
	}
	s.tenants[tenant] = now
	return now.keys, nil
}

// forget makes the next operation read a tenant's keys.
func (s *Store) forget(tenant furl.Tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tenants, tenant)
}

// keysForWrite is keysOf that makes keys for a tenant that has none, if there is
// a master key.
func (s *Store) keysForWrite(ctx context.Context, tenant furl.Tenant) (*keys, error) {
	k, err := s.keysOf(ctx, tenant)
	if err == nil && k == nil && s.master != nil {
		if err = s.newKeys(ctx, tenant); err == nil {
			k, err = s.keysOf(ctx, tenant)
		}
	}
	if err == nil && k != nil && !k.destroyed.IsZero() {
		err = &KeyError{Tenant: tenant, Destroyed: k.destroyed}
	}
	return k, err
}

// newKeys makes the keys of a tenant, unless it has some.
func (s *Store) newKeys(ctx context.Context, tenant furl.Tenant) error {
	plain := false
	for _, err := range s.inner.Sessions(ctx, tenant, storage.SessionQuery{Limit: 1}) {
		if err != nil {
			return err
		}
		plain = true
	}
	r, err := newRing(ctx, s.master, tenant, plain)
	if err != nil {
		return err
	}
	err = saveRing(ctx, s.inner, tenant, nil, r)
	s.forget(tenant)
	if errors.Is(err, furl.ErrConflict) { // another process made them
		return nil
	}
	return err
}

// Append implements storage.Store.
func (s *Store) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	return s.append(ctx, key, b, s.inner.Append)
}

// AppendEarly implements storage.EarlyAppender.
func (s *localStore) AppendEarly(ctx context.Context, key furl.SessionKey, b storage.Batch, committed func()) error {
	called := false
	err := s.append(ctx, key, b, func(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
		return s.local.AppendEarly(ctx, key, b, func() { called = true; committed() })
	})
	if err == nil && !called { // it was appended before
		committed()
	}
	return err
}

// Stage implements storage.Stager. What is encrypted is staged by its append: the keys may
// change until then.
func (s *localStore) Stage(ctx context.Context, key furl.SessionKey, b storage.Batch) (storage.Staged, error) {
	a := &staged{s: s, key: key, batch: b}
	err := storage.CheckBatch(key, &b)
	var k *keys
	if err == nil {
		k, err = s.keysForWrite(ctx, key.Tenant)
	}
	if err == nil && k == nil {
		a.plain, err = s.local.Stage(ctx, key, b)
	}
	if err != nil {
		return nil, fmt.Errorf("append to session %.140q: %w", key.Session, err)
	}
	return a, nil
}

type staged struct {
	s     *localStore
	key   furl.SessionKey
	batch storage.Batch
	plain storage.Staged // of a tenant without keys
}

// Append implements storage.Staged.
func (a *staged) Append(ctx context.Context, committed func()) error {
	if k, err := a.s.keysForWrite(ctx, a.key.Tenant); err == nil && k == nil && a.plain != nil {
		return a.plain.Append(ctx, committed)
	}
	return a.s.AppendEarly(ctx, a.key, a.batch, committed)
}

type appender func(ctx context.Context, key furl.SessionKey, b storage.Batch) error

func (s *Store) append(ctx context.Context, key furl.SessionKey, b storage.Batch, inner appender) error {
	failed := func(err error) error { return fmt.Errorf("append to session %.140q: %w", key.Session, err) }
	if err := storage.CheckBatch(key, &b); err != nil {
		return failed(err)
	}
	k, err := s.keysForWrite(ctx, key.Tenant)
	if err != nil {
		return failed(err)
	}
	if k == nil {
		return inner(ctx, key, b)
	}
	sealed, err := k.sealBatch(key.Session, &b)
	if err != nil {
		return failed(err)
	}
	err = inner(ctx, key, *sealed)
	if !errors.Is(err, furl.ErrConflict) {
		return err
	}
	// Under another data key, the same records and the same metadata have other
	// bytes.
	if same, e := s.repeats(ctx, key, &b); e != nil || same {
		return e
	}
	if b.Meta == nil || b.MetaWas == nil {
		return err
	}
	was, e := s.sameMeta(ctx, key, k, &b)
	if e != nil || was == nil {
		return errors.Join(err, e)
	}
	sealed.MetaWas = was
	return inner(ctx, key, *sealed)
}

// repeats reports whether the session has the records of a batch already.
func (s *Store) repeats(ctx context.Context, key furl.SessionKey, b *storage.Batch) (bool, error) {
	n := 0
	if len(b.Records) == 0 {
		return false, nil
	}
	for r, err := range s.Read(ctx, key, b.Records[0].Seq-1) {
		if err != nil {
			if errors.Is(err, storage.ErrNoSession) {
				err = nil
			}
			return false, err
		}
		head, body, err := record.Encode(b.Records[n])
		if err != nil {
			return false, err
		}
		hadHead, hadBody, err := record.Encode(r)
		if err != nil || !bytes.Equal(head, hadHead) || !bytes.Equal(body, hadBody) {
			return false, err
		}
		if n++; n == len(b.Records) {
			return true, nil
		}
	}
	return false, nil
}

// sameMeta returns what the store below has as metadata of a session, if a batch
// may replace it; else nil.
func (s *Store) sameMeta(ctx context.Context, key furl.SessionKey, k *keys, b *storage.Batch) (*storage.Meta, error) {
	info, err := s.info(ctx, key)
	if err != nil || info == nil {
		return nil, err
	}
	was := info.Meta
	if err := k.openInfo(info); err != nil {
		return nil, err
	}
	if !matches(b, &info.Meta) {
		return nil, nil
	}
	return &was, nil
}

// info returns what the store below tells of a session, nil if there is none.
func (s *Store) info(ctx context.Context, key furl.SessionKey) (*storage.SessionInfo, error) {
	info, err := storage.Info(ctx, s.inner, key)
	if errors.Is(err, storage.ErrNoSession) {
		return nil, nil
	}
	return &info, err
}

// errPlain is the error for data that is not encrypted, of a tenant that has no
// such data.
var errPlain = fmt.Errorf("it is not encrypted, but the tenant is: a process without the key has written it, or it was replaced; "+
	"check it, then run furl encryption enable: %w", furl.ErrDamaged)

// record opens a record. k is nil if the tenant has no keys.
func (k *keys) record(key furl.SessionKey, r furl.Record) (furl.Record, error) {
	_, sealed := r.Body.(*furl.Sealed)
	switch {
	case !sealed && (k == nil || k.plain):
		return r, nil
	case !sealed:
		return r, fmt.Errorf("record %d: %w", r.Seq, errPlain)
	case k == nil:
		return r, &KeyError{Tenant: key.Tenant}
	}
	return k.openRecord(key.Session, &r)
}

// Read implements storage.Store.
func (s *Store) Read(ctx context.Context, key furl.SessionKey, after furl.Seq) iter.Seq2[furl.Record, error] {
	return func(yield func(furl.Record, error) bool) {
		fail := func(err error) { yield(furl.Record{}, fmt.Errorf("read session %.140q: %w", key.Session, err)) }
		k, err := s.keysOf(ctx, key.Tenant)
		if err != nil {
			fail(err)
			return
		}
		s.open(key, k, s.inner.Read(ctx, key, after))(yield)
	}
}

// open decrypts the records of a session. If the keys were destroyed, it fails even if
// there are no records, so that a caller that has all of them in memory notices it.
func (s *Store) open(key furl.SessionKey, k *keys, records iter.Seq2[furl.Record, error]) iter.Seq2[furl.Record, error] {
	return func(yield func(furl.Record, error) bool) {
		destroyed := k != nil && !k.destroyed.IsZero()
		fail := func(err error) { yield(furl.Record{}, fmt.Errorf("read session %.140q: %w", key.Session, err)) }
		for r, err := range records {
			if err != nil {
				yield(furl.Record{}, err)
				return
			}
			if destroyed {
				break
			}
			if r, err = k.record(key, r); err != nil {
				var lost *KeyError
				if errors.As(err, &lost) && lost.Key != 0 { // another process may have rotated it
					s.forget(key.Tenant)
				}
				fail(err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
		if destroyed {
			fail(&KeyError{Tenant: k.tenant, Destroyed: k.destroyed})
		}
	}
}

// ReadInfo implements storage.InfoReader.
func (s *Store) ReadInfo(ctx context.Context, key furl.SessionKey, after furl.Seq) (storage.SessionInfo, iter.Seq2[furl.Record, error], error) {
	fail := func(err error) error { return fmt.Errorf("read session %.140q: %w", key.Session, err) }
	k, err := s.keysOf(ctx, key.Tenant)
	if err != nil {
		return storage.SessionInfo{}, nil, fail(err)
	}
	info, records, err := storage.ReadInfo(ctx, s.inner, key, after)
	if err == nil {
		err = k.openInfo(&info)
	}
	if err != nil {
		return storage.SessionInfo{}, nil, fail(err)
	}
	return info, s.open(key, k, records), nil
}

// Content implements storage.ContentStore.
func (s *Store) Content(ctx context.Context, key furl.SessionKey, digest furl.Digest) ([]byte, error) {
	return s.OpenContent(ctx, key, digest, func(id furl.Digest) ([]byte, error) { return s.inner.Content(ctx, key, id) })
}

func contentPlace(id furl.Digest) place { return place{kind: contentKind, name: string(id[:])} }

// Match implements storage.Store.
func (s *Store) Match(ctx context.Context, tenant furl.Tenant, chains []furl.Digest, limit int) ([]storage.Matched, error) {
	k, err := s.keysOf(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	if k == nil {
		return s.inner.Match(ctx, tenant, chains, limit)
	}
	if !k.destroyed.IsZero() {
		return nil, nil
	}
	was := make(map[furl.Digest]furl.Digest, len(chains))
	keyed := make([]furl.Digest, 0, len(chains))
	for _, c := range chains {
		if c.IsZero() {
			continue
		}
		id := k.chains.of(c[:])
		was[id], keyed = c, append(keyed, id)
		if k.plain {
			was[c], keyed = c, append(keyed, c)
		}
	}
	found, err := s.inner.Match(ctx, tenant, keyed, limit)
	for i := range found {
		found[i].Chain = was[found[i].Chain]
	}
	return found, err
}

// Sessions implements storage.Store.
func (s *Store) Sessions(ctx context.Context, tenant furl.Tenant, q storage.SessionQuery) iter.Seq2[storage.SessionInfo, error] {
	return func(yield func(storage.SessionInfo, error) bool) {
		k, err := s.keysOf(ctx, tenant)
		if err != nil {
			yield(storage.SessionInfo{}, fmt.Errorf("list sessions: %w", err))
			return
		}
		inner := q
		hint, limit := "", 0
		switch {
		case k == nil || q.Hint == "":
		case !k.destroyed.IsZero():
			return
		case k.plain: // some sessions have it as it is
			hint, limit = q.Hint, q.Limit
			inner.Hint, inner.Limit = "", 0
		default:
			inner.Hint = k.hint(q.Hint)
		}
		n := 0
		for info, err := range s.infos(k, s.inner.Sessions(ctx, tenant, inner)) {
			if err == nil && hint != "" && info.Hint != hint {
				continue
			}
			if n++; limit > 0 && n > limit || !yield(info, err) {
				return
			}
		}
	}
}

// Unindexed implements storage.Searchable.
func (s *Store) Unindexed(ctx context.Context, tenant furl.Tenant) iter.Seq2[storage.SessionInfo, error] {
	return func(yield func(storage.SessionInfo, error) bool) {
		k, err := s.keysOf(ctx, tenant)
		if err != nil {
			yield(storage.SessionInfo{}, fmt.Errorf("list sessions to index: %w", err))
			return
		}
		if k != nil && !k.destroyed.IsZero() {
			return
		}
		for info, err := range s.infos(k, s.inner.Unindexed(ctx, tenant)) {
			if !yield(info, err) {
				return
			}
		}
	}
}

// infos opens what the store below tells about sessions.
func (s *Store) infos(k *keys, list iter.Seq2[storage.SessionInfo, error]) iter.Seq2[storage.SessionInfo, error] {
	return func(yield func(storage.SessionInfo, error) bool) {
		for info, err := range list {
			if err == nil {
				if err = k.openInfo(&info); err != nil {
					info, err = storage.SessionInfo{}, fmt.Errorf("session %s: %w", info.Session, err)
				}
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// Indexed implements storage.Searchable.
func (s *Store) Indexed(ctx context.Context, key furl.SessionKey) (furl.Seq, error) {
	return s.inner.Indexed(ctx, key)
}

// Watch implements storage.Watcher.
func (s *Store) Watch(ctx context.Context, key furl.SessionKey) (<-chan struct{}, error) {
	return s.inner.Watch(ctx, key)
}

// Ping implements storage.Pinger. It needs the keys of the tenant "", if there are any.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.keysOf(ctx, ""); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return storage.Ping(ctx, s.inner)
}

// Tenants implements storage.TenantLister.
func (s *Store) Tenants(ctx context.Context) ([]furl.Tenant, error) { return s.inner.Tenants(ctx) }

// Stats implements storage.Checker. It needs no key.
func (s *Store) Stats(ctx context.Context) (storage.Stats, error) { return s.inner.Stats(ctx) }

// Delete implements storage.Deleter. It needs no key.
func (s *Store) Delete(ctx context.Context, key furl.SessionKey) error {
	return s.inner.Delete(ctx, key)
}

// DeleteMany implements storage.ManyDeleter.
func (s *localStore) DeleteMany(ctx context.Context, keys []furl.SessionKey) error {
	return s.local.DeleteMany(ctx, keys)
}

// Version implements storage.Versioned.
func (s *localStore) Version(ctx context.Context) (uint64, error) { return s.local.Version(ctx) }

// Scrub implements storage.Rewriter.
func (s *Store) Scrub(ctx context.Context) error { return s.inner.Scrub(ctx) }

// Renamed implements storage.Renamer.
func (s *Store) Renamed() []storage.Renamed {
	if r, ok := s.inner.(storage.Renamer); ok {
		return r.Renamed()
	}
	return nil
}

// AloneAt implements storage.Exclusive.
func (s *Store) AloneAt() time.Time {
	if e, ok := s.inner.(storage.Exclusive); ok {
		return e.AloneAt()
	}
	return time.Time{}
}

// TenantKeys, SetTenantKeys and KeyTenants implement storage.KeyStore.
func (s *Store) TenantKeys(ctx context.Context, tenant furl.Tenant) ([]byte, error) {
	return s.inner.TenantKeys(ctx, tenant)
}

// SetTenantKeys implements storage.KeyStore.
func (s *Store) SetTenantKeys(ctx context.Context, tenant furl.Tenant, was, is []byte) error {
	s.forget(tenant)
	defer s.forget(tenant)
	return s.inner.SetTenantKeys(ctx, tenant, was, is)
}

// KeyTenants implements storage.KeyStore.
func (s *Store) KeyTenants(ctx context.Context) ([]furl.Tenant, error) {
	return s.inner.KeyTenants(ctx)
}

// Close implements storage.Store.
func (s *Store) Close() error { return s.inner.Close() }

// Rewrite implements storage.Rewriter.
func (s *Store) Rewrite(ctx context.Context, key furl.SessionKey, w storage.Rewrite) error {
	k, err := s.keysOf(ctx, key.Tenant)
	if err == nil && k != nil {
		err = s.sealRewrite(ctx, k, key, &w)
	}
	if err != nil {
		return fmt.Errorf("rewrite session %.140q: %w", key.Session, err)
	}
	return s.inner.Rewrite(ctx, key, w)
}

// sealRewrite encrypts the parts of a rewrite.
func (s *Store) sealRewrite(ctx context.Context, k *keys, key furl.SessionKey, w *storage.Rewrite) error {
	if !k.destroyed.IsZero() {
		return &KeyError{Tenant: key.Tenant, Destroyed: k.destroyed}
	}
	b := w.Batch()
	b.Records = w.Put
	sealed, err := k.sealBatch(key.Session, b)
	if err != nil {
		return err
	}
	drop := slices.Clone(w.DropContents) // those from before encryption
	for _, d := range w.DropContents {
		drop = append(drop, k.contents.of(d[:]))
	}
	if b.Meta != nil && b.MetaWas != nil {
		was, err := s.sameMeta(ctx, key, k, b)
		if err != nil {
			return err
		}
		if was == nil {
			return fmt.Errorf("the session's metadata has changed: %w", furl.ErrConflict)
		}
		sealed.MetaWas = was
	}
	w.Put, w.DropContents = sealed.Records, drop
	w.Contents, w.ContentIDs = sealed.Contents, sealed.ContentIDs
	w.Meta, w.MetaWas = sealed.Meta, sealed.MetaWas
	return nil
}

// ContentIDs implements storage.Rewriter: the SHA-256 of contents.
func (s *Store) ContentIDs(ctx context.Context, key furl.SessionKey) ([]furl.Digest, error) {
	k, err := s.keysOf(ctx, key.Tenant)
	if err != nil {
		return nil, fmt.Errorf("list contents of session %.140q: %w", key.Session, err)
	}
	ids, err := s.inner.ContentIDs(ctx, key)
	if err != nil || k == nil {
		return ids, err
	}
	for i, id := range ids {
		data, err := s.inner.Content(ctx, key, id)
		if err != nil {
			return nil, err
		}
		if k.plain && furl.DigestOf(data) == id {
			continue
		}
		content, err := k.open(nil, contentPlace(id), data)
		if err != nil {
			return nil, fmt.Errorf("read content %v of session %.140q: %w", id, key.Session, err)
		}
		ids[i] = furl.DigestOf(content)
	}
	return ids, nil
}
