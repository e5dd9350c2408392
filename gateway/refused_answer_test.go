package gateway_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// held is a provider that answers when it is told to.
type held struct {
	arrived chan struct{} // one for each request
	release chan struct{} // closed to let all be answered
}

func (h *held) RoundTrip(r *http.Request) (*http.Response, error) {
	h.arrived <- struct{}{}
	<-h.release
	return instant{}.RoundTrip(r)
}

// heldGateway serves a gateway in front of a provider that holds its answers.
func heldGateway(t *testing.T, o *gateway.Options) (*held, *httptest.Server) {
	t.Helper()
	h := &held{arrived: make(chan struct{}, 1000), release: make(chan struct{})}
	sessions, err := session.New(inmem.New(), &session.Options{Policy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New("http://upstream.invalid", &upstream.Options{Transport: h})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, o)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	return h, front
}

// writeFirst sends a request as most clients do, all of it before it reads
// anything, and returns the answer's status and body.
func writeFirst(addr, head string, body []byte) (int, string, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, head); err != nil {
		return 0, "", err
	}
	if n, err := conn.Write(body); err != nil {
		return 0, "", fmt.Errorf("after %d of %d bytes: %w", n, len(body), err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// Refused clients read why they were refused, in their provider's shape,
// however much they were still to send.
func TestRefusedClientsReadTheAnswer(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 10<<20) // more than sockets buffer
	count := 60
	if gateway.RaceDetector {
		count = 12
	}
	for _, test := range []struct {
		name   string
		o      gateway.Options
		fill   [][]byte // requests that the provider holds
		body   []byte
		path   string
		status int
		words  string
	}{
		{"too many requests", gateway.Options{MaxRequests: 1}, [][]byte{partsOf(2, 10, false)}, large, "/v1/messages", 503, `"type":"error"`},
		{"too much memory", gateway.Options{MemoryWait: time.Nanosecond}, [][]byte{partsOf(49_000, 2, false), partsOf(49_000, 2, true)}, partsOf(49_000, 160, false), "/v1/messages", 503, `"type":"error"`},
		{"a body too large", gateway.Options{MaxBody: 1 << 20}, nil, large, "/v1/messages", 413, `"type":"error"`},
		{"no key", gateway.Options{ClientKeys: []string{"0123456789abcdef"}}, nil, large, "/v1/messages", 401, `"error"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, front := heldGateway(t, &test.o)
			var all sync.WaitGroup
			defer all.Wait()
			defer close(h.release)
			for _, body := range test.fill {
				all.Go(func() {
					if resp, err := http.Post(front.URL+"/v1/messages", "application/json", bytes.NewReader(body)); err == nil {
						resp.Body.Close()
					}
				})
				<-h.arrived
			}
			addr := strings.TrimPrefix(front.URL, "http://")
			head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k\r\nContent-Length: %d\r\n\r\n", test.path, len(test.body))
			var clients sync.WaitGroup
			results := make(chan error, count)
			for i := range count {
				clients.Go(func() {
					if i%4 == 0 { // a client that reads while it writes
						resp, err := http.Post(front.URL+test.path, "application/json", bytes.NewReader(test.body))
						if err == nil {
							if resp.StatusCode != test.status {
								err = errors.New(resp.Status)
							}
							resp.Body.Close()
						}
						results <- err
						return
					}
					status, text, err := writeFirst(addr, head, test.body)
					if err == nil && (status != test.status || !strings.Contains(text, test.words)) {
						err = fmt.Errorf("%d %s", status, text)
					}
					results <- err
				})
			}
			clients.Wait()
			close(results)
			failed := 0
			for err := range results {
				if err != nil {
					if failed++; failed == 1 {
						t.Error(err)
					}
				}
			}
			if failed > 0 {
				t.Errorf("%d of %d clients did not read status %d", failed, count, test.status)
			}
		})
	}
}

// What a refused client still sends holds no slot.
func TestDrainHoldsNoSlot(t *testing.T) {
	h, front := heldGateway(t, &gateway.Options{MaxRequests: 1, MaxBody: 1 << 20})
	conn, err := net.Dial("tcp", strings.TrimPrefix(front.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	close(h.release)
	for range 100 { // the first may come before the one that is refused
		resp, err := http.Post(front.URL+"/v1/messages", "application/json", bytes.NewReader(partsOf(2, 10, false)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	t.Error("no request is served while a refused client goes on sending")
}
