package membudget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAcquireWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100, 2)
		if err := b.Acquire(t.Context(), 80); err != nil {
			t.Fatal(err)
		}
		if err := b.Acquire(t.Context(), 101); !errors.Is(err, ErrTooLarge) {
			t.Errorf("101 of 100: %v", err)
		}
		results := make(chan error, 2)
		go func() { results <- b.Acquire(t.Context(), 90) }()
		synctest.Wait()
		if err := b.Acquire(t.Context(), 20); err != nil {
			t.Errorf("a small caller did not pass a large one: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { results <- b.Acquire(ctx, 50) }()
		synctest.Wait()
		if err := b.Acquire(t.Context(), 1); !errors.Is(err, ErrBusy) {
			t.Errorf("with two callers waiting: %v", err)
		}
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller with a deadline: %v", err)
		}
		b.Release(80)
		synctest.Wait()
		select {
		case <-results:
			t.Error("90 of 100 were granted while 20 were in use")
		default:
		}
		b.Release(20)
		if err := <-results; err != nil {
			t.Error(err)
		}
		if got := b.Used(); got != 90 {
			t.Errorf("%d bytes are in use, want 90", got)
		}
		if b.TryAcquire(11) || !b.TryAcquire(10) {
			t.Error("TryAcquire must succeed only for free bytes")
		}
	})
}
