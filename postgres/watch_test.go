package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
)

// hears waits for a value of a watcher.
func hears(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, ok := <-c:
		if !ok {
			t.Fatalf("%s: the channel is closed", what)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s: no value received", what)
	}
}

// follow reads after each value until the session has n records.
func follow(t *testing.T, s *Store, c <-chan struct{}, key furl.SessionKey, n int, what string) {
	t.Helper()
	for len(read(t, s, key, 0)) < n {
		hears(t, c, what)
	}
}

// Watchers learn of appends by another process: by notification, by polling
// if there are none, and after a broken connection.
func TestWatchAcross(t *testing.T) {
	url := pgtest.URL(t)
	writer := reopen(t, url, nil)
	p := newProxy(t, url)
	key := furl.SessionKey{Tenant: "t", Session: "s"}
	records := talk(t, "x", 3, 10)
	appendAll(t, writer, key, records[:1])
	for name, poll := range map[string]time.Duration{"notified": time.Hour, "looking": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			key := furl.SessionKey{Tenant: furl.Tenant(name), Session: "s"}
			appendAll(t, writer, key, records[:1])
			reader := reopen(t, p.url, &Options{Poll: poll, Retry: time.Minute})
			one, err := reader.Watch(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			all, err := reader.Watch(t.Context(), furl.SessionKey{Tenant: key.Tenant})
			if err != nil {
				t.Fatal(err)
			}
			if name == "notified" {
				// The first value reports that it listens again after a
				// break.
				hears(t, one, "listening")
				p.set(refusing)
				p.set(passing)
				hears(t, one, "listening again")
			}
			appendAll(t, writer, key, records[1:2])
			follow(t, reader, one, key, 2, "the session")
			hears(t, all, "the tenant")
			appendAll(t, writer, furl.SessionKey{Tenant: key.Tenant, Session: "another"}, records[:1])
			hears(t, all, "the tenant's other session")
		})
	}
}

// A watcher of one session gets no values for others.
func TestWatchOne(t *testing.T) {
	url := pgtest.URL(t)
	w := reopen(t, url, nil)
	for _, key := range []furl.SessionKey{{Tenant: "t", Session: "s"}, {Tenant: "t", Session: "s2"}, {Tenant: "u", Session: "s"}} {
		appendAll(t, w, key, talk(t, "x", 1, 10))
	}
	if err := w.Close(); err != nil { // all notifications are sent
		t.Fatal(err)
	}
	s := reopen(t, url, &Options{Poll: time.Hour})
	c, err := s.Watch(t.Context(), furl.SessionKey{Tenant: "t", Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	hears(t, c, "listening") // sent because an append may have been missed
	s.told(furl.SessionKey{Tenant: "t", Session: "s2"})
	s.told(furl.SessionKey{Tenant: "u", Session: "s"})
	select {
	case <-c:
		t.Error("the watcher got a value for another session")
	default:
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, err = s.Watch(ctx, furl.SessionKey{Tenant: "t"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for range c { // ends when it is closed
	}
	c, err = s.Watch(t.Context(), furl.SessionKey{Tenant: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range c {
	}
}
