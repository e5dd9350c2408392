package exchange

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Waits between two attempts. The wait doubles each time; a wait that the provider asks
// for applies instead, if it is not longer than a person would wait.
const (
	firstWait  = 500 * time.Millisecond
	longWait   = 30 * time.Second
	longestAsk = 5 * time.Minute
)

// temporary reports whether a request may succeed later. 529 is Anthropic's status for
// an overloaded API.
func temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500 && status != http.StatusNotImplemented
}

// retryAfter returns how long the provider asks to wait: 0 if it does not say, negative
// if it asks for more than longestAsk.
func retryAfter(h http.Header, now time.Time) time.Duration {
	wait := time.Duration(0)
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		wait = time.Duration(ms * float64(time.Millisecond))
	} else if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		wait = time.Duration(s * float64(time.Second))
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		wait = at.Sub(now)
	}
	if wait > longestAsk {
		return -1
	}
	return max(0, wait)
}

// backoff returns the wait before an attempt, from 1, with a quarter of jitter so that
// clients of an overloaded provider do not return at the same time.
func backoff(attempt int) time.Duration {
	wait := min(firstWait<<min(attempt-1, 10), longWait)
	return wait - time.Duration(rand.Int64N(int64(wait)/4))
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
