package upstream

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// provider starts an HTTP server that acts as the provider.
func provider(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func client(t testing.TB, base string, opts *Options) *Client {
	t.Helper()
	c, err := New(base, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// post is a request like those of agents.
func post(t testing.TB, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"sk-planted-key"}}
	return r
}

// get is a request without a body.
func get(t testing.TB, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// streamed is a request whose body can be read once.
func streamed(t testing.TB, body io.Reader, length int64) *http.Request {
	t.Helper()
	r := get(t, "/x")
	r.Method, r.Body, r.ContentLength = http.MethodPut, io.NopCloser(body), length
	return r
}

// readAll reads the body of a reply and closes it.
func readAll(resp *http.Response) (string, error) {
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return string(body), err
}

// pipes is a listener without sockets, for tests with a fake clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr {
	return &net.UnixAddr{Name: "pipe", Net: "unix"}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// piped starts a provider that is connected by pipes, and returns a client for it.
func piped(t *testing.T, opts Options, h http.HandlerFunc) *Client {
	t.Helper()
	p := newPipes()
	var handlers sync.WaitGroup
	handlers.Add(1) // so that the count is not 0 while Wait runs
	tracked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		h(w, r)
	})
	server := &http.Server{Handler: tracked, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go server.Serve(p)
	transport := &http.Transport{DialContext: p.dial, DisableCompression: true}
	opts.Transport = transport
	c, err := New("http://provider.example", &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		transport.CloseIdleConnections()
		server.Close()
		handlers.Done()
		handlers.Wait()
	})
	return c
}

// contains fails if a secret is in a text.
func contains(t testing.TB, what, text, secret string) {
	t.Helper()
	if strings.Contains(text, secret) {
		t.Errorf("%s holds %q: %s", what, secret, text)
	}
}
