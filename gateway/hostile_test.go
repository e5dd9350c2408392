package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// pipes is a listener without sockets, so that its connections keep the time of
// a synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// reading is a provider that reads what it is sent before it answers.
type reading struct{ http.Handler }

func (p reading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was cut off
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.Handler.ServeHTTP(w, r)
}

// A body that does not come is waited for half a minute and no longer, on paths
// that furl knows and on others; one that keeps the pace may take its time.
func TestSlowBody(t *testing.T) {
	for _, tc := range []struct {
		path  string
		piece int           // bytes every
		every time.Duration // 0: never any
		want  string
	}{
		{"/v1/messages", 0, 0, "HTTP/1.1 408"},
		{"/v1/messages", 1, 2 * time.Second, "HTTP/1.1 408"},
		{"/v1/messages", 40 << 10, 2 * time.Second, "HTTP/1.1 400"}, // it is not JSON, which the provider says
		{"/v1/files", 0, 0, "HTTP/1.1 408"},
	} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(time.Second) // the server waits a while before it closes a connection
			store := inmem.New()
			defer store.Close()
			sessions, err := session.New(store, nil)
			if err != nil {
				t.Fatal(err)
			}
			provider := newPipes()
			up, err := upstream.New("http://provider", &upstream.Options{Transport: &http.Transport{
				DialContext: func(context.Context, string, string) (net.Conn, error) { return provider.dial(), nil }, DisableKeepAlives: true,
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer up.Close()
			g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, nil)
			if err != nil {
				t.Fatal(err)
			}
			front := newPipes()
			for ln, h := range map[*pipes]http.Handler{front: g, provider: reading{sim.New(nil)}} {
				srv := &http.Server{Handler: h}
				go srv.Serve(ln)
				defer srv.Close()
			}
			conn := front.dial()
			defer conn.Close()
			begun := time.Now()
			const size = 3 << 20
			var sending sync.WaitGroup
			sending.Go(func() {
				_, _ = io.WriteString(conn, "POST "+tc.path+" HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k\r\nAnthropic-Version: 2023-06-01\r\nContent-Length: 3145728\r\n\r\n") // the answer tells
				for sent := 0; tc.every > 0 && sent < size; sent += tc.piece {
					time.Sleep(tc.every)
					if _, err := conn.Write(bytes.Repeat([]byte("x"), min(tc.piece, size-sent))); err != nil {
						return // it was closed
					}
				}
			})
			head := make([]byte, len(tc.want))
			if _, err := io.ReadFull(conn, head); err != nil || string(head) != tc.want {
				t.Errorf("%s: %q, %v, want %s", tc.path, head, err, tc.want)
			}
			if took := time.Since(begun); strings.Contains(tc.want, "408") && took > 31*time.Second {
				t.Errorf("%s: it took %s", tc.path, took)
			}
			conn.Close()
			sending.Wait()
		})
	}
}

// A page whose name was pointed at this machine may send any header to it, and so
// reach a provider that asks nobody who he is.
func TestReboundPages(t *testing.T) {
	for _, tc := range []struct {
		host, header, value string
		o                   *gateway.Options
		want                int
	}{
		{"evil.example:7410", "Origin", "http://evil.example:7410", nil, http.StatusForbidden},
		{"evil.example:7410", "Sec-Fetch-Site", "same-origin", nil, http.StatusForbidden},
		{"evil.example:7410", "User-Agent", "an agent whose host has that name", nil, http.StatusOK},
		{"localhost:7410", "Origin", "http://localhost:7410", nil, http.StatusOK},
		{"127.0.0.1:7410", "Sec-Fetch-Site", "same-origin", nil, http.StatusOK},
		{"furl.internal", "Sec-Fetch-Site", "same-origin", &gateway.Options{Hosts: []string{"furl.internal"}}, http.StatusOK},
		{"team.example", "Sec-Fetch-Site", "same-origin", &gateway.Options{ClientKeys: []string{"made-up"}}, http.StatusOK},
	} {
		st := newFixture(t, &sim.Options{NoAuth: true}, nil, tc.o)
		for _, path := range []string{"/v1/models", "/openai/v1/models"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = tc.host
			r.Header.Set(tc.header, tc.value)
			r.Header.Set("Authorization", "Bearer made-up")
			w := httptest.NewRecorder()
			st.gateway.ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("%s at %s, %s: %s: %d %s, want %d", path, tc.host, tc.header, tc.value, w.Code, w.Body, tc.want)
			}
		}
	}
}

// A request of more parts than furl handles is sent unchanged.
func TestTooManyParts(t *testing.T) {
	st := newFixture(t, &sim.Options{Window: 10_000_000}, nil, nil)
	body := []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, 50_000) + `{"role":"user","content":"y"}]}`)
	if resp, answer := st.post(t, "/v1/messages", body); resp.StatusCode != 200 || resp.Header.Get("X-Furl-Session") != "" {
		t.Errorf("%d %v %.300s", resp.StatusCode, resp.Header, answer)
	}
	requests := st.sim.Requests()
	if n := len(st.list(t)); n != 0 || !bytes.Equal(requests[0].Body, body) {
		t.Errorf("%d sessions", n)
	}
	// Braces in words are none.
	body = []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"` + strings.Repeat("{", 60_000) + `"}]}`)
	if resp, _ := st.post(t, "/v1/messages", body); resp.Header.Get("X-Furl-Session") == "" {
		t.Error("a request with many braces in its words was not recorded")
	}
}

// full is a store that takes nothing.
type full struct{ storage.Store }

func (full) Append(context.Context, furl.SessionKey, storage.Batch) error {
	return errors.New("the disk is full")
}

// Told to refuse what it cannot record, the gateway does. It learns that only
// when the provider has accepted a request; the client then gets nothing of the
// answer.
func TestRefuse(t *testing.T) {
	srv := httptest.NewServer(sim.New(nil))
	defer srv.Close()
	store := inmem.New()
	defer store.Close()
	for _, refuse := range []bool{true, false} {
		sessions, err := session.New(full{store}, &session.Options{Refuse: refuse})
		if err != nil {
			t.Fatal(err)
		}
		up, err := upstream.New(srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer up.Close()
		g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
		a.say("hello")
		req := httptest.NewRequest(http.MethodPost, "/v1/messages", bytes.NewReader(a.body()))
		req.Header.Set("X-Api-Key", "k")
		req.Header.Set("Anthropic-Version", "2023-06-01")
		rec := httptest.NewRecorder()
		patient{g}.ServeHTTP(rec, req)
		if got := rec.Code == http.StatusServiceUnavailable; got != refuse {
			t.Errorf("refuse=%t: %d %s", refuse, rec.Code, rec.Body)
		}
	}
}
