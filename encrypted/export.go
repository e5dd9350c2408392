package encrypted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
)

// exported is a file with the wrapped keys of a store's tenants.
type exported struct {
	Format  int              `json:"furl_tenant_keys"`
	Tenants []exportedTenant `json:"tenants"`
}

type exportedTenant struct {
	Tenant []byte          `json:"tenant"` // its name, which may be any bytes
	Keys   json.RawMessage `json:"keys"`
}

// Export returns the wrapped keys of all tenants, for a file that is kept apart
// from backups. They are of no use without the master key.
func Export(ctx context.Context, l Layer) ([]byte, error) {
	s := l.layer()
	tenants, err := s.inner.KeyTenants(ctx)
	if err != nil {
		return nil, err
	}
	out := exported{Format: ringFormat, Tenants: []exportedTenant{}}
	for _, t := range tenants {
		raw, err := s.inner.TenantKeys(ctx, t)
		if err != nil {
			return nil, err
		}
		out.Tenants = append(out.Tenants, exportedTenant{[]byte(t), raw})
	}
	return json.MarshalIndent(out, "", "  ")
}

// Import adds the keys of an export to tenants that have none, and returns the
// number of tenants it changed. A tenant that has other data keys is an error, and
// nothing is overwritten.
func Import(ctx context.Context, l Layer, data []byte) (int, error) {
	s := l.layer()
	var in exported
	if err := json.Unmarshal(data, &in); err != nil || in.Format == 0 {
		return 0, errors.New("not a file of furl encryption export")
	}
	if in.Format != ringFormat {
		return 0, fmt.Errorf("format %d of exported keys is not supported: use a newer furl", in.Format)
	}
	n := 0
	for _, t := range in.Tenants {
		tenant := furl.Tenant(t.Tenant)
		var r keyring
		if err := json.Unmarshal(t.Keys, &r); err != nil {
			return n, fmt.Errorf("the keys of tenant %q: %w", tenant, err)
		}
		had, raw, err := loadRing(ctx, s.inner, tenant)
		if err != nil {
			return n, err
		}
		if had != nil {
			if sameKeys(had, &r) {
				continue
			}
			return n, fmt.Errorf("tenant %q has other keys, or its keys were destroyed; nothing was overwritten", tenant)
		}
		var text bytes.Buffer
		if err := json.Compact(&text, t.Keys); err != nil {
			return n, err
		}
		if err := s.SetTenantKeys(ctx, tenant, raw, text.Bytes()); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// sameKeys reports whether a keyring has all data keys of another one.
func sameKeys(has, other *keyring) bool {
	for _, k := range other.Keys {
		same := func(h ringKey) bool { return h.ID == k.ID && h.Created.Equal(k.Created) }
		if !slices.ContainsFunc(has.Keys, same) {
			return false
		}
	}
	return len(other.Keys) > 0
}
