package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// versions is a connection that detects commits. SQLite counts for each connection
// the commits of the others.
type versions struct {
	mu     sync.Mutex
	conn   *sql.Conn
	opened uint64 // how often; counts of different connections cannot be compared
	closed bool
}

// Version implements storage.Versioned.
func (s *Store) Version(ctx context.Context) (uint64, error) {
	err := s.ready(ctx)
	var version uint64
	if err == nil {
		version, err = s.versions.read(ctx, s.read)
	}
	if err != nil {
		return 0, s.failed("read the version", err)
	}
	return version, nil
}

func (v *versions) read(ctx context.Context, db *sql.DB) (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return 0, errClosed
	}
	if v.conn == nil {
		conn, err := db.Conn(ctx)
		if err != nil {
			return 0, err
		}
		v.conn = conn
		v.opened++
	}
	var count uint32
	if err := v.conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&count); err != nil {
		_ = v.conn.Close() // the next call opens another one
		v.conn = nil
		return 0, err
	}
	return v.opened<<32 | uint64(count), nil
}

// close closes the connection. It must be called before its pool is closed.
func (v *versions) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	if v.conn != nil {
		_ = v.conn.Close() // it has no transaction
		v.conn = nil
	}
}
