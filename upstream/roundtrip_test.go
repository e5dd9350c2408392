package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

func TestNewRefusesInvalidAddresses(t *testing.T) {
	for _, base := range []string{"", "host", "ftp://host", "http://", "https://user:sk-planted-key@host", "https://host?key=sk-planted-key", "https://host/#f", "http://a b\x00sk-planted-key"} {
		c, err := New(base, nil)
		if err == nil {
			t.Errorf("%q: %v", base, c.base)
			continue
		}
		contains(t, "the error", err.Error(), "sk-planted-key")
	}
}

func TestTarget(t *testing.T) {
	for _, tc := range []struct{ base, path, want string }{
		{"https://api.example", "/v1/messages?beta=true", "https://api.example/v1/messages?beta=true"},
		{"https://api.example/", "/v1/messages", "https://api.example/v1/messages"},
		{"https://api.example/anthropic", "/v1/messages", "https://api.example/anthropic/v1/messages"},
		{"https://api.example/v1", "/v1/chat/completions", "https://api.example/v1/chat/completions"},
		{"https://api.example/api/v1/", "/v1/chat/completions", "https://api.example/api/v1/chat/completions"},
		{"https://api.example/paas/v4", "/v1/chat/completions", "https://api.example/paas/v4/chat/completions"},
		{"https://api.example/v1beta/openai", "/v1/chat/completions", "https://api.example/v1beta/openai/chat/completions"},
		{"https://api.example/v1", "/v1", "https://api.example/v1"},
		{"https://api.example/api/v1", "/api/v1/chat/completions", "https://api.example/api/v1/chat/completions"},
		{"https://api.example/v1beta/openai/", "/v1beta/openai/chat/completions", "https://api.example/v1beta/openai/chat/completions"},
		{"https://api.example/openai", "/openai/deployments/a%2Fb/chat/completions", "https://api.example/openai/deployments/a%2Fb/chat/completions"},
		{"https://api.example/openai", "/openaix/files", "https://api.example/openai/openaix/files"},
		{"https://api.example/v1", "/models", "https://api.example/v1/models"},
		{"https://api.example", "/v1/files/a%2Fb%20c/x;y", "https://api.example/v1/files/a%2Fb%20c/x;y"},
		{"https://api.example", "", "https://api.example"},
	} {
		c := client(t, tc.base, nil)
		u, err := url.Parse(tc.path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.target(u)
		if err != nil || got.String() != tc.want {
			t.Errorf("%s + %s = %v, %v, want %s", tc.base, tc.path, got, err, tc.want)
		}
	}
	for _, path := range []string{"/v1/../admin", "/v1/%2e%2e/admin", "/..", "/v1/..%2fadmin", "/a/./b", "/..%5cadmin"} {
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		r := get(t, "/")
		r.URL = u
		_, err = client(t, "https://api.example/tenant", nil).RoundTrip(r)
		var e *Error
		if !errors.Is(err, ErrPath) || !errors.As(err, &e) || e.Status() != 400 {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// rawProvider returns the bytes of requests, and gives each the same response.
func rawProvider(t *testing.T, answer string) (base string, got func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	requests := make(chan string, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			var in []byte
			buf := make([]byte, 4096)
			for !bytes.HasSuffix(in, []byte("{}")) && !bytes.HasSuffix(in, []byte("\r\n\r\n")) {
				n, err := conn.Read(buf)
				if err != nil {
					break
				}
				in = append(in, buf[:n]...)
			}
			requests <- string(in)
			io.WriteString(conn, answer)
			conn.(*net.TCPConn).CloseWrite()
			go func() { // closing with unread input would reset the connection
				io.Copy(io.Discard, conn)
				conn.Close()
			}()
		}
	}()
	return "http://" + l.Addr().String(), func() string { return <-requests }
}

const noContent = "HTTP/1.1 204 No Content\r\nRequest-Id: req_1\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Furl-Session: forged\r\nKeep-Alive: timeout=5\r\n\r\n"

func TestHeadersArePassedOn(t *testing.T) {
	base, got := rawProvider(t, noContent)
	c := client(t, base, nil)
	header := http.Header{
		"X-Api-Key": {"sk-planted-key"}, "Authorization": {"Bearer tok"}, "Anthropic-Version": {"2099-01-01"}, "Anthropic-Beta": {"a,b", "c"},
		"Openai-Organization": {"org"}, "X-Session-Id": {"ses_1"}, "Cookie": {"a=b"}, "Idempotency-Key": {"idem-1"}, "Content-Type": {"application/json"},
		"Connection": {"keep-alive, X-Secret-Hop"}, "X-Secret-Hop": {"1"}, "Keep-Alive": {"9"}, "Proxy-Authorization": {"p"}, "Te": {"trailers"},
		"Trailer": {"X"}, "Transfer-Encoding": {"chunked"}, "Upgrade": {"h2c"}, "Expect": {"100-continue"}, "Content-Length": {"999"}, "Host": {"evil"},
		"X-Furl-Session": {"s"}, "X-Forwarded-For": {"10.0.0.1"}, "Forwarded": {"for=x"}, "Via": {"1.1 x"}, "Accept-Encoding": {"gzip, br"},
	}
	before := header.Clone()
	r := post(t, "{}")
	r.URL.RawQuery, r.Header, r.Trailer, r.Close, r.Host = "beta=true", header, http.Header{"X": {"1"}}, true, "evil"
	resp, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if diff := cmp.Diff(before, header); diff != "" {
		t.Errorf("the client's header changed: %s", diff)
	}
	want := strings.NewReplacer("\n", "\r\n", "HOST", strings.TrimPrefix(base, "http://")).Replace(`POST /v1/messages?beta=true HTTP/1.1
Host: HOST
Content-Length: 2
Accept-Encoding: gzip, br
Anthropic-Beta: a,b
Anthropic-Beta: c
Anthropic-Version: 2099-01-01
Authorization: Bearer tok
Content-Type: application/json
Cookie: a=b
Openai-Organization: org
X-Api-Key: sk-planted-key
X-Session-Id: ses_1
idempotency-key: idem-1

{}`)
	if diff := cmp.Diff(want, got()); diff != "" {
		t.Errorf("on the wire, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(http.Header{"Request-Id": {"req_1"}}, resp.Header); diff != "" || resp.StatusCode != 204 || resp.Request != r {
		t.Errorf("answer %d: %s", resp.StatusCode, diff)
	}
}

// A body that can be read only once is passed on, with its length if that is known,
// and no headers are added.
func TestStreamsArePassedOn(t *testing.T) {
	base, got := rawProvider(t, noContent)
	for _, tc := range []struct {
		name          string
		r             *http.Request
		has, withouts []string
	}{
		{"of known length", streamed(t, strings.NewReader("{}"), 2), []string{"PUT /x ", "Content-Length: 2\r\n", "Accept-Encoding: identity\r\n"}, []string{"User-Agent", "chunked"}},
		{"of unknown length", streamed(t, strings.NewReader("{}\r\n\r\n"), -1), []string{"Transfer-Encoding: chunked\r\n"}, []string{"User-Agent", "Content-Length"}},
		{"none", get(t, "/x"), []string{"GET /x "}, []string{"User-Agent", "Content-Length", "chunked"}},
	} {
		// The provider closes each connection: a request on an old one might find it closed.
		resp, err := client(t, base, nil).RoundTrip(tc.r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		text := got()
		for _, want := range tc.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: on the wire, without %q: %s", tc.name, want, text)
			}
		}
		for _, without := range tc.withouts {
			contains(t, tc.name, text, without)
		}
	}
	r := get(t, "/x")
	r.Header.Set("Accept-Encoding", "br")
	resp, err := client(t, base, nil).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if text := got(); !strings.Contains(text, "Accept-Encoding: br\r\n") {
		t.Errorf("on the wire: %s", text)
	}
}

// exact is a reader that fails when it is read past its end.
type exact struct {
	io.Reader
	left int
}

func (e *exact) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, errors.New("read past the end")
	}
	n, err := e.Reader.Read(p)
	e.left -= n
	return n, err
}

// Servers close a request's body when the response begins, so the body may be closed
// once it has been read.
func TestStreamsAreNotReadPastTheirEnd(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if len(got) != 60_000 || err != nil {
			t.Errorf("the provider got %d bytes, %v", len(got), err)
		}
		w.Write(got)
	})
	body := strings.Repeat("x", 60_000)
	resp, err := client(t, p.URL, nil).RoundTrip(streamed(t, &exact{strings.NewReader(body), len(body)}, int64(len(body))))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(resp); err != nil || got != body {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	other := provider(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	resp, err := client(t, p.URL, nil).RoundTrip(post(t, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 307 || resp.Header.Get("Location") != other.URL || elsewhere.Load() != 0 {
		t.Errorf("status %d, location %s, %d requests elsewhere", resp.StatusCode, resp.Header.Get("Location"), elsewhere.Load())
	}
}

// These statuses cannot be passed on to a client.
func TestInvalidStatuses(t *testing.T) {
	for status, want := range map[string]string{"099": "status 099", "000": "status 000", "101": "switched protocols"} {
		base, _ := rawProvider(t, "HTTP/1.1 "+status+" Odd\r\nContent-Length: 0\r\n\r\n")
		_, err := client(t, base, nil).RoundTrip(post(t, "{}"))
		var e *Error
		if !errors.As(err, &e) || e.Stage != StageAnswer || e.Status() != http.StatusBadGateway || !strings.Contains(e.Error(), want) {
			t.Errorf("%s: %v, want %q and 502", status, err, want)
		}
	}
}

// Error responses are passed to the client and not retried.
func TestRefusalsPassThrough(t *testing.T) {
	var n atomic.Int32
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(529)
		io.WriteString(w, `{"type":"error"}`)
	})
	resp, err := client(t, p.URL, nil).RoundTrip(post(t, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := readAll(resp)
	if err != nil || resp.StatusCode != 529 || resp.Header.Get("Retry-After") != "7" || body != `{"type":"error"}` || n.Load() != 1 {
		t.Errorf("status %d, %s, %v after %d requests", resp.StatusCode, body, err, n.Load())
	}
}

// Only failed connections are retried. A request with an idempotency key on an open
// connection is not: the provider may have received it.
func TestOnlyConnectionsAreRetried(t *testing.T) {
	var requests atomic.Int32
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if requests.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
	})
	p.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	var dials atomic.Int32
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) == 1 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	c := client(t, p.URL, &Options{Transport: transport})
	again := func() *http.Request {
		r := post(t, "{}")
		r.Header.Set("Idempotency-Key", "k")
		return r
	}
	resp, err := c.RoundTrip(again())
	if err != nil || dials.Load() != 2 {
		t.Fatalf("%v after %d dials", err, dials.Load())
	}
	if _, err := readAll(resp); err != nil {
		t.Fatal(err)
	}
	_, err = c.RoundTrip(again())
	var e *Error
	if !errors.As(err, &e) || e.Stage != StageAnswer || e.Status() != 502 || requests.Load() != 2 || dials.Load() != 2 {
		t.Errorf("%v after %d requests and %d dials", err, requests.Load(), dials.Load())
	}
}

