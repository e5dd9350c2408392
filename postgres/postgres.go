package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/furlhq/furl/storage"
)

// Options are the settings of a store besides its address. The zero value of
// each field is useful.
type Options struct {
	// MaxConns is the largest number of open connections, not counting one
	// that listens while there are watchers. If zero, it is the URL's
	// pool_max_conns, or else 16 or the number of processors, whichever is
	// larger.
	MaxConns int
	// Timeout is how long one statement may take, including the network. If
	// zero, 30s. Deleting, checking and migrating have no limit except that
	// of the context.
	Timeout time.Duration
	// Retry is how long work is retried after a lost connection, or while the
	// server is not ready. If zero, 15s; if negative, work is not retried. If
	// the server has not come back by then, work is tried once, for two
	// seconds at most, until it has.
	Retry time.Duration
	// Poll is how often watched sessions are checked, in case a notification
	// was lost or the server cannot send any. If zero, 2s.
	Poll time.Duration
	// Partitions is the number of hash partitions, by tenant and session, with
	// which tables are created. If zero, tables are not partitioned. An
	// existing store keeps its partitions.
	//
	// On Citus it is the number of shards of each table with which a store is
	// created or converted. If zero, 36.
	Partitions int
	// Logger logs lost connections. If nil, nothing is logged.
	Logger *slog.Logger
}

// Store is a storage.Store in a PostgreSQL database. It is safe for concurrent
// use, also by several processes.
type Store struct {
	pool    *pgxpool.Pool
	opts    Options
	log     *slog.Logger
	secrets []string // texts that must not appear in errors
	place   string
	renamed []storage.Renamed // when it was opened
	away    atomic.Bool       // the server has not come back within Options.Retry
	citus   atomic.Bool       // the database has the extension
	nodes   nodes

	closing context.Context // ends with Close
	stop    context.CancelFunc
	mu      sync.Mutex // guards closed
	closed  bool
	running sync.WaitGroup // operations, and the goroutines they started

	hub    hub
	vacuum vacuums
}

var _ interface {
	storage.Store
	storage.InfoReader
	storage.Pinger
	storage.Searchable
	storage.VectorStore
	storage.Watcher
	storage.Renamer
	storage.Deleter
	storage.TenantLister
	storage.ContentStore
	storage.Checker
} = (*Store)(nil)

// ErrClosed is returned by operations on a closed store.
var ErrClosed = errors.New("the store is closed")

// Open opens the store in a database, and creates its tables if needed. The
// address is a URL (postgres://user@host/database) or libpq keywords; libpq's
// environment (PGHOST, PGPASSWORD, …) and .pgpass supply what it omits.
// Several hosts with target_session_attrs=read-write follow a fail-over.
// Tables of a newer version are refused with an error wrapping
// record.ErrNewerFormat. No error contains the password.
func Open(ctx context.Context, url string, o *Options) (*Store, error) {
	s := &Store{}
	if o != nil {
		s.opts = *o
	}
	s.opts.defaults()
	if s.log = s.opts.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	config, err := s.configure(url)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL store: %w", err)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("open store %s: %w", s.place, s.clean(err))
	}
	s.closing, s.stop = context.WithCancel(context.Background())
	s.hub.init()
	s.nodes.init()
	if err := s.migrate(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open store %s: %w", s.place, err)
	}
	return s, nil
}

func (o *Options) defaults() {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Retry == 0 {
		o.Retry = 15 * time.Second
	}
	if o.Poll <= 0 {
		o.Poll = 2 * time.Second
	}
}

// Close waits for running operations, then closes the connections. Operations
// that wait for a lost server are cancelled; channels of Watch are closed.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.unwatch(s.watchers()...)
	s.running.Wait()
	s.pool.Close()
	return nil
}

// begin registers an operation, for which Close waits; the caller calls
// s.running.Done when it ends.
func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.running.Add(1)
	return nil
}

// configure parses the address and adds what the store needs.
func (s *Store) configure(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, badAddress(url, err)
	}
	conn := config.ConnConfig
	s.secrets = secrets(url, conn)
	s.place = placeOf(conn)
	if _, ok := conn.RuntimeParams["application_name"]; !ok {
		conn.RuntimeParams["application_name"] = "furl"
	}
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = 10 * time.Second
	}
	switch {
	case s.opts.MaxConns > 0:
		config.MaxConns = int32(min(s.opts.MaxConns, 10_000))
	case !mentions(url, "pool_max_conns"):
		config.MaxConns = int32(max(16, runtime.NumCPU()))
	}
	_, timeout := conn.RuntimeParams["statement_timeout"]
	cached := conn.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	config.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		if s.citus.Load() && cached {
			// A prepared statement may get a plan without its arguments, which
			// Citus would run on the wrong node.
			conn.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		}
		return nil
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, s.settings(!timeout))
		return err
	}
	return config, nil
}

// settings returns the first statement of each connection. The settings are
// not in the startup message, because poolers and other engines refuse
// unknown parameters there.
func (s *Store) settings(timeout bool) string {
	// Acknowledged means committed, whatever the role's default is.
	text := `select case when current_setting('synchronous_commit', true) = 'off' then set_config('synchronous_commit', 'on', false) end`
	if !s.citus.Load() {
		// Generic plans are forced: the plans do not depend on the size of the
		// store, and planning an append would take longer than executing it.
		// Citus needs the arguments to plan.
		text += `, case when current_setting('plan_cache_mode', true) = 'auto' then set_config('plan_cache_mode', 'force_generic_plan', false) end`
	}
	if timeout {
		text += fmt.Sprintf(", set_config('statement_timeout', '%d', false)", s.opts.Timeout.Milliseconds())
	}
	return text
}

// placeOf names a store without the user.
func placeOf(conn *pgx.ConnConfig) string {
	if strings.HasPrefix(conn.Host, "/") { // the folder of a socket
		return fmt.Sprintf("postgres:///%s?host=%s&port=%d", conn.Database, conn.Host, conn.Port)
	}
	return "postgres://" + net.JoinHostPort(conn.Host, strconv.Itoa(int(conn.Port))) + "/" + conn.Database
}
