package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
)

// TenantKeys implements storage.KeyStore.
func (s *Store) TenantKeys(ctx context.Context, tenant furl.Tenant) (keys []byte, err error) {
	err = s.doHere(ctx, func(ctx context.Context, _ bool) error {
		err := s.pool.QueryRow(ctx, `select keys from furl.tenant_keys where tenant = $1`, []byte(tenant)).Scan(&keys)
		if errors.Is(err, pgx.ErrNoRows) {
			keys, err = nil, nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the keys of a tenant: %w", err)
	}
	return keys, nil
}

// SetTenantKeys implements storage.KeyStore.
func (s *Store) SetTenantKeys(ctx context.Context, tenant furl.Tenant, was, is []byte) error {
	if err := s.setTenantKeys(ctx, tenant, was, is); err != nil {
		return fmt.Errorf("store the keys of a tenant: %w", err)
	}
	return nil
}

// setTenantKeys compares and sets in one statement: on Citus the table is on every
// node, and a lock that is held meanwhile would be on one node only.
func (s *Store) setTenantKeys(ctx context.Context, tenant furl.Tenant, was, is []byte) error {
	const (
		first   = `insert into furl.tenant_keys (tenant, keys) values ($1, $2) on conflict (tenant) do nothing`
		replace = `update furl.tenant_keys set keys = $2 where tenant = $1 and keys = $3`
		destroy = `delete from furl.tenant_keys where tenant = $1 and keys = $2`
	)
	sql, args := replace, []any{[]byte(tenant), is, was}
	switch {
	case is == nil && was == nil:
		sql = ""
	case is == nil:
		sql, args = destroy, []any{[]byte(tenant), was}
	case was == nil:
		sql, args = first, args[:2]
	}
	return s.do(ctx, func(ctx context.Context, again bool) error {
		if sql != "" {
			if tag, err := s.pool.Exec(ctx, sql, args...); err != nil || tag.RowsAffected() > 0 {
				return err
			}
		}
		var has []byte
		err := s.pool.QueryRow(ctx, `select keys from furl.tenant_keys where tenant = $1`, []byte(tenant)).Scan(&has)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if bytes.Equal(has, is) && (again || sql == "") { // the response of the first try was lost
			return nil
		}
		return fmt.Errorf("the keys have changed: %w", furl.ErrConflict)
	})
}

// KeyTenants implements storage.KeyStore.
func (s *Store) KeyTenants(ctx context.Context) (tenants []furl.Tenant, err error) {
	if tenants, err = s.tenants(ctx, `select tenant from furl.tenant_keys order by tenant`); err != nil {
		return nil, fmt.Errorf("list tenants with keys: %w", err)
	}
	return tenants, nil
}