// A request is retried Retries times, with its whole body, if the body can be read
// again.
func TestRetries(t *testing.T) {
	for _, tc := range []struct {
		name    string
		retries int
		failing int32 // so many dials
		stream  bool
		getBody func() (io.ReadCloser, error)
		dials   int32
		stage   Stage // of the error; "": none
	}{
		{"by default once", 0, 1, false, nil, 2, ""},
		{"and not twice", 0, 2, false, nil, 2, StageConnect},
		{"three times", 3, 3, false, nil, 4, ""},
		{"never", -1, 1, false, nil, 1, StageConnect},
		{"a stream", 3, 1, true, nil, 1, StageConnect},
		{"a body that is gone", 3, 1, false, func() (io.ReadCloser, error) { return nil, errors.New("gone") }, 1, StageRequest},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := piped(t, Options{Retries: tc.retries}, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
				transport := c.opts.Transport.(*http.Transport)
				dial, dials := transport.DialContext, atomic.Int32{}
				transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if dials.Add(1) <= tc.failing {
						return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
					}
					return dial(ctx, network, addr)
				}
				r := post(t, "all of it")
				if tc.stream {
					r = streamed(t, strings.NewReader("all of it"), 9)
				}
				if tc.getBody != nil {
					r.GetBody = tc.getBody
				}
				resp, err := c.RoundTrip(r)
				var e *Error
				switch {
				case tc.stage != "":
					if !errors.As(err, &e) || e.Stage != tc.stage {
						t.Errorf("%v, want %s", err, tc.stage)
					}
				case err != nil:
					t.Error(err)
				default:
					if body, err := readAll(resp); err != nil || body != "all of it" {
						t.Errorf("%q, %v", body, err)
					}
				}
				if dials.Load() != tc.dials {
					t.Errorf("%d dials, want %d", dials.Load(), tc.dials)
				}
			})
		})
	}
}

