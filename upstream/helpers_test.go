package upstream

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// provider starts an HTTP server that stands for the provider.
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

// post is a request as an agent sends it.
func post(body string) *Request {
	return &Request{
		Method: "POST", URL: &url.URL{Path: "/v1/messages"}, Body: []byte(body), Understand: true,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"sk-planted-key"}},
	}
}

// gateway starts a server that relays everything to c, and notes what came of
// each relay.
type gateway struct {
	*httptest.Server
	results chan relayed
}

type relayed struct {
	Relayed
	err error
}

func relay(t testing.TB, c *Client, observer func() Observer) *gateway {
	t.Helper()
	g := &gateway{results: make(chan relayed, 100)}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		resp, err := c.Do(r.Context(), &Request{Method: r.Method, URL: r.URL, Header: r.Header, Body: body, Understand: true})
		if err != nil {
			g.results <- relayed{err: err}
			http.Error(w, err.Error(), err.(*Error).Status())
			return
		}
		defer resp.Close()
		var o Observer
		if observer != nil {
			o = observer()
		}
		done, err := c.Relay(w, resp, o)
		g.results <- relayed{done, err}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	g.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(g.Close)
	return g
}

// notebook is an Observer that keeps everything.
type notebook struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	err  error
	ends int
	done chan struct{}
}

func newNotebook() *notebook { return &notebook{done: make(chan struct{})} }

func (n *notebook) Chunk(p []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buf.Write(p)
}

func (n *notebook) End(err error) {
	n.mu.Lock()
	n.err = err
	n.ends++
	n.mu.Unlock()
	close(n.done)
}

// got waits for the end and gives what was observed.
func (n *notebook) got(t testing.TB) (string, error) {
	t.Helper()
	<-n.done
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ends != 1 {
		t.Errorf("End was called %d times", n.ends)
	}
	return n.buf.String(), n.err
}

// pipes is a listener without sockets, for tests in which time stands still.
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

// piped starts a provider behind pipes and gives a client of it.
func piped(t *testing.T, opts Options, h http.HandlerFunc) *Client {
	t.Helper()
	p := newPipes()
	var handlers sync.WaitGroup
	handlers.Add(1) // so that none is the first while somebody waits
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
