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

	"github.com/furlhq/furl"
)

// Options are what can be set about a store beside its address. The zero value
// of each field is useful.
type Options struct {
	// MaxConns is the most connections that are open at once, beside one
	// that listens once somebody watches. If zero, defaults to what the URL
	// says (pool_max_conns), else to 16 or the number of processors.
	MaxConns int
	// Timeout is how long one statement may take, at the server and on the
	// way. If zero, defaults to 30s. Deleting, checking and the making of
	// tables have no limit but the context's.
	Timeout time.Duration
	// Retry is how long work that has met a lost connection or a server
	// that is not ready is tried again. If zero, defaults to 15s; negative:
	// not at all. When the server has not come back by then, work is tried
	// once, for two seconds at most, until it has.
	Retry time.Duration
	// Poll is how often a watched session is looked at in case a
	// notification was lost or the server cannot notify. If zero, defaults
	// to 2s.
	Poll time.Duration
	// Partitions, when the tables are made, makes each of this many hash
	// partitions by tenant and session. If zero, tables are plain ones. A
	// store keeps what it was made with.
	Partitions int
	// Logger hears of lost connections. If nil, nothing is logged.
	Logger *slog.Logger
}

// Store is a furl.Store in a PostgreSQL database. It is safe for concurrent
// use, also by several processes.
type Store struct {
	pool    *pgxpool.Pool
	opts    Options
	log     *slog.Logger
	secrets []string // what must not be in an error
	place   string
	renamed []furl.RenamedSession // when it was opened
	away    atomic.Bool           // the server has not come back within Options.Retry

	closing context.Context // ends with Close
	stop    context.CancelFunc
	mu      sync.Mutex // guards closed
	closed  bool
	running sync.WaitGroup // operations, and what was started beside them

	hub    hub
	vacuum vacuums
}

var _ interface {
	furl.Store
	furl.Searchable
	furl.VectorStore
	furl.Watcher
	furl.Renamer
	furl.Deleter
	furl.TenantLister
	furl.Checker
} = (*Store)(nil)

// ErrClosed is returned by work on a store that was closed.
var ErrClosed = errors.New("the store is closed")

// Open opens the store in a database, and makes its tables if there are none.
// The address is a URL (postgres://user@host/database) or the keywords of
// libpq; the environment of libpq (PGHOST, PGPASSWORD, …) and .pgpass fill in
// what it leaves out. Several hosts with target_session_attrs=read-write
// follow a fail-over. Tables of a newer version are refused with an error
// wrapping furl.ErrNewerFormat. No error holds the password.
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
		return nil, fmt.Errorf("open a PostgreSQL store: %w", err)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("open the store at %s: %w", s.place, s.clean(err))
	}
	s.closing, s.stop = context.WithCancel(context.Background())
	s.hub.init()
	if err := s.migrate(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open the store at %s: %w", s.place, err)
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

// Close waits for work that is under way, then closes the connections. Work
// that waits for a server to come back is given up; channels of Watch are
// closed.
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

// begin says that work is under way, which Close waits for; the caller calls
// s.running.Done after it.
func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.running.Add(1)
	return nil
}

// configure reads the address and adds what the store needs.
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
	settings := s.settings(conn)
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = 10 * time.Second
	}
	switch {
	case s.opts.MaxConns > 0:
		config.MaxConns = int32(min(s.opts.MaxConns, 10_000))
	case !mentions(url, "pool_max_conns"):
		config.MaxConns = int32(max(16, runtime.NumCPU()))
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, settings)
		return err
	}
	return config, nil
}

// settings is the statement that begins each connection. Its settings are not
// in the startup message, where poolers and other engines refuse what they do
// not know.
func (s *Store) settings(conn *pgx.ConnConfig) string {
	// Acknowledged means committed, whatever the role's default is. And
	// statements are planned once: they look alike however large the
	// store, and planning an append would take longer than it does.
	text := `select
		case when current_setting('synchronous_commit', true) = 'off' then set_config('synchronous_commit', 'on', false) end,
		case when current_setting('plan_cache_mode', true) = 'auto' then set_config('plan_cache_mode', 'force_generic_plan', false) end`
	if _, ok := conn.RuntimeParams["statement_timeout"]; !ok {
		text += fmt.Sprintf(", set_config('statement_timeout', '%d', false)", s.opts.Timeout.Milliseconds())
	}
	return text
}

// placeOf says where a store is, without saying who asks.
func placeOf(conn *pgx.ConnConfig) string {
	if strings.HasPrefix(conn.Host, "/") { // the folder of a socket
		return fmt.Sprintf("postgres:///%s?host=%s&port=%d", conn.Database, conn.Host, conn.Port)
	}
	return "postgres://" + net.JoinHostPort(conn.Host, strconv.Itoa(int(conn.Port))) + "/" + conn.Database
}
