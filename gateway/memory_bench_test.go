package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/upstream"
)

// weighing is a provider that measures the heap when a request reaches it.
type weighing struct{ live *int64 }

func (w weighing) RoundTrip(r *http.Request) (*http.Response, error) {
	*w.live = liveHeap()
	return instant{}.RoundTrip(r)
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what pools and finalizers kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkRequestMemory measures what the messages of a request take in memory
// while it is under way, and what stays in the session afterwards. The costs in
// package membudget come from it.
func BenchmarkRequestMemory(b *testing.B) {
	for _, test := range []struct {
		name        string
		parts, size int
		blocks      bool // in one message
	}{
		{"49000 one-word messages", 49_000, 2, false},
		{"49000 one-word blocks", 49_000, 2, true},
		{"8 messages of 4 MB", 8, 4 << 20, false},
		{"4000 messages of 10 KB", 4000, 10 << 10, false},
	} {
		b.Run(test.name, func(b *testing.B) {
			body := partsOf(test.parts, test.size, test.blocks)
			for b.Loop() {
				store, err := sqlite.Open(filepath.Join(b.TempDir(), "furl.db"), nil)
				if err != nil {
					b.Fatal(err)
				}
				sessions, err := session.New(store, &session.Options{Window: 1 << 30})
				if err != nil {
					b.Fatal(err)
				}
				var live int64
				up, err := upstream.New("http://upstream.invalid", &upstream.Options{Transport: weighing{&live}})
				if err != nil {
					b.Fatal(err)
				}
				g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, nil)
				if err != nil {
					b.Fatal(err)
				}
				before := liveHeap()
				w := httptest.NewRecorder()
				patient{g}.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/v1/messages", bytes.NewReader(body)))
				if w.Code != http.StatusOK || w.Header().Get("X-Furl-Session") == "" {
					b.Fatal(w.Code, w.Header(), w.Body)
				}
				after := liveHeap()
				n := float64(test.parts)
				b.ReportMetric(float64(live-before)/n, "B/part")
				b.ReportMetric(float64(after-before)/n, "kept-B/part")
				b.ReportMetric(float64(live-before)/float64(len(body)), "B/byte")
				b.ReportMetric(float64(after-before)/float64(len(body)), "kept-B/byte")
				runtime.KeepAlive(sessions)
				up.Close()
				_ = store.Close()
			}
		})
	}
}

// partsOf makes a request of so many messages, or blocks of one message, of
// about size bytes each.
func partsOf(n, size int, blocks bool) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[`)
	if blocks {
		b.WriteString(`{"role":"user","content":[`)
	}
	line := "the quick brown fox "
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		text := strings.Repeat(line, size/len(line))
		if blocks {
			fmt.Fprintf(&b, `{"type":"text","text":"w%d %s"}`, i, text)
		} else {
			fmt.Fprintf(&b, `{"role":"%s","content":"w%d %s"}`, []string{"user", "assistant"}[i%2], i, text)
		}
	}
	if blocks {
		b.WriteString(`]}`)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}
