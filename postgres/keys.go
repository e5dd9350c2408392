package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/furlhq/furl"
)

// keysTable has the wrapped keys of tenants. Only stores with encryption have it.
const keysTable = `create table if not exists furl.tenant_keys (tenant bytea primary key, keys bytea not null)`

// noTable reports whether a statement failed because a table does not exist.
func noTable(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "42P01" // undefined_table
}

// TenantKeys implements storage.KeyStore.
func (s *Store) TenantKeys(ctx context.Context, tenant furl.Tenant) (keys []byte, err error) {
	err = s.do(ctx, func(ctx context.Context, _ bool) error {
		err := s.pool.QueryRow(ctx, `select keys from furl.tenant_keys where tenant = $1`, []byte(tenant)).Scan(&keys)
		if errors.Is(err, pgx.ErrNoRows) || noTable(err) {
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

func (s *Store) setTenantKeys(ctx context.Context, tenant furl.Tenant, was, is []byte) error {
	return s.do(ctx, func(ctx context.Context, again bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, migrationLock); err != nil {
				return err
			}
			if was == nil { // the first key of a store: a role with fewer rights can use the table
				if _, err := tx.Exec(ctx, keysTable); err != nil {
					return err
				}
			}
			var has []byte
			err := tx.QueryRow(ctx, `select keys from furl.tenant_keys where tenant = $1 for update`, []byte(tenant)).Scan(&has)
			switch {
			case err != nil && !errors.Is(err, pgx.ErrNoRows):
				return err
			case again && is != nil && bytes.Equal(has, is): // the response of the first try was lost
				return nil
			case !bytes.Equal(has, was):
				return fmt.Errorf("the keys have changed: %w", furl.ErrConflict)
			}
			if is == nil {
				_, err = tx.Exec(ctx, `delete from furl.tenant_keys where tenant = $1`, []byte(tenant))
			} else {
				_, err = tx.Exec(ctx, `insert into furl.tenant_keys values ($1, $2) on conflict (tenant) do update set keys = excluded.keys`, []byte(tenant), is)
			}
			return err
		})
	})
}

// KeyTenants implements storage.KeyStore.
func (s *Store) KeyTenants(ctx context.Context) (tenants []furl.Tenant, err error) {
	err = s.do(ctx, func(ctx context.Context, _ bool) error {
		rows, err := s.pool.Query(ctx, `select tenant from furl.tenant_keys order by tenant`)
		if err != nil {
			return err
		}
		tenants, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (furl.Tenant, error) {
			var name []byte
			err := r.Scan(&name)
			return furl.Tenant(name), err
		})
		if noTable(err) {
			tenants, err = nil, nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tenants with keys: %w", err)
	}
	return tenants, nil
}
