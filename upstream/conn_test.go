package upstream_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/upstream"
)

// A body in memory arrives whole, and no buffer is made to send it.
func TestBodyIsSentAsItIs(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 30_000)
	equal := true
	got := make([]byte, len(want)+1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, err := io.ReadFull(r.Body, got)
		equal = equal && err == io.ErrUnexpectedEOF && bytes.Equal(got[:n], want)
	}))
	defer server.Close()
	c, err := upstream.New(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send := func() {
		r := httptest.NewRequest(http.MethodPost, "/v1/messages", upstream.NewBody(want, nil))
		r.ContentLength = int64(len(want))
		r.GetBody = func() (io.ReadCloser, error) { return upstream.NewBody(want, nil), nil }
		resp, err := c.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
		_ = resp.Body.Close()
	}
	send()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 20
	for range n {
		send()
	}
	runtime.ReadMemStats(&after)
	if !equal {
		t.Error("the server received another body")
	}
	// The race detector makes pools forget what is in them.
	if kb := (after.TotalAlloc - before.TotalAlloc) / n >> 10; kb >= 30 && !racetest.Enabled {
		t.Errorf("a request allocates %d kB, as much as a buffer of 32 kB", kb)
	}
}

// A body is counted until it was read to its end, in either way.
func TestBodyIsCounted(t *testing.T) {
	var unread atomic.Int32
	check := func(what string, want int32) {
		t.Helper()
		if got := unread.Load(); got != want {
			t.Errorf("%s: %d bodies are unread, want %d", what, got, want)
		}
	}
	one, other := upstream.NewBody([]byte("text"), &unread), upstream.NewBody([]byte("text"), &unread)
	_ = upstream.NewBody(nil, &unread)
	check("new", 2)
	_, _ = one.Read(make([]byte, 3))
	_ = one.Close()
	check("read in part", 2)
	_, _ = one.Read(make([]byte, 3))
	_, _ = one.Read(make([]byte, 3))
	check("read", 1)
	_, _ = other.WriteTo(io.Discard)
	check("written", 0)
}