// A client that disconnects between two attempts does not wait for the second.
func TestLeavingEndsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, Options{Retries: 5}, func(http.ResponseWriter, *http.Request) {})
		ctx, cancel := context.WithCancel(t.Context())
		c.opts.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			time.AfterFunc(time.Millisecond, cancel)
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		began := time.Now()
		_, err := c.RoundTrip(post(t, "{}").WithContext(ctx))
		if took := time.Since(began); err == nil || took != time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// closing is a body that says when it is closed.
type closing struct {
	io.Reader
	closed chan struct{}
	once   sync.Once
}

func (c *closing) Close() error { c.once.Do(func() { close(c.closed) }); return nil }

// http.RoundTripper must close the body, also on errors.
func TestBodiesAreClosed(t *testing.T) {
	answers := func(answer string) string { base, _ := rawProvider(t, answer); return base }
	for _, tc := range []struct {
		name, base string
		change     func(r *http.Request)
	}{
		{"answered", answers(noContent), nil},
		{"an odd status", answers("HTTP/1.1 099 Odd\r\n\r\n"), nil},
		{"no answer", answers(""), nil},
		{"no connection", "http://127.0.0.1:1", nil},
		{"no connection, twice", "http://127.0.0.1:1", func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("{}")), nil }
		}},
		{"the body is gone", "http://127.0.0.1:1", func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
		}},
		{"a path that leads out", answers(noContent), func(r *http.Request) { r.URL.Path = "/.." }},
		{"a header that cannot be sent", answers(noContent), func(r *http.Request) { r.Header.Set("X", "\n") }},
		{"the caller has left", answers(noContent), func(r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			*r = *r.WithContext(ctx)
		}},
		{"of no length", answers(noContent), func(r *http.Request) { r.ContentLength = -1 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := &closing{Reader: strings.NewReader("{}"), closed: make(chan struct{})}
			r := streamed(t, nil, 2)
			r.Body = body
			if tc.change != nil {
				tc.change(r)
			}
			if resp, err := client(t, tc.base, nil).RoundTrip(r); err == nil {
				resp.Body.Close()
			}
			<-body.closed
		})
	}
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = client(t, "http://"+l.Addr().String(), &Options{Retries: -1}).RoundTrip(post(t, "{}"))
	var e *Error
	if !errors.As(err, &e) || e.Stage != StageConnect || e.Status() != 502 || e.Timeout {
		t.Fatalf("%#v", err)
	}
	if r := e.Refusal(); r.Status != 502 || !strings.HasPrefix(r.Message, "furl: cannot connect to the provider (127.0.0.1:") {
		t.Errorf("refusal %+v", r)
	}
}

