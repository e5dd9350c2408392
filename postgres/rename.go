package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Renamed implements storage.Renamer.
func (s *Store) Renamed() []storage.Renamed { return s.renamed }

// renameReserved assigns new ids to sessions with reserved ids. It updates
// forks of these sessions.
func renameReserved(ctx context.Context, tx pgx.Tx) ([]storage.Renamed, error) {
	rows, err := tx.Query(ctx, `select tenant, session from furl.sessions
		where session like '-%' or session like '.%' or lower(session) = 'latest' order by tenant, session`)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r storage.Renamed, err error) {
		var tenant []byte
		err = row.Scan(&tenant, &r.Was)
		r.Tenant = furl.Tenant(tenant)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	renamed := found[:0]
	for _, r := range found {
		if !storage.ReservedID(r.Was) {
			continue
		}
		if r.Is, err = freeID(ctx, tx, r); err != nil {
			return nil, err
		}
		for _, table := range tables[:4] { // those of version 2
			if _, err := tx.Exec(ctx, `update furl.`+table+` set session = $3 where tenant = $1 and session = $2`, []byte(r.Tenant), string(r.Was), string(r.Is)); err != nil {
				return nil, err
			}
		}
		if err := moveForks(ctx, tx, r); err != nil {
			return nil, fmt.Errorf("forks of session %q: %w", r.Was, err)
		}
		renamed = append(renamed, r)
	}
	return renamed, nil
}

// freeID returns an unused id for a session of the tenant.
func freeID(ctx context.Context, tx pgx.Tx, r storage.Renamed) (furl.SessionID, error) {
	for try := 0; ; try++ {
		id := storage.UnreservedID(r.Was, try)
		var one int
		err := tx.QueryRow(ctx, `select 1 from furl.sessions where tenant = $1 and session = $2`, []byte(r.Tenant), string(id)).Scan(&one)
		if errors.Is(err, pgx.ErrNoRows) {
			return id, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// moveForks updates the forks of a session to its new id.
func moveForks(ctx context.Context, tx pgx.Tx, of storage.Renamed) error {
	rows, err := tx.Query(ctx, `select session, meta from furl.sessions where tenant = $1 and position('"fork_of"'::bytea in meta) > 0`, []byte(of.Tenant))
	if err != nil {
		return err
	}
	type fork struct {
		id   string
		meta []byte
	}
	forks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f fork, err error) {
		err = row.Scan(&f.id, &f.meta)
		return f, err
	})
	if err != nil {
		return err
	}
	for _, f := range forks {
		var meta storage.Meta
		if json.Unmarshal(f.meta, &meta) != nil || meta.ForkOf != of.Was {
			continue // damage is reported when it is read
		}
		meta.ForkOf = of.Is
		text, err := json.Marshal(meta)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update furl.sessions set meta = $3 where tenant = $1 and session = $2`, []byte(of.Tenant), f.id, text); err != nil {
			return err
		}
	}
	return nil
}
