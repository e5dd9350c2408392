package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
)

// of names a replay of a session.
func of(id string, policies string) replayOf {
	return replayOf{furl.SessionKey{Session: furl.SessionID(id)}, policies}
}

// blocked returns a replay that computes until done is closed, and ends when it is canceled.
func blocked(started *atomic.Int32, done chan struct{}) func(context.Context, func(int, int)) (*replayed, error) {
	return func(ctx context.Context, progress func(int, int)) (*replayed, error) {
		started.Add(1)
		progress(1, 3)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-done:
			return &replayed{HTML: []byte("result")}, nil
		}
	}
}

// Two replays compute at a time, one of each session; the others wait.
func TestReplaysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, done := newReplays(slog.New(slog.DiscardHandler)), make(chan struct{})
		var started atomic.Int32
		for i := range maxReplays {
			if err := r.start(of(fmt.Sprint(i), "auto"), blocked(&started, done)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if started.Load() != maxReplaying {
			t.Errorf("%d replays compute, want %d", started.Load(), maxReplaying)
		}
		if err := r.start(of("more", "auto"), blocked(&started, done)); !errors.Is(err, errBusy) {
			t.Errorf("one more: %v, want %v", err, errBusy)
		}
		if err := r.start(of("0", "rolling"), blocked(&started, done)); !errors.Is(err, errOther) {
			t.Errorf("another one of the same session: %v, want %v", err, errOther)
		}
		if err := r.start(of("0", "auto"), blocked(&started, done)); err != nil || started.Load() != maxReplaying {
			t.Errorf("the same again: %v, and %d compute", err, started.Load())
		}
		_, job := r.ask(of("0", "auto"))
		if on, n, all := job.State(); !on || n != 1 || all != 3 {
			t.Errorf("the first: started %t, %d of %d, want true, 1 of 3", on, n, all)
		}
		_, job = r.ask(of("9", "auto"))
		if on, _, _ := job.State(); on {
			t.Error("the tenth has a slot")
		}
		r.cancel(of("9", "auto"))
		close(done)
		synctest.Wait()
		if started.Load() != maxReplays-1 {
			t.Errorf("%d replays have computed, want %d", started.Load(), maxReplays-1)
		}
		if result, job := r.ask(of("3", "auto")); result == nil || job != nil || string(result.HTML) != "result" {
			t.Errorf("afterwards: result %v, job %v", result, job)
		}
		if result, job := r.ask(of("9", "auto")); result != nil || job != nil {
			t.Errorf("the canceled one: result %v, job %v", result, job)
		}
	})
}

// A replay ends when no browser has asked for it for a minute.
func TestReplaysAreCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplays(slog.New(slog.DiscardHandler))
		var started atomic.Int32
		never := make(chan struct{})
		if err := r.start(of("a", "auto"), blocked(&started, never)); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(patience - time.Second)
			if _, job := r.ask(of("a", "auto")); job == nil {
				t.Fatal("canceled although a browser asks")
			}
		}
		time.Sleep(patience + time.Second)
		synctest.Wait()
		if len(r.slots) != 0 {
			t.Error("the canceled replay still computes")
		}
		if _, job := r.ask(of("a", "auto")); job != nil {
			t.Error("the replay was not canceled")
		}
	})
}

// A failed replay says why, and can be started again. Its time does not end the new one.
func TestReplayFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplays(slog.New(slog.DiscardHandler))
		var started atomic.Int32
		fails := func(context.Context, func(int, int)) (*replayed, error) { return nil, errors.New("unreadable") }
		if err := r.start(of("a", "auto"), fails); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, job := r.ask(of("a", "auto")); job == nil || job.failure() == nil || job.failure().Error() != "unreadable" {
			t.Fatalf("the failed replay: %v", job)
		}
		time.Sleep(patience - time.Second)
		done := make(chan struct{})
		if err := r.start(of("a", "rolling"), blocked(&started, done)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if _, job := r.ask(of("a", "rolling")); job == nil || job.of.policies != "rolling" {
			t.Error("the time of the failed replay has ended the new one")
		}
		close(done)
		synctest.Wait()
	})
}

// Results are kept up to a number and a size, those that are used longest.
func TestReplayResultsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplays(slog.New(slog.DiscardHandler))
		add := func(id string, size int) {
			t.Helper()
			err := r.start(of(id, "auto"), func(context.Context, func(int, int)) (*replayed, error) {
				return &replayed{HTML: make([]byte, size)}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for i := range maxReplayed {
			add(fmt.Sprint(i), 10)
		}
		if kept, _ := r.ask(of("0", "auto")); kept == nil {
			t.Fatal("the first result is gone")
		}
		add("new", 10)
		for id, want := range map[string]bool{"new": true, "0": true, "1": false, "2": true} {
			if kept, _ := r.ask(of(id, "auto")); (kept != nil) != want {
				t.Errorf("result %s: kept %t, want %t", id, kept != nil, want)
			}
		}
		add("large", maxReplayMem+1)
		if len(r.results) != 1 {
			t.Errorf("%d results beside a large one, want none", len(r.results)-1)
		}
	})
}
