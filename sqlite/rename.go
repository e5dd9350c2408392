package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Renamed implements storage.Renamer.
func (s *Store) Renamed() []storage.Renamed {
	if s.write == nil {
		return nil
	}
	return s.write.renamed
}

// renameReserved assigns new ids to sessions with reserved ids, in the
// transaction of conn. It updates forks of these sessions.
func renameReserved(ctx context.Context, conn *sql.Conn) ([]storage.Renamed, error) {
	found, err := reservedIn(ctx, conn)
	if err != nil {
		return nil, err
	}
	renamed := make([]storage.Renamed, 0, len(found))
	for _, f := range found {
		is, err := freeID(ctx, conn, f)
		if err != nil {
			return nil, err
		}
		if _, err := conn.ExecContext(ctx, "UPDATE sessions SET name = ? WHERE id = ?", string(is), f.id); err != nil {
			return nil, err
		}
		if err := moveForks(ctx, conn, f, is); err != nil {
			return nil, fmt.Errorf("forks of session %q: %w", f.key.Session, err)
		}
		renamed = append(renamed, storage.Renamed{Tenant: f.key.Tenant, Was: f.key.Session, Is: is})
	}
	return renamed, nil
}

func reservedIn(ctx context.Context, conn *sql.Conn) (found []listed, err error) {
	rows, err := conn.QueryContext(ctx, "SELECT s.id, s.tenant, t.name, s.name FROM sessions s JOIN tenants t ON t.id = s.tenant ORDER BY s.id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l listed
		var tenant []byte
		if err := rows.Scan(&l.id, &l.tenant, &tenant, &l.key.Session); err != nil {
			return nil, err
		}
		l.key.Tenant = furl.Tenant(tenant)
		if storage.ReservedID(l.key.Session) {
			found = append(found, l)
		}
	}
	return found, rows.Err()
}

// freeID returns an unused id for a session of the tenant.
func freeID(ctx context.Context, conn *sql.Conn, l listed) (furl.SessionID, error) {
	for try := 0; ; try++ {
		id := storage.UnreservedID(l.key.Session, try)
		var one int
		err := conn.QueryRowContext(ctx, "SELECT 1 FROM sessions WHERE tenant = ? AND name = ?", l.tenant, string(id)).Scan(&one)
		if errors.Is(err, sql.ErrNoRows) {
			return id, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// moveForks updates the forks of a session to its new id.
func moveForks(ctx context.Context, conn *sql.Conn, of listed, is furl.SessionID) error {
	rows, err := conn.QueryContext(ctx, `SELECT id, meta FROM sessions WHERE tenant = ? AND instr(meta, CAST('"fork_of"' AS BLOB)) > 0`, of.tenant)
	if err != nil {
		return err
	}
	defer rows.Close()
	changed := make(map[int64][]byte)
	for rows.Next() {
		var id int64
		var text []byte
		var meta storage.Meta
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		if json.Unmarshal(text, &meta) != nil || meta.ForkOf != of.key.Session {
			continue // damage is reported when it is read
		}
		meta.ForkOf = is
		if changed[id], err = json.Marshal(meta); err != nil {
			return err
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for id, text := range changed {
		if _, err := conn.ExecContext(ctx, "UPDATE sessions SET meta = ? WHERE id = ?", text, id); err != nil {
			return err
		}
	}
	return nil
}
