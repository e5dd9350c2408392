package encrypted

import (
	"context"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// RestoreKeys stores the wrapped keys of tenants that were found in a damaged store, for
// a new one. Keys that are damaged are omitted: Import may have them from an export. The
// error wraps a *KeyError if the master key is missing.
func RestoreKeys(ctx context.Context, l Layer, found map[furl.Tenant][]byte) error {
	s := l.layer()
	for tenant, raw := range found {
		ring, err := parseRing(tenant, raw)
		if err == nil {
			_, err = ring.open(ctx, s.master, tenant)
		}
		if missing := (*KeyError)(nil); errors.As(err, &missing) {
			return err
		}
		if err != nil {
			continue
		}
		if err := s.SetTenantKeys(ctx, tenant, nil, raw); err != nil {
			return err
		}
	}
	return nil
}

// OpenRecord decrypts a record of another store with the same keys. One that is not
// encrypted is returned as it is.
func (s *Store) OpenRecord(ctx context.Context, key furl.SessionKey, r furl.Record) (furl.Record, error) {
	if _, sealed := r.Body.(*furl.Sealed); !sealed {
		return r, nil
	}
	k, err := s.keysOf(ctx, key.Tenant)
	if err != nil {
		return r, err
	}
	return k.record(key, r)
}

// OpenMeta decrypts the metadata of a session of another store with the same keys, in
// place.
func (s *Store) OpenMeta(ctx context.Context, key furl.SessionKey, meta *storage.Meta) error {
	k, err := s.keysOf(ctx, key.Tenant)
	if err != nil {
		return err
	}
	info := storage.SessionInfo{SessionKey: key, Meta: *meta}
	if err := k.openInfo(&info); err != nil {
		return err
	}
	*meta = info.Meta
	return nil
}

// OpenContent returns the content with a digest. It calls read with the digest by which
// a store with the same keys has it.
func (s *Store) OpenContent(ctx context.Context, key furl.SessionKey, digest furl.Digest, read func(id furl.Digest) ([]byte, error)) ([]byte, error) {
	k, err := s.keysOf(ctx, key.Tenant)
	if err != nil {
		return nil, fmt.Errorf("read content %v of session %.140q: %w", digest, key.Session, err)
	}
	if k == nil || !k.destroyed.IsZero() {
		return read(digest)
	}
	id := k.contents.of(digest[:])
	data, err := read(id)
	if errors.Is(err, storage.ErrNoContent) && k.plain {
		return read(digest)
	}
	if err != nil {
		return nil, err
	}
	content, err := k.open(nil, contentPlace(id), data)
	if err == nil && furl.DigestOf(content) != digest {
		err = fmt.Errorf("its bytes do not match the digest: %w", furl.ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("read content %v of session %.140q: %w", digest, key.Session, err)
	}
	return content, nil
}
