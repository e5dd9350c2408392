//go:build cluster

package postgres

import (
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/pgtest"
)

// Two servers under Patroni, as docs/operate/stores.md sets them up. The leader is
// replaced as planned, its server is killed, and its machine is lost, under load: no
// acknowledged record is lost or doubled.
func TestClusterPatroni(t *testing.T) {
	p := pgtest.StartPatroni(t)
	s := reopen(t, p.URL(), &Options{Retry: 2 * time.Minute})
	var l patientLoad
	l.s = s
	stop := l.start(t, 8)
	defer stop()
	for _, fault := range []struct {
		name string
		do   func(leader int)
	}{
		{"planned switchover", func(leader int) { p.Switch(t, leader) }},
		{"server killed", func(leader int) { p.KillServer(t, leader) }},
		{"machine lost", func(leader int) { p.Kill(t, leader) }},
	} {
		leader := p.Ready(t)
		longest := l.pauses()
		fault.do(leader)
		if fault.name == "machine lost" {
			l.afterwards(t)
			p.Start(t, leader)
		}
		p.Ready(t)
		l.afterwards(t)
		t.Logf("%s: the longest pause was %v", fault.name, longest().Round(time.Millisecond))
	}
	stop()
	kept(t, s, l.acked)
}

// patientLoad is a load that may wait for minutes.
type patientLoad struct {
	load
}

// pauses measures the longest time without an acknowledged append until the returned
// function is called.
func (l *patientLoad) pauses() (longest func() time.Duration) {
	stop, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		var pause time.Duration
		last, at := l.acks.Load(), time.Now()
		for {
			if now := l.acks.Load(); now != last {
				last, at = now, time.Now()
			}
			pause = max(pause, time.Since(at))
			select {
			case <-stop:
				result <- pause
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() time.Duration { close(stop); return <-result }
}

// afterwards waits for so many appends that some were sent after the call.
func (l *patientLoad) afterwards(t *testing.T) {
	t.Helper()
	want := l.acks.Load() + 100
	for deadline := time.Now().Add(3 * time.Minute); l.acks.Load() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no appends are acknowledged any more")
		}
	}
}
