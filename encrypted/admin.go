package encrypted

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Status is what is known of a tenant's encryption, without a master key.
type Status struct {
	Tenant furl.Tenant `json:"tenant"`
	// Encrypted says that new data is encrypted, and Plain that there may be data
	// from before that, which Enable encrypts.
	Encrypted bool `json:"encrypted"`
	Plain     bool `json:"plain,omitempty"`
	// Master is the id of the master key that the tenant's keys are wrapped with.
	Master string `json:"master,omitempty"`
	// Keys is the number of data keys, Key the number of the one for new writes, and
	// Created when that one was made.
	Keys      int       `json:"keys,omitempty"`
	Key       uint32    `json:"key,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	Destroyed time.Time `json:"destroyed,omitzero"`
}

// Statuses returns the status of every tenant that has sessions or keys.
func Statuses(ctx context.Context, l Layer) ([]Status, error) {
	s := l.layer()
	tenants, err := s.everyTenant(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Status, 0, len(tenants))
	for _, tenant := range tenants {
		r, _, err := loadRing(ctx, s.inner, tenant)
		if err != nil {
			return nil, err
		}
		st := Status{Tenant: tenant, Plain: r == nil}
		if r != nil {
			st.Encrypted, st.Plain, st.Master, st.Destroyed, st.Keys = r.Destroyed.IsZero(), r.Plain, r.Master, r.Destroyed, len(r.Keys)
			if n := len(r.Keys); n > 0 {
				st.Key, st.Created = r.Keys[n-1].ID, r.Keys[n-1].Created
			}
		}
		out = append(out, st)
	}
	return out, nil
}

// everyTenant returns the tenants that have sessions or keys.
func (s *Store) everyTenant(ctx context.Context) ([]furl.Tenant, error) {
	tenants, err := s.inner.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	more, err := s.inner.KeyTenants(ctx)
	if err != nil {
		return nil, err
	}
	has := make(map[furl.Tenant]bool, len(tenants))
	for _, t := range tenants {
		has[t] = true
	}
	for _, t := range more {
		if !has[t] {
			tenants = append(tenants, t)
		}
	}
	return tenants, nil
}

// change loads, changes and stores a tenant's keyring, again if another process
// changes it meanwhile. If work returns nil, nothing is stored.
func (s *Store) change(ctx context.Context, tenant furl.Tenant, work func(*keyring) (*keyring, error)) error {
	defer s.forget(tenant)
	for {
		r, raw, err := loadRing(ctx, s.inner, tenant)
		if err != nil {
			return err
		}
		if r == nil {
			return fmt.Errorf("tenant %q has no encryption keys", tenant)
		}
		if !r.Destroyed.IsZero() {
			return &KeyError{Tenant: tenant, Destroyed: r.Destroyed}
		}
		changed, err := work(r)
		if err != nil || changed == nil {
			return err
		}
		if err = saveRing(ctx, s.inner, tenant, raw, changed); !errors.Is(err, furl.ErrConflict) {
			return err
		}
	}
}

// RotateMaster wraps the keys of a tenant with the current master key, and reports
// whether they were wrapped with another one. The content is not touched.
func RotateMaster(ctx context.Context, l Layer, tenant furl.Tenant) (changed bool, err error) {
	s := l.layer()
	if s.master == nil {
		return false, errNoMaster
	}
	err = s.change(ctx, tenant, func(r *keyring) (*keyring, error) {
		if changed = r.Master != s.master.ID(); !changed {
			return nil, nil
		}
		return r.rewrapped(ctx, s.master, tenant)
	})
	return changed && err == nil, err
}

// RotateKey makes a new data key for what a tenant writes from now on, and returns
// its number. Other processes use it within seconds. What was written before stays
// readable with the older keys.
func RotateKey(ctx context.Context, l Layer, tenant furl.Tenant) (key uint32, err error) {
	s := l.layer()
	if s.master == nil {
		return 0, errNoMaster
	}
	err = s.change(ctx, tenant, func(r *keyring) (*keyring, error) {
		if r.Master != s.master.ID() {
			var err error
			if r, err = r.rewrapped(ctx, s.master, tenant); err != nil {
				return nil, err
			}
		}
		if err := r.add(ctx, s.master, tenant); err != nil {
			return nil, err
		}
		key = r.Keys[len(r.Keys)-1].ID
		return r, nil
	})
	return key, err
}

var errNoMaster = errors.New("no master key: set encryption.key_file or encryption.key_env in the configuration")

// Destroy destroys the keys of a tenant: its content cannot be read any more, by
// this store or from a backup without the keys. It needs no master key. The
// sessions stay, without titles, until they are deleted. If the tenant or one of its
// sessions is under legal hold, the error is a *storage.HeldError.
func Destroy(ctx context.Context, l Layer, tenant furl.Tenant) error {
	s := l.layer()
	holds, err := storage.Holds(ctx, l)
	if err != nil {
		return err
	}
	for _, h := range holds {
		if h.Tenant == tenant || tenant == storage.HoldTenant {
			return &storage.HeldError{Session: furl.SessionKey{Tenant: tenant, Session: h.Session}, Hold: h}
		}
	}
	err = s.change(ctx, tenant, func(r *keyring) (*keyring, error) {
		if r.Plain {
			return nil, fmt.Errorf("tenant %q has content from before encryption, which destroying the keys would not destroy: run furl encryption enable first", tenant)
		}
		return &keyring{Format: ringFormat, Destroyed: time.Now().UTC().Truncate(time.Second)}, nil
	})
	if err != nil {
		return err
	}
	return s.inner.Scrub(ctx)
}

// Enable encrypts what a tenant has from before encryption, session by session, and
// with again everything that an older data key encrypts, which is then removed.
// It can be repeated after it was interrupted; sessions that are encrypted already
// are read only. each is called after each session, with the number of records
// that were encrypted.
func Enable(ctx context.Context, l Layer, tenant furl.Tenant, again bool, each func(session furl.SessionID, records int)) error {
	s := l.layer()
	if s.master == nil {
		return errNoMaster
	}
	k, err := s.keysForWrite(ctx, tenant)
	if err != nil {
		return err
	}
	lenient := *k
	lenient.plain = true
	left, err := s.encryptAll(ctx, &lenient, encryption{again: again, all: again}, each)
	// Another process may have written meanwhile what it should not have, because it
	// did not know the keys yet.
	for tries := 0; err == nil && left > 0 && tries < 5; tries++ {
		left, err = s.encryptAll(ctx, &lenient, encryption{again: again}, func(furl.SessionID, int) {})
	}
	if err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("tenant %q: another process keeps writing without the newest key: stop it, and repeat the command", tenant)
	}
	// Deleted bytes are overwritten before the tenant counts as encrypted: after an
	// interruption all of it is done again.
	if err := s.inner.Scrub(ctx); err != nil {
		return err
	}
	return s.change(ctx, tenant, func(r *keyring) (*keyring, error) {
		r.Plain = false
		// A process that does not know the newest key yet may still use the one before.
		if n := len(r.Keys); again && r.Keys[n-1].ID == k.active.id && time.Since(r.Keys[n-1].Created) > keyInUse {
			r.Keys = r.Keys[n-1:]
		}
		return r, nil
	})
}

// keyInUse is how long older data keys are kept at least.
const keyInUse = time.Minute

// encryption says what to encrypt.
type encryption struct {
	again bool // what another data key than the newest encrypts
	all   bool // sessions of which nothing is to be encrypted lose their index, too
}

// encryptAll encrypts the sessions of a tenant, and returns how many were changed.
func (s *Store) encryptAll(ctx context.Context, k *keys, e encryption, each func(session furl.SessionID, records int)) (changed int, err error) {
	var all []storage.SessionInfo
	for info, err := range s.inner.Sessions(ctx, k.tenant, storage.SessionQuery{}) {
		if err != nil {
			return 0, err
		}
		all = append(all, info)
	}
	for _, info := range all {
		n, done, err := s.encryptSession(ctx, k, info.SessionKey, e)
		if errors.Is(err, storage.ErrNoSession) { // deleted meanwhile
			continue
		}
		if err != nil {
			return changed, fmt.Errorf("encrypt session %s: %w", info.Session, err)
		}
		if done {
			changed++
		}
		each(info.Session, n)
	}
	return changed, nil
}

// encryptSession encrypts a session in one step. It returns the number of records
// that were encrypted, and whether anything was.
func (s *Store) encryptSession(ctx context.Context, k *keys, key furl.SessionKey, e encryption) (records int, changed bool, err error) {
	for {
		records, changed, err = s.encryptOnce(ctx, k, key, e)
		if !errors.Is(err, furl.ErrConflict) { // else it grew
			return records, changed, err
		}
	}
}

func (s *Store) encryptOnce(ctx context.Context, k *keys, key furl.SessionKey, e encryption) (records int, changed bool, err error) {
	info, err := s.info(ctx, key)
	if err != nil {
		return 0, false, err
	}
	if info == nil {
		return 0, false, storage.ErrNoSession
	}
	w := storage.Rewrite{Records: info.Records}
	b := storage.Batch{}
	fresh := func(data []byte) bool { return sealedForm(data) && (!e.again || k.isActive(data)) }
	for r, err := range s.inner.Read(ctx, key, 0) {
		if err != nil {
			return 0, false, err
		}
		if r.Seq > info.Records {
			break
		}
		if x, ok := r.Body.(*furl.Sealed); ok && fresh(x.Data) {
			continue
		}
		if r, err = k.record(key, r); err != nil {
			return 0, false, err
		}
		b.Records = append(b.Records, r)
	}
	ids, err := s.inner.ContentIDs(ctx, key)
	if err != nil {
		return 0, false, err
	}
	for _, id := range ids {
		data, err := s.inner.Content(ctx, key, id)
		if err != nil {
			return 0, false, err
		}
		switch {
		case furl.DigestOf(data) == id:
		case fresh(data):
			continue
		default:
			if data, err = k.open(nil, contentPlace(id), data); err != nil {
				return 0, false, fmt.Errorf("content %v: %w", id, err)
			}
		}
		w.DropContents, b.Contents = append(w.DropContents, id), append(b.Contents, data)
	}
	was := info.Meta
	hasMeta := was.Sealed != nil || !isZero(&was)
	if hasMeta && !fresh(was.Sealed) {
		if err := k.openInfo(info); err != nil {
			return 0, false, err
		}
		b.Meta, w.MetaWas = &info.Meta, &was
	}
	if len(b.Records) == 0 && len(b.Contents) == 0 && b.Meta == nil && !e.all {
		return 0, false, nil
	}
	sealed, err := k.sealBatch(key.Session, &b)
	if err != nil {
		return 0, false, err
	}
	w.Put, w.Contents, w.ContentIDs, w.Meta = sealed.Records, sealed.Contents, sealed.ContentIDs, sealed.Meta
	return len(w.Put), true, s.inner.Rewrite(ctx, key, w)
}

// isZero reports whether there is no metadata.
func isZero(m *storage.Meta) bool {
	empty := storage.Batch{Meta: m, MetaWas: m}
	return empty.MetaMatches(nil)
}
