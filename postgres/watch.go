package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
)

// Watchers learn of appends in three ways. Those of this process are
// signalled immediately. Those of other processes are notified a moment
// later, for many appends at once: a notification within the append would
// make the server commit appends one after the other. And because a process
// can die in that moment, and not every engine or pooler supports
// notifications, watched sessions are also polled.

// channel is the name of the notification channel.
const channel = "furl"

// notifyPause is the pause after a notification. Appends meanwhile share the next one: each is
// a transaction, and a process with little work would otherwise have one for each append.
const notifyPause = 200 * time.Millisecond

// hub keeps the watchers and the pending notifications.
type hub struct {
	mu       sync.Mutex
	watchers map[*watcher]struct{}
	watching bool                // the listener and the poller run
	telling  bool                // the notifier runs
	untold   map[string]struct{} // payloads for other processes
	wake     chan struct{}       // untold is not empty
}

// watcher is one call of Watch.
type watcher struct {
	key  furl.SessionKey
	c    chan struct{}
	seen fingerprint // of the last poll; used by the poller only
}

func (h *hub) init() {
	h.watchers = map[*watcher]struct{}{}
	h.untold = map[string]struct{}{}
	h.wake = make(chan struct{}, 1)
}

// signal sends a value. If the reader has not received the last value, no
// second one is sent. Callers hold hub.mu.
func (w *watcher) signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// payload names a session in a notification. Every role of the database can
// read notifications, so it does not contain the tenant's name.
func payload(key furl.SessionKey) string {
	return fmt.Sprintf("%016x/%s", uint64(printOf([]byte(key.Tenant))), key.Session)
}

// told signals the watchers of a session that has grown.
func (s *Store) told(key furl.SessionKey) {
	h := &s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		if w.key.Tenant == key.Tenant && (w.key.Session == "" || w.key.Session == key.Session) {
			w.signal()
		}
	}
	h.untold[payload(key)] = struct{}{}
	if !h.telling {
		if s.begin() != nil {
			return
		}
		h.telling = true
		go func() {
			defer s.running.Done()
			s.notify()
		}()
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// notifySQL does not wait for the disk; the appends already do.
const notifySQL = `
select set_config('synchronous_commit', 'off', true), pg_notify($1, p) from unnest($2::text[]) p`

// notify notifies other processes until the store is closed, and then sends
// the pending notifications.
func (s *Store) notify() {
	for closing := false; !closing; {
		select {
		case <-s.hub.wake:
		case <-s.closing.Done():
			closing = true
		}
		s.hub.mu.Lock()
		untold := slices.Sorted(maps.Keys(s.hub.untold))
		clear(s.hub.untold)
		s.hub.mu.Unlock()
		if len(untold) == 0 {
			continue
		}
		// With its own timeout: the store may be closing, and the appends are
		// committed even if this fails.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := s.pool.Exec(ctx, notifySQL, channel, untold)
		cancel()
		if err != nil {
			s.log.Debug("postgres: notification failed", "place", s.place, "err", s.clean(err))
		}
		select {
		case <-time.After(notifyPause):
		case <-s.closing.Done():
		}
	}
}

// Watch implements storage.Watcher. It reports appends by all processes, a
// deletion, and a lost connection during which an append may have been
// missed. The channel is closed when ctx ends or the store is closed.
func (s *Store) Watch(ctx context.Context, key furl.SessionKey) (<-chan struct{}, error) {
	w := &watcher{key: key, c: make(chan struct{}, 1)}
	var err error
	if key.Session != "" {
		err = validKey(key)
	}
	if err == nil {
		// Changes after this are reported.
		err = s.doFor(ctx, key, func(ctx context.Context, _ bool) (err error) {
			w.seen, err = s.look(ctx, key)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("watch session %s: %w", key.Session, err)
	}
	h := &s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[w] = struct{}{}
	context.AfterFunc(ctx, func() { s.unwatch(w) })
	if !h.watching && s.begin() == nil {
		h.watching = true
		go func() {
			defer s.running.Done()
			var both sync.WaitGroup
			both.Go(s.listen)
			both.Go(s.poll)
			both.Wait()
		}()
	}
	return w.c, nil
}

// unwatch closes the channels of some watchers, once.
func (s *Store) unwatch(which ...*watcher) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, w := range which {
		if _, ok := s.hub.watchers[w]; ok {
			delete(s.hub.watchers, w)
			close(w.c)
		}
	}
}

// watchers returns all watchers.
func (s *Store) watchers() []*watcher {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return slices.Collect(maps.Keys(s.hub.watchers))
}

// listen receives notifications on its own connection until the store is
// closed.
func (s *Store) listen() {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		heard, err := s.listenOnce()
		if s.closing.Err() != nil {
			return
		}
		if heard {
			wait = 100 * time.Millisecond
		}
		s.log.Debug("postgres: listening interrupted", "place", s.place, "err", s.clean(err))
		select {
		case <-time.After(wait):
		case <-s.closing.Done():
			return
		}
	}
}

// listenOnce listens until the connection ends; heard reports that it
// started.
func (s *Store) listenOnce() (heard bool, err error) {
	ctx := s.closing
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return false, err
	}
	defer func() {
		// Terminate the connection properly even if the store is closing.
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
		return false, err
	}
	s.signal(func(*watcher) bool { return true }) // signal appends before this moment
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		s.signal(func(w *watcher) bool {
			p := payload(w.key)
			return n.Payload == p || w.key.Session == "" && strings.HasPrefix(n.Payload, p)
		})
	}
}

// signal signals the watchers that a notification is about.
func (s *Store) signal(about func(*watcher) bool) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for w := range s.hub.watchers {
		if about(w) {
			w.signal()
		}
	}
}

// fingerprint changes when a session, or any session of a tenant, changes.
type fingerprint struct {
	sessions, records int64
	updated           time.Time
}

// lookSQL returns the fingerprint of a session, lookAllSQL that of a tenant.
const (
	lookSQL = `
select count(*), coalesce(sum(records), 0)::bigint, coalesce(max(updated), 'epoch') from furl.sessions
where tenant = $1 and session = $2`
	lookAllSQL = `
select count(*), coalesce(sum(records), 0)::bigint, coalesce(max(updated), 'epoch') from furl.sessions
where tenant = $1`
)

func (s *Store) look(ctx context.Context, key furl.SessionKey) (f fingerprint, err error) {
	sql, args := lookSQL, []any{[]byte(key.Tenant), string(key.Session)}
	if key.Session == "" {
		sql, args = lookAllSQL, args[:1]
	}
	err = s.pool.QueryRow(ctx, sql, args...).Scan(&f.sessions, &f.records, &f.updated)
	return f, err
}

// poll polls the watched sessions until the store is closed.
func (s *Store) poll() {
	tick := time.NewTicker(s.opts.Poll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.closing.Done():
			return
		}
		looked := map[furl.SessionKey]fingerprint{}
		for _, w := range s.watchers() {
			f, ok := looked[w.key]
			if !ok {
				ctx, cancel := context.WithTimeout(s.closing, s.opts.Timeout+grace)
				var err error
				f, err = s.look(ctx, w.key)
				cancel()
				if err != nil {
					break // the next tick polls again
				}
				looked[w.key] = f
			}
			if f != w.seen {
				w.seen = f
				s.signal(func(o *watcher) bool { return o == w })
			}
		}
	}
}
