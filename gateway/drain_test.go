package gateway_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/sim"
)

// A client that writes its body whole before it reads anything learns that the
// body is too large, instead of a reset connection.
func TestTooLargeIsTold(t *testing.T) {
	st := newFixture(t, &sim.Options{}, nil, &gateway.Options{MaxBody: 1 << 20})
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.NoCompression) // much is left when it is too large
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 8<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(text) // it never fails
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, header string
		body         []byte
	}{
		{"its length is told", "", make([]byte, 40<<20)},
		{"packed", "Content-Encoding: gzip\r\n", packed.Bytes()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(st.front.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			head := fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k\r\n%sContent-Length: %d\r\n\r\n", tc.header, len(tc.body))
			if _, err := io.WriteString(conn, head); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Write(tc.body); err != nil {
				t.Fatalf("after %d of %d bytes: %v", n, len(tc.body), err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("status %d, want 413", resp.StatusCode)
			}
		})
	}
}

// The log says that a client was answered with an error, and whose it was.
func TestErrorsAreLogged(t *testing.T) {
	var mu sync.Mutex
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	}), nil))
	st := newFixture(t, &sim.Options{}, nil, &gateway.Options{Logger: logger, MaxBody: 1 << 10})
	hello := []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)
	st.post(t, "/v1/messages", hello, sim.FaultHeader, "529")
	st.post(t, "/v1/messages", make([]byte, 2<<10))
	st.post(t, "/v1/messages", hello)
	st.front.Close() // waits for what is under way
	for _, want := range []string{"path=/v1/messages status=529 by=provider model=claude-sonnet-4-5", "path=/v1/messages status=413 by=furl model=other"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "request failed"); n != 2 {
		t.Errorf("%d errors are told of, want 2", n)
	}
}
