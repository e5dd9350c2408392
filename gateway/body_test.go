package gateway_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// A compressed body is sent as received if furl changes nothing in it, else without
// compression. The memory for it is released.
func TestCompressedBodies(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd"} {
		for _, reduced := range []bool{false, true} {
			all := &echo{}
			up, err := upstream.New(compatible, &upstream.Options{Transport: all})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(up.Close)
			store := inmem.New()
			t.Cleanup(func() { store.Close() })
			sessions, err := session.New(store, &session.Options{Window: 8_000})
			if err != nil {
				t.Fatal(err)
			}
			g, err := gateway.New(sessions, gateway.Upstreams{OpenAI: up}, nil)
			if err != nil {
				t.Fatal(err)
			}
			plain := responsesHistory(12)
			if !reduced {
				plain = responsesHistory(2)
			}
			packed := compress(t, encoding, plain)
			r := httptest.NewRequest("POST", "/v1/responses", bytes.NewReader(packed))
			r.Host = "127.0.0.1:7410"
			r.Header.Set("Content-Encoding", encoding)
			r.Header.Set("Authorization", "Bearer k")
			w := httptest.NewRecorder()
			patient{g}.ServeHTTP(w, r)
			if w.Code != 200 || len(all.bodies) != 1 {
				t.Fatalf("%s: status %d, %d requests: %s", encoding, w.Code, len(all.bodies), w.Body)
			}
			got, header := all.bodies[0], all.headers[0].Get("Content-Encoding")
			switch {
			case !reduced && (!bytes.Equal(got, packed) || header != encoding):
				t.Errorf("%s: an unchanged body was sent as %d bytes with encoding %q, want the %d received", encoding, len(got), header, len(packed))
			case reduced && (header != "" || len(got) >= len(plain) || !bytes.HasPrefix(got, []byte("{"))):
				t.Errorf("%s: a reduced body was sent as %d of %d bytes with encoding %q", encoding, len(got), len(plain), header)
			}
			g.Wait(t.Context())
			if n := g.BodyMemory(); n != 0 {
				t.Errorf("%s: %d bytes of memory are still acquired", encoding, n)
			}
		}
	}
}

// A body of the largest size that zstd cannot make smaller needs up to three times its
// size: as received, without compression, and for the window of the decoder. The memory
// for bodies is enough for one.
func TestLargestCompressedBody(t *testing.T) {
	begin := func(largest int64) (*gateway.Gateway, *echo) {
		all := &echo{}
		up, err := upstream.New(compatible, &upstream.Options{Transport: all})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(up.Close)
		sessions, err := session.New(inmem.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := gateway.New(sessions, gateway.Upstreams{OpenAI: up}, &gateway.Options{MaxBody: largest, MemoryWait: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return g, all
	}
	if g, _ := begin(100 << 20); g.BodyMemoryLimit() < 3*(100<<20) {
		t.Errorf("%d bytes of memory are not enough for a body of 100 MiB", g.BodyMemoryLimit())
	}
	const largest = 4 << 20
	g, all := begin(largest)
	plain := make([]byte, largest-(64<<10))
	if _, err := rand.NewChaCha8([32]byte{}).Read(plain); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	packed := z.EncodeAll(plain, nil)
	for _, tt := range []struct {
		free   int64
		status int
	}{{2 * largest, 503}, {3 * largest, 200}} {
		release := g.HoldBodyMemory(g.BodyMemoryLimit() - tt.free)
		r := httptest.NewRequest("POST", "/v1/responses", bytes.NewReader(packed))
		r.Host = "127.0.0.1:7410"
		r.Header.Set("Content-Encoding", "zstd")
		r.Header.Set("Authorization", "Bearer k")
		r.Header.Set("X-Furl-Bypass", "true")
		w := httptest.NewRecorder()
		patient{g}.ServeHTTP(w, r)
		release()
		if w.Code != tt.status || tt.status == 200 && (len(all.bodies) != 1 || !bytes.Equal(all.bodies[0], packed)) {
			t.Errorf("with %d bytes free: status %d, %d requests: %s", tt.free, w.Code, len(all.bodies), w.Body)
		}
	}
	if n := g.BodyMemory(); n != 0 {
		t.Errorf("%d bytes of memory are still acquired", n)
	}
}

// responsesHistory is a request to the Responses API with n calls and their results.
func responsesHistory(n int) []byte {
	input := []any{map[string]any{"role": "user", "content": "Look at everything."}}
	for i := range n {
		id := fmt.Sprintf("call_%d", i)
		input = append(input, map[string]any{"type": "function_call", "call_id": id, "name": "bash", "arguments": `{"command":"ls"}`},
			map[string]any{"type": "function_call_output", "call_id": id, "output": strings.Repeat(fmt.Sprintf("line %d of the result\n", i), 200)})
	}
	return mustJSON(map[string]any{"model": "gpt-5", "input": input, "store": false, "tools": []any{map[string]any{"type": "function", "name": "bash", "parameters": map[string]any{"type": "object"}}}})
}

func compress(t *testing.T, encoding string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if encoding == "zstd" {
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// echo is a provider that keeps what it got.
type echo struct {
	bodies  [][]byte
	headers []http.Header
}

func (e *echo) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	e.bodies, e.headers = append(e.bodies, body), append(e.headers, r.Header)
	return (&vendors{}).RoundTrip(r)
}