func TestTimeouts(t *testing.T) {
	limits := Options{Connect: 3 * time.Second, FirstByte: time.Minute, Idle: 10 * time.Second, Total: time.Hour}
	silent := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the connection closes
		<-r.Context().Done()
	}
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		dial    func(context.Context, string, string) (net.Conn, error)
		stage   Stage
		cause   error
		after   time.Duration
	}{
		{"no connection", silent, func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }, StageConnect, ErrConnectTimeout, 3 * time.Second},
		{"no answer", silent, nil, StageAnswer, ErrAnswerTimeout, time.Minute},
		{"a header that drips", func(w http.ResponseWriter, r *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			defer conn.Close()
			for _, b := range []byte("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
		}, nil, StageAnswer, ErrAnswerTimeout, time.Minute},
		{"a body that stalls", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			io.WriteString(w, "data: x\n\n")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, nil, StageBody, ErrIdle, 10 * time.Second},
		{"a body without end", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			for r.Context().Err() == nil {
				io.WriteString(w, ": ping\n\n")
				http.NewResponseController(w).Flush()
				time.Sleep(9 * time.Second)
			}
		}, nil, StageBody, ErrTotal, time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := piped(t, limits, tc.handler)
				if tc.dial != nil {
					c.opts.Transport.(*http.Transport).DialContext = tc.dial
				}
				began := time.Now()
				resp, err := c.RoundTrip(post(t, "{}"))
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					if n, after := resp.Body.Read(make([]byte, 1)); n != 0 || after != err {
						t.Errorf("after the error: %d bytes, %v", n, after)
					}
					resp.Body.Close()
				}
				var e *Error
				if !errors.As(err, &e) || e.Stage != tc.stage || !errors.Is(err, tc.cause) || !e.Timeout || e.Status() != 504 {
					t.Errorf("%v, want %v from %v", err, tc.stage, tc.cause)
				}
				if took := time.Since(began); took < tc.after || took > tc.after+time.Second {
					t.Errorf("took %v, want %v", took, tc.after)
				}
			})
		})
	}
}

