package serving

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// expiring is a store with three sessions, ten days apart, which expire after 30 days.
// The test can set the clock.
type expiring struct {
	store *inmem.Store
	set   atomic.Int64 // offset of the clock, in nanoseconds
	end   context.CancelFunc
	done  chan error
}

func (e *expiring) now() time.Time { return time.Now().Add(time.Duration(e.set.Load())) }

// start runs expiry as furl serve does, with synctest's clock.
func (e *expiring) start(t *testing.T) {
	sessions, err := session.New(e.store, &session.Options{Now: e.now})
	if err != nil {
		t.Fatal(err)
	}
	keep := func() session.Retention { return session.Retention{Age: 30 * day} }
	x := &expiry{sessions: sessions, retention: keep, now: e.now, log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	e.done, e.end = make(chan error, 1), cancel
	go func() { e.done <- x.run(ctx) }()
	synctest.Wait()
}

func (e *expiring) stop(t *testing.T) {
	e.end()
	if err := <-e.done; err != nil {
		t.Error(err)
	}
}

func (e *expiring) append(t *testing.T, id furl.SessionID) {
	records := furltest.Session(furltest.SessionOptions{Messages: 1})[:1]
	if err := e.store.Append(t.Context(), furl.SessionKey{Session: id}, storage.Batch{Records: records}); err != nil {
		t.Fatal(err)
	}
}

// A session that retention deletes is written down in the audit log.
func TestExpiryIsAudited(t *testing.T) {
	store := inmem.New()
	records := furltest.Session(furltest.SessionOptions{Messages: 1})[:1]
	if err := store.Append(t.Context(), furl.SessionKey{Session: "old"}, storage.Batch{Records: records}); err != nil {
		t.Fatal(err)
	}
	later := func() time.Time { return time.Now().Add(31 * day) }
	sessions, err := session.New(store, &session.Options{Now: later})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.Open(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	keep := func() session.Retention { return session.Retention{Age: 30 * day} }
	x := &expiry{sessions: sessions, retention: keep, now: later, log: slog.New(slog.DiscardHandler), audit: log}
	x.expire(t.Context())
	n := 0
	for e, err := range audit.All(name) {
		if n++; err != nil || e.Action != "delete" || e.Via != "retention" || e.Session != "old" || e.Reason == "" {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

// left returns the number of sessions.
func (e *expiring) left(t *testing.T) (n int) {
	for _, err := range e.store.Sessions(t.Context(), "", storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func (e *expiring) want(t *testing.T, when string, n int) {
	t.Helper()
	if got := e.left(t); got != n {
		t.Errorf("%s: %d sessions, want %d", when, got, n)
	}
}

const day = 24 * time.Hour

func inBubble(t *testing.T, f func(t *testing.T, e *expiring)) {
	synctest.Test(t, func(t *testing.T) {
		e := &expiring{store: inmem.New()}
		for _, id := range []furl.SessionID{"a", "b", "c"} {
			e.append(t, id)
			time.Sleep(10 * day)
		}
		f(t, e)
	})
}

// If the clock is set ahead or back, at the start or while furl serve runs, and corrected
// within an hour, only expired sessions are deleted.
func TestWrongClockDeletesNoSession(t *testing.T) {
	const year = 365 * day
	const right = -day // no session expires soon
	for name, wrong := range map[string]time.Duration{"a year ahead": year, "an hour ahead": time.Hour, "an hour back": -time.Hour, "a year back": -year} {
		t.Run(name+" at the start", func(t *testing.T) {
			inBubble(t, func(t *testing.T, e *expiring) {
				e.set.Store(int64(right + wrong))
				e.start(t)
				defer e.stop(t)
				e.want(t, "at the start", 3)
				time.Sleep(time.Hour / 2)
				e.set.Store(int64(right))
				time.Sleep(time.Hour)
				e.want(t, "with the right clock", 3)
			})
		})
		t.Run(name+" while it runs", func(t *testing.T) {
			inBubble(t, func(t *testing.T, e *expiring) {
				e.set.Store(int64(right))
				e.start(t)
				defer e.stop(t)
				time.Sleep(time.Hour / 2)
				e.set.Store(int64(right + wrong))
				e.append(t, "d") // an agent is active meanwhile
				time.Sleep(time.Hour)
				e.want(t, "with the wrong clock", 4)
				e.set.Store(int64(right))
				time.Sleep(time.Hour)
				e.want(t, "with the right clock", 4)
			})
		})
	}
}

// Expired sessions are deleted: within an hour while furl serve runs, and an hour after
// the start if nothing was recorded for that long.
func TestExpiredSessionsAreDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, e *expiring) {
		e.start(t)
		time.Sleep(day)
		e.want(t, "after 31 days", 2)
		e.stop(t)
		time.Sleep(100 * day)
		e.start(t)
		defer e.stop(t)
		e.want(t, "at the start", 2)
		time.Sleep(time.Hour + time.Minute)
		e.want(t, "an hour later", 0)
	})
}
