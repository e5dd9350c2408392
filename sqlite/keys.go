package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/furlhq/furl"
)

// keysTable has the wrapped keys of tenants. Only stores with encryption have it,
// so that others stay readable by earlier versions.
const keysTable = "CREATE TABLE IF NOT EXISTS tenant_keys (tenant BLOB PRIMARY KEY, keys BLOB NOT NULL) WITHOUT ROWID"

// noTable reports whether a statement failed because a table does not exist.
func noTable(err error) bool { return err != nil && strings.Contains(err.Error(), "no such table") }

// TenantKeys implements storage.KeyStore.
func (s *Store) TenantKeys(ctx context.Context, tenant furl.Tenant) ([]byte, error) {
	err := s.ready(ctx)
	var keys []byte
	if err == nil {
		err = s.row(ctx, "SELECT keys FROM tenant_keys WHERE tenant = ?", []byte(tenant)).Scan(&keys)
	}
	if errors.Is(err, sql.ErrNoRows) || noTable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.failed("read the keys of a tenant", err)
	}
	return keys, nil
}

// SetTenantKeys implements storage.KeyStore.
func (s *Store) SetTenantKeys(ctx context.Context, tenant furl.Tenant, was, is []byte) error {
	err := s.do(ctx, &job{do: func(w *writer) error {
		if err := w.exec(keysTable); err != nil {
			return err
		}
		var has []byte
		err := w.row("SELECT keys FROM tenant_keys WHERE tenant = ?", []byte(tenant)).Scan(&has)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if !bytes.Equal(has, was) {
			return refuse("the keys have changed: %w", furl.ErrConflict)
		}
		if is == nil {
			return w.exec("DELETE FROM tenant_keys WHERE tenant = ?", []byte(tenant))
		}
		return w.exec("INSERT INTO tenant_keys (tenant, keys) VALUES (?, ?) ON CONFLICT (tenant) DO UPDATE SET keys = excluded.keys", []byte(tenant), is)
	}})
	if err != nil {
		return s.failed("store the keys of a tenant", err)
	}
	return nil
}

// KeyTenants implements storage.KeyStore.
func (s *Store) KeyTenants(ctx context.Context) (tenants []furl.Tenant, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, s.failed("list tenants with keys", err)
	}
	rows, err := s.read.QueryContext(ctx, "SELECT tenant FROM tenant_keys ORDER BY tenant")
	if noTable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.failed("list tenants with keys", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name []byte
		if err := rows.Scan(&name); err != nil {
			return nil, s.failed("list tenants with keys", err)
		}
		tenants = append(tenants, furl.Tenant(name))
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed("list tenants with keys", err)
	}
	return tenants, nil
}
