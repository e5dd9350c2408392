package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// tables lists the tables with rows of sessions, in locking order.
var tables = []string{"sessions", "records", "pages", "vectors", "contents"}

// vacuums limits how often the tables are vacuumed.
type vacuums struct {
	mu   sync.Mutex
	last time.Time
}

// vacuumPause is the shortest time between two vacuums by this process. If many
// sessions are deleted, autovacuum handles the others.
const vacuumPause = time.Minute

// Delete implements storage.Deleter: afterwards no statement finds any data of
// the session. Its rows are then vacuumed, or left to autovacuum if the store
// vacuumed recently. As in every PostgreSQL database, bytes can remain in
// free space of pages until it is reused, in the write-ahead log and in
// backups; VACUUM FULL rewrites the tables without them.
func (s *Store) Delete(ctx context.Context, key furl.SessionKey) error {
	if err := s.delete(ctx, key); err != nil {
		return fmt.Errorf("delete session %.140q: %w", key.Session, err)
	}
	s.told(key)
	if err := s.tidy(ctx); err != nil {
		s.log.Warn("postgres: vacuum failed; deleted rows are left to autovacuum", "place", s.place, "err", s.clean(err))
	}
	return nil
}

func (s *Store) delete(ctx context.Context, key furl.SessionKey) error {
	if err := validKey(key); err != nil {
		return err
	}
	return s.doFor(ctx, key, func(limited context.Context, again bool) error {
		var existed bool
		err := s.unlimitedConn(ctx, limited, func(ctx context.Context, conn *pgxpool.Conn) error {
			return conn.QueryRow(ctx, deleteSQL, []byte(key.Tenant), string(key.Session)).Scan(&existed)
		})
		if err == nil && !existed && !again {
			return storage.ErrNoSession
		}
		return err
	})
}

// deleteSQL deletes the rows of a session. See migrations/0004.sql.
const deleteSQL = `select furl.delete_session($1, $2)`

// untimed returns a context that is canceled when limited is, but has no
// deadline except that of ctx.
func untimed(ctx, limited context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(limited, func() {
		if errors.Is(limited.Err(), context.Canceled) {
			cancel()
		}
	})
	return ctx, func() { stop(); cancel() }
}

// unlimitedConn runs statements without a time limit. They are not in a
// transaction.
func (s *Store) unlimitedConn(ctx, limited context.Context, work func(context.Context, *pgxpool.Conn) error) error {
	conn, err := s.pool.Acquire(limited)
	if err != nil {
		return err
	}
	defer conn.Release()
	var limit string
	if err := conn.QueryRow(limited, `select current_setting('statement_timeout')`).Scan(&limit); err != nil {
		return err
	}
	if _, err := conn.Exec(limited, `set statement_timeout = 0`); err != nil {
		return err
	}
	ctx, cancel := untimed(ctx, limited)
	defer cancel()
	worked := work(ctx, conn)
	if _, err := conn.Exec(ctx, `select set_config('statement_timeout', $1, false)`, limit); err != nil {
		// The next user of this connection must not run without a limit.
		closeNow(conn.Conn())
	}
	return worked
}

// unlimited runs a transaction without a time limit, again if the connection
// is lost. It is about a session, or about all.
func (s *Store) unlimited(ctx context.Context, key furl.SessionKey, work func(context.Context, pgx.Tx) error) error {
	return s.doFor(ctx, key, func(limited context.Context, _ bool) error {
		ctx, cancel := untimed(ctx, limited)
		defer cancel()
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(limited, `set local statement_timeout = 0`); err != nil {
				return err
			}
			return work(ctx, tx)
		})
	})
}

// tidy vacuums the tables unless that was done recently.
func (s *Store) tidy(ctx context.Context) error {
	s.vacuum.mu.Lock()
	defer s.vacuum.mu.Unlock()
	if !s.vacuum.last.IsZero() && time.Since(s.vacuum.last) < vacuumPause {
		return nil
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.running.Done()
	s.vacuum.last = time.Now()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `set statement_timeout = 0`); err != nil {
		return err
	}
	// The connection is not reused after this.
	defer func() { _ = conn.Conn().Close(context.WithoutCancel(ctx)) }()
	for _, table := range tables {
		if _, err := conn.Exec(ctx, `vacuum furl.`+table); err != nil {
			return err
		}
	}
	return nil
}