// A late response, or one with pauses, is not an error.
func TestSlowIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c := piped(t, Options{FirstByte: time.Minute, Idle: 10 * time.Second, Logger: logger}, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(59 * time.Second)
			for i := range 100 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				http.NewResponseController(w).Flush()
				time.Sleep(9 * time.Second)
			}
		})
		resp, err := c.RoundTrip(post(t, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		// The caller may be slow too.
		time.Sleep(time.Hour)
		body, err := readAll(resp)
		if err != nil || !strings.HasSuffix(body, "data: 99\n\n") {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		if !strings.Contains(log.String(), "connect=1ns first_byte=59s") {
			t.Errorf("the log: %s", log.String())
		}
	})
}

// A body that is cut off ends with an error, with and without a length.
func TestCutBodies(t *testing.T) {
	for _, head := range []string{"Content-Length: 1000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n7\r\n"} {
		base, _ := rawProvider(t, "HTTP/1.1 200 OK\r\n"+head+"data: x")
		resp, err := client(t, base, nil).RoundTrip(post(t, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := readAll(resp)
		var e *Error
		if body != "data: x" || !errors.As(err, &e) || e.Stage != StageBody || e.Timeout || e.Status() != 502 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q, %v", body, err)
		}
	}
}

// Encoded bodies are passed on unchanged, with their trailers. Only furl sets its own.
func TestBodiesAreNotTouched(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header().Set("Trailer", "X-Sum, X-Furl-Note")
		io.WriteString(w, "\x1f\x8b packed")
		w.Header().Set("X-Sum", "42")
		w.Header().Set("X-Furl-Note", "forged")
		w.Header().Set(http.TrailerPrefix+"X-Furl-Session", "forged")
	})
	resp, err := client(t, p.URL, nil).RoundTrip(get(t, "/x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, announced := resp.Trailer["X-Furl-Note"]; announced {
		t.Errorf("announced trailers %v", resp.Trailer)
	}
	body, err := readAll(resp)
	if err != nil || body != "\x1f\x8b packed" || resp.Header.Get("Content-Encoding") != "gzip" || resp.Uncompressed {
		t.Errorf("%q, %v, %v", body, err, resp.Header)
	}
	if resp.Trailer.Get("X-Sum") != "42" || len(resp.Trailer) != 1 || resp.Header["Alt-Svc"] != nil {
		t.Errorf("trailer %v, header %v", resp.Trailer, resp.Header)
	}
}

// When the caller cancels, the request to the provider is cancelled, before the
// response and within it.
func TestTheCallerLeaves(t *testing.T) {
	for _, answered := range []bool{false, true} {
		seen, cancelled := make(chan struct{}), make(chan struct{})
		p := provider(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if answered {
				io.WriteString(w, "some")
				http.NewResponseController(w).Flush()
			} else {
				close(seen)
			}
			<-r.Context().Done()
			close(cancelled)
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-seen; cancel() }()
		resp, err := client(t, p.URL, nil).RoundTrip(post(t, "{}").WithContext(ctx))
		if answered {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
			close(seen)
			_, err = readAll(resp)
		}
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, ErrClientGone) || e.Status() != StatusClientGone || e.Timeout {
			t.Errorf("answered %v: %v", answered, err)
		}
		<-cancelled
	}
}

// Closing a body before its end cancels the request to the provider.
func TestClosingCancels(t *testing.T) {
	cancelled := make(chan struct{})
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(cancelled)
	})
	resp, err := client(t, p.URL, nil).RoundTrip(post(t, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-cancelled
}

// Concurrent requests get their own responses.
func TestRequestsAreIndependent(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		for range 50 {
			io.WriteString(w, r.URL.Path+"\n")
			http.NewResponseController(w).Flush()
		}
	})
	c := client(t, p.URL, nil)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			path := fmt.Sprintf("/%d", i)
			resp, err := c.RoundTrip(get(t, path))
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := readAll(resp); err != nil || got != strings.Repeat(path+"\n", 50) {
				t.Errorf("%s got %q, %v", path, got, err)
			}
		})
	}
	all.Wait()
}

