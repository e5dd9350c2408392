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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

func TestNewRefusesWhatIsNoAddress(t *testing.T) {
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
		_, err = client(t, "https://api.example/tenant", nil).Do(context.Background(), &Request{Method: "GET", URL: u})
		var e *Error
		if !errors.Is(err, ErrPath) || !errors.As(err, &e) || e.Status() != 400 {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// raw reads one request off a connection as it is on the wire.
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
			conn.Close()
		}
	}()
	return "http://" + l.Addr().String(), func() string { return <-requests }
}

const noContent = "HTTP/1.1 204 No Content\r\nRequest-Id: req_1\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Furl-Session: forged\r\nKeep-Alive: timeout=5\r\n\r\n"

func TestHeadersGoOutAsTheyCame(t *testing.T) {
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
	resp, err := c.Do(context.Background(), &Request{Method: "POST", URL: &url.URL{Path: "/v1/messages", RawQuery: "beta=true"}, Header: header, Body: []byte("{}"), Understand: true})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	if diff := cmp.Diff(before, header); diff != "" {
		t.Errorf("the client's header changed: %s", diff)
	}
	want := strings.NewReplacer("\n", "\r\n", "HOST", strings.TrimPrefix(base, "http://")).Replace(`POST /v1/messages?beta=true HTTP/1.1
Host: HOST
Content-Length: 2
Accept-Encoding: identity
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
	if diff := cmp.Diff(http.Header{"Request-Id": {"req_1"}}, resp.Header); diff != "" || resp.Status != 204 {
		t.Errorf("answer %d: %s", resp.Status, diff)
	}
}

func TestPassedOnWithoutBeingRead(t *testing.T) {
	base, got := rawProvider(t, noContent)
	c := client(t, base, nil)
	resp, err := c.Do(context.Background(), &Request{Method: "PUT", URL: &url.URL{Path: "/x"}, Header: http.Header{"Accept-Encoding": {"br"}}, Stream: strings.NewReader("{}"), Length: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	if text := got(); !strings.Contains(text, "Accept-Encoding: br\r\n") || !strings.Contains(text, "Content-Length: 2\r\n") || strings.Contains(text, "User-Agent") {
		t.Errorf("on the wire: %s", text)
	}
	resp, err = c.Do(context.Background(), &Request{Method: "GET", URL: &url.URL{Path: "/x"}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	if text := got(); strings.Contains(text, "Content-Length") || strings.Contains(text, "chunked") {
		t.Errorf("on the wire: %s", text)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	other := provider(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	resp, err := client(t, p.URL, nil).Do(context.Background(), post("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	if resp.Status != 307 || resp.Header.Get("Location") != other.URL || elsewhere.Load() != 0 {
		t.Errorf("status %d, location %s, %d requests elsewhere", resp.Status, resp.Header.Get("Location"), elsewhere.Load())
	}
}

// No server may give such a status to its client.
func TestStatusesThatNobodyCanPassOn(t *testing.T) {
	for status, want := range map[string]string{"099": "status 099", "000": "status 000", "101": "switched protocols"} {
		base, _ := rawProvider(t, "HTTP/1.1 "+status+" Odd\r\nContent-Length: 0\r\n\r\n")
		_, err := client(t, base, nil).Do(context.Background(), post("{}"))
		var e *Error
		if !errors.As(err, &e) || e.Stage != StageAnswer || e.Status() != http.StatusBadGateway || !strings.Contains(e.Error(), want) {
			t.Errorf("%s: %v, want %q and 502", status, err, want)
		}
	}
}

// What the provider refuses is the client's business: one request, one answer.
func TestRefusalsPassThrough(t *testing.T) {
	var n atomic.Int32
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(529)
		io.WriteString(w, `{"type":"error"}`)
	})
	resp, err := client(t, p.URL, nil).Do(context.Background(), post("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	body, err := resp.ReadAll()
	if err != nil || resp.Status != 529 || resp.Header.Get("Retry-After") != "7" || string(body) != `{"type":"error"}` || n.Load() != 1 {
		t.Errorf("status %d, %s, %v after %d requests", resp.Status, body, err, n.Load())
	}
}

// A connection that could not be made is tried for again, and nothing else:
// not even a request with an idempotency key on a connection that was open
// already, of which the provider may have seen all.
func TestOnlyWhatWasNotSentIsSentAgain(t *testing.T) {
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
	req := post("{}")
	req.Header.Set("Idempotency-Key", "k")
	resp, err := c.Do(context.Background(), req)
	if err != nil || dials.Load() != 2 {
		t.Fatalf("%v after %d dials", err, dials.Load())
	}
	if _, err := resp.ReadAll(); err != nil {
		t.Fatal(err)
	}
	resp.Close()
	_, err = c.Do(context.Background(), req)
	var e *Error
	if !errors.As(err, &e) || e.Stage != StageAnswer || e.Status() != 502 || requests.Load() != 2 || dials.Load() != 2 {
		t.Errorf("%v after %d requests and %d dials", err, requests.Load(), dials.Load())
	}
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = client(t, "http://"+l.Addr().String(), &Options{Retries: -1}).Do(context.Background(), post("{}"))
	var e *Error
	if !errors.As(err, &e) || e.Stage != StageConnect || e.Status() != 502 || e.Timeout {
		t.Fatalf("%#v", err)
	}
	if r := e.Refusal(); r.Status != 502 || !strings.HasPrefix(r.Message, "furl: The provider cannot be reached (127.0.0.1:") {
		t.Errorf("refusal %+v", r)
	}
}

func TestTimeouts(t *testing.T) {
	limits := Options{Connect: 3 * time.Second, FirstByte: time.Minute, Idle: 10 * time.Second, Total: time.Hour}
	silent := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else the server does not notice that the connection closes
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
				resp, err := c.Do(context.Background(), post("{}"))
				if err == nil {
					_, err = io.Copy(io.Discard, resp)
					resp.Close()
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

// A slow model is no fault: neither a late answer nor one with pauses ends.
func TestSlowIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, Options{FirstByte: time.Minute, Idle: 10 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(59 * time.Second)
			for i := range 100 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				http.NewResponseController(w).Flush()
				time.Sleep(9 * time.Second)
			}
		})
		resp, err := c.Do(context.Background(), post("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Close()
		body, err := resp.ReadAll()
		if err != nil || !strings.HasSuffix(string(body), "data: 99\n\n") {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		if resp.FirstByte < 59*time.Second || resp.Connect > time.Second {
			t.Errorf("connected after %v, first byte after %v", resp.Connect, resp.FirstByte)
		}
	})
}

func TestTheClientLeavesBeforeTheAnswer(t *testing.T) {
	seen, cancelled := make(chan struct{}), make(chan struct{})
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(seen)
		<-r.Context().Done()
		close(cancelled)
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-seen; cancel() }()
	_, err := client(t, p.URL, &Options{Finish: time.Hour}).Do(ctx, post("{}"))
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, ErrClientGone) || e.Status() != StatusClientGone {
		t.Errorf("%v", err)
	}
	<-cancelled
}

func TestBodiesReadWholeAreBounded(t *testing.T) {
	for _, known := range []bool{true, false} {
		p := provider(t, func(w http.ResponseWriter, r *http.Request) {
			if !known {
				http.NewResponseController(w).Flush()
			}
			w.Write(make([]byte, 2000))
		})
		for most, want := range map[int64]error{2000: nil, 1999: ErrTooLarge} {
			resp, err := client(t, p.URL, &Options{MaxBody: most}).Do(context.Background(), post("{}"))
			if err != nil {
				t.Fatal(err)
			}
			body, err := resp.ReadAll()
			if !errors.Is(err, want) || err == nil && len(body) != 2000 {
				t.Errorf("%d bytes of at most %d: %v", len(body), most, err)
			}
			resp.Close()
		}
	}
}

// No key and no word of a body is in an error or a log line, whatever fails.
func TestKeysStayOut(t *testing.T) {
	var log bytes.Buffer
	opts := &Options{Retries: -1, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	broken := func(answer string) string { base, _ := rawProvider(t, answer); return base }
	req := post(`{"secret":"planted words"}{}`)
	req.URL.RawQuery = "key=sk-planted-key"
	header := req.Header.Clone()
	for _, base := range []string{
		"http://127.0.0.1:1", "https" + strings.TrimPrefix(provider(t, func(http.ResponseWriter, *http.Request) {}).URL, "http"), broken(""), broken("sk-planted-key\r\n\r\n"),
		broken("HTTP/1.1 200 OK\r\nsk-planted-key\r\n\r\n"), broken("HTTP/1.1 200 OK\r\nContent-Length: sk-planted-key\r\n\r\n"),
		broken("HTTP/1.1 101 Switching Protocols\r\n\r\n"), broken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsk-planted-key\r\n"),
		broken("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx"), broken(noContent),
		broken("HTTP/1.1 200 OK\r\n sk-planted-key: x\r\n\r\n"), broken("HTTP/1.1 200 OK\r\nsk planted-key : x\r\n\r\n"), broken("HTTP/1.1 sk-planted-key\r\n\r\n"),
		broken("HTTP/1.1 200 OK\r\nTrailer: sk-planted-key\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), broken("HTTP/1.1 200 OK\r\nTransfer-Encoding: sk-planted-key\r\n\r\n"),
	} {
		for _, bad := range []bool{false, true} {
			req.Header = header.Clone()
			if bad {
				req.Header.Set("X-Bad", "sk-planted-key\n")
			}
			resp, err := client(t, base, opts).Do(context.Background(), req)
			if err == nil {
				_, err = resp.ReadAll()
				resp.Close()
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
		codec furl.Codec
		want  string
	}{
		{anthropic.Codec, `{"type":"error","error":{"type":"timeout_error","message":"furl: The provider did not answer (api.example): no answer in time"},"request_id":"req_1"}`},
		{openai.Chat, `{"error":{"message":"furl: The provider did not answer (api.example): no answer in time","type":"server_error","param":null,"code":null}}`},
	} {
		rec := httptest.NewRecorder()
		if err := WriteError(rec, tc.codec.(furl.ReplyCodec), e.Refusal(), "req_1"); err != nil {
			t.Fatal(err)
		}
		if rec.Code != 504 || rec.Body.String() != tc.want || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
		}
	}
}

// What stands in a path may be a key, and is no word of an API.
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

// Nothing of what was panicked with is said but what the language says itself.
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
