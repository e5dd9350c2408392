package encrypted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// keyring is what a store has of a tenant's keys. All of them are wrapped by one
// master key.
type keyring struct {
	Format int    `json:"format"`
	Master string `json:"master,omitempty"`
	// Index is the wrapped secret of keyed digests, by which chains, contents and
	// hints are found. It stays when data keys are rotated.
	Index []byte    `json:"index,omitempty"`
	Keys  []ringKey `json:"keys,omitempty"` // the last one is for new writes
	// Plain means that the tenant may have data from before it was encrypted.
	Plain bool `json:"plain,omitempty"`
	// Destroyed is when the keys were destroyed.
	Destroyed time.Time `json:"destroyed,omitzero"`
}

// ringKey is a wrapped data key.
type ringKey struct {
	ID      uint32    `json:"id"`
	Created time.Time `json:"created"`
	Wrapped []byte    `json:"wrapped"`
}

// ringFormat is the format of keyring that this package writes.
const ringFormat = 1

// maxRingKeys bounds how often the data key of a tenant is rotated without
// encrypting its content again.
const maxRingKeys = 1000

// purpose is the context of a wrapped secret: whose it is, and which.
func purpose(tenant furl.Tenant, id uint32) []byte {
	return fmt.Appendf(nil, "furl tenant key %d of %q", id, string(tenant))
}

// newRing returns new keys for a tenant.
func newRing(ctx context.Context, m Master, tenant furl.Tenant, plain bool) (*keyring, error) {
	r := &keyring{Format: ringFormat, Master: m.ID(), Plain: plain}
	var err error
	if r.Index, err = m.Wrap(ctx, random(), purpose(tenant, 0)); err != nil {
		return nil, fmt.Errorf("wrap a key with master key %s: %w", m.ID(), err)
	}
	return r, r.add(ctx, m, tenant)
}

// add adds a data key for new writes.
func (r *keyring) add(ctx context.Context, m Master, tenant furl.Tenant) error {
	id := uint32(1)
	if n := len(r.Keys); n > 0 {
		id = r.Keys[n-1].ID + 1
	}
	if len(r.Keys) >= maxRingKeys {
		return fmt.Errorf("tenant %q has %d data keys: run furl encryption enable --all-keys first", tenant, len(r.Keys))
	}
	wrapped, err := m.Wrap(ctx, random(), purpose(tenant, id))
	if err != nil {
		return fmt.Errorf("wrap a key with master key %s: %w", m.ID(), err)
	}
	r.Keys = append(r.Keys, ringKey{ID: id, Created: time.Now().UTC().Truncate(time.Second), Wrapped: wrapped})
	return nil
}

// rewrapped returns the keyring wrapped with the master's current key.
func (r *keyring) rewrapped(ctx context.Context, m Master, tenant furl.Tenant) (*keyring, error) {
	out := *r
	out.Master = m.ID()
	again := func(wrapped []byte, id uint32) ([]byte, error) {
		secret, err := r.unwrap(ctx, m, tenant, wrapped, id)
		if err != nil {
			return nil, err
		}
		return m.Wrap(ctx, secret, purpose(tenant, id))
	}
	var err error
	if out.Index, err = again(r.Index, 0); err != nil {
		return nil, err
	}
	out.Keys = append([]ringKey(nil), r.Keys...)
	for i := range out.Keys {
		if out.Keys[i].Wrapped, err = again(out.Keys[i].Wrapped, out.Keys[i].ID); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

func (r *keyring) unwrap(ctx context.Context, m Master, tenant furl.Tenant, wrapped []byte, id uint32) ([]byte, error) {
	if m == nil {
		return nil, &KeyError{Tenant: tenant, Master: r.Master, Reason: "no master key is configured"}
	}
	secret, err := m.Unwrap(ctx, r.Master, wrapped, purpose(tenant, id))
	if errors.Is(err, ErrUnknownMaster) {
		return nil, &KeyError{Tenant: tenant, Master: r.Master, Reason: "the configured master key is " + m.ID()}
	}
	if err != nil {
		return nil, fmt.Errorf("unwrap key %d of tenant %q with master key %s: %w", id, tenant, r.Master, err)
	}
	if len(secret) != keySize {
		return nil, fmt.Errorf("unwrap key %d of tenant %q with master key %s: %d bytes, expected %d", id, tenant, r.Master, len(secret), keySize)
	}
	return secret, nil
}

// open unwraps all keys of a keyring.
func (r *keyring) open(ctx context.Context, m Master, tenant furl.Tenant) (*keys, error) {
	if !r.Destroyed.IsZero() {
		return &keys{tenant: tenant, destroyed: r.Destroyed}, nil
	}
	index, err := r.unwrap(ctx, m, tenant, r.Index, 0)
	if err != nil {
		return nil, err
	}
	k := &keys{tenant: tenant, plain: r.Plain, data: make(map[uint32]*dataKey, len(r.Keys))}
	k.setIndex(index)
	for _, d := range r.Keys {
		secret, err := r.unwrap(ctx, m, tenant, d.Wrapped, d.ID)
		if err != nil {
			return nil, err
		}
		k.active = newDataKey(d.ID, secret)
		k.data[d.ID] = k.active
	}
	if k.active == nil {
		return nil, fmt.Errorf("the keys of tenant %q have no data key: %w", tenant, furl.ErrDamaged)
	}
	return k, nil
}

// loadRing reads a tenant's keyring; nil if it has none. raw is what the store has.
func loadRing(ctx context.Context, store storage.KeyStore, tenant furl.Tenant) (r *keyring, raw []byte, err error) {
	raw, err = store.TenantKeys(ctx, tenant)
	if err != nil || raw == nil {
		return nil, nil, err
	}
	r, err = parseRing(tenant, raw)
	return r, raw, err
}

// parseRing decodes a keyring as a store has it.
func parseRing(tenant furl.Tenant, raw []byte) (*keyring, error) {
	r := &keyring{}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("read the keys of tenant %q: %w: %w", tenant, furl.ErrDamaged, err)
	}
	if r.Format != ringFormat {
		return nil, fmt.Errorf("read the keys of tenant %q: format %d is not supported: use a newer furl", tenant, r.Format)
	}
	return r, nil
}

// saveRing replaces a tenant's keyring.
func saveRing(ctx context.Context, store storage.KeyStore, tenant furl.Tenant, was []byte, r *keyring) error {
	is, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return store.SetTenantKeys(ctx, tenant, was, is)
}