// No key and no part of a body is in an error or a log line.
func TestKeysStayOut(t *testing.T) {
	var log bytes.Buffer
	opts := &Options{Retries: -1, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	broken := func(answer string) string { base, _ := rawProvider(t, answer); return base }
	for _, base := range []string{
		"http://127.0.0.1:1", "https" + strings.TrimPrefix(provider(t, func(http.ResponseWriter, *http.Request) {}).URL, "http"), broken(""), broken("sk-planted-key\r\n\r\n"),
		broken("HTTP/1.1 200 OK\r\nsk-planted-key\r\n\r\n"), broken("HTTP/1.1 200 OK\r\nContent-Length: sk-planted-key\r\n\r\n"),
		broken("HTTP/1.1 101 Switching Protocols\r\n\r\n"), broken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsk-planted-key\r\n"),
		broken("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx"), broken(noContent),
		broken("HTTP/1.1 200 OK\r\n sk-planted-key: x\r\n\r\n"), broken("HTTP/1.1 200 OK\r\nsk planted-key : x\r\n\r\n"), broken("HTTP/1.1 sk-planted-key\r\n\r\n"),
		broken("HTTP/1.1 200 OK\r\nTrailer: sk-planted-key\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), broken("HTTP/1.1 200 OK\r\nTransfer-Encoding: sk-planted-key\r\n\r\n"),
	} {
		for _, bad := range []bool{false, true} {
			r := post(t, `{"secret":"planted words"}{}`)
			r.URL.RawQuery = "key=sk-planted-key"
			if bad {
				r.Header.Set("X-Bad", "sk-planted-key\n")
			}
			resp, err := client(t, base, opts).RoundTrip(r)
			if err == nil {
				_, err = readAll(resp)
			}
			if err == nil {
				if bad {
					t.Errorf("%s: no error", base)
				}
				continue
			}
			for _, text := range []string{err.Error(), err.(*Error).Refusal().Message, Text(errors.Unwrap(err))} {
				contains(t, "the error", text, "planted")
			}
		}
	}
	contains(t, "the log", log.String(), "planted")
	if !strings.Contains(log.String(), "upstream failed") {
		t.Errorf("nothing was logged: %s", log.String())
	}
}

func TestErrorsInTheProvidersShape(t *testing.T) {
	e := &Error{Stage: StageAnswer, Host: "api.example", Timeout: true, Err: ErrAnswerTimeout}
	for _, tc := range []struct {
		codec protocol.Codec
		want  string
	}{
		{anthropic.Codec, `{"type":"error","error":{"type":"timeout_error","message":"furl: the provider did not respond (api.example): response timed out"},"request_id":"req_1"}`},
		{openai.Chat, `{"error":{"message":"furl: the provider did not respond (api.example): response timed out","type":"server_error","param":null,"code":null}}`},
	} {
		rec := httptest.NewRecorder()
		if err := WriteError(rec, tc.codec.(protocol.ReplyCodec), e.Refusal(), "req_1"); err != nil {
			t.Fatal(err)
		}
		if rec.Code != 504 || rec.Body.String() != tc.want || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
		}
	}
}

// A segment of a path that is not a word of an API may be a key.
func TestPath(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/messages":                        "/v1/messages",
		"/v1/messages/batches/msgbatch_01AbC": "/v1/messages/batches/…",
		"/sk-planted-key/v1/chat/completions": "/…/v1/chat/completions",
		"//v1/":                               "//v1/",
		"":                                    "",
		strings.Repeat("/v1", 30):             strings.Repeat("/v1", 11) + "/…",
	} {
		if got := Path(&url.URL{Path: path, RawQuery: "key=sk-planted-key", User: url.UserPassword("a", "sk-planted-key")}); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// Only the text of runtime errors is reported of a panic.
func TestPanicked(t *testing.T) {
	if got := Panicked(errors.New("sk-planted-key")); got != "a *errors.errorString" {
		t.Error(got)
	}
	defer func() {
		if got := Panicked(recover()); !strings.Contains(got, "index out of range") {
			t.Error(got)
		}
	}()
	_ = []int{}[len(os.Args)]
}
