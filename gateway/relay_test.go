package gateway_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// relaying is a gateway in front of a provider in a function.
type relaying struct {
	*httptest.Server
	gateway  *gateway.Gateway
	sessions *session.Sessions
}

func relay(t testing.TB, h http.HandlerFunc, o *gateway.Options) *relaying {
	t.Helper()
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	provider := httptest.NewUnstartedServer(h)
	provider.Config.ErrorLog = quiet
	provider.Start()
	t.Cleanup(provider.Close)
	sessions, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(provider.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up, OpenAI: up}, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &relaying{Server: httptest.NewUnstartedServer(g), gateway: g, sessions: sessions}
	r.Config.ErrorLog = quiet
	r.Start()
	t.Cleanup(r.Close)
	return r
}

// paths are one that goes through furlhttp, one where furl is asked to leave the
// request alone, and one that it does not know.
var paths = []struct {
	name, path, header string
}{{"model", "/v1/messages", ""}, {"bypassed", "/v1/messages", "X-Furl-Bypass"}, {"passed on", "/anthropic/v1/files", ""}}

const relayed = `{"model":"claude-sonnet-4-5","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi."}]}`

// send sends a request to a model, or another.
func (r *relaying) send(t testing.TB, ctx context.Context, path, header string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+path, strings.NewReader(relayed))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k")
	req.Header.Set("Content-Type", "application/json")
	if header != "" {
		req.Header.Set(header, "true")
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

const (
	piece = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Gr\u00fc\u00dfe \U0001D11E\"}}\n\n"
	start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	finish = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// Every byte reaches the client before the next one is sent, within lines and
// within characters; the header before the first.
func TestRelayFlushesEachPiece(t *testing.T) {
	for _, p := range paths {
		for _, typ := range []string{"text/event-stream; charset=utf-8", "application/x-ndjson"} {
			next := make(chan struct{})
			g := relay(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", typ)
				w.Header().Set("Request-Id", "req_1")
				rc := http.NewResponseController(w)
				if p.name == "model" { // what comes before the model says something may be held back
					io.WriteString(w, start)
				}
				rc.Flush()
				for _, b := range []byte(piece) {
					<-next
					w.Write([]byte{b})
					rc.Flush()
				}
			}, nil)
			resp := g.send(t, t.Context(), p.path, p.header) // would hang without a header
			if resp.Header.Get("Content-Type") != typ || resp.Header.Get("Request-Id") != "req_1" {
				t.Errorf("%s: header %v", p.name, resp.Header)
			}
			if p.name == "model" {
				if _, err := io.ReadFull(resp.Body, make([]byte, len(start))); err != nil {
					t.Fatal(err)
				}
			}
			one := make([]byte, 1)
			for i := range len(piece) {
				next <- struct{}{}
				if _, err := io.ReadFull(resp.Body, one); err != nil || one[0] != piece[i] {
					t.Fatalf("%s: byte %d: %q, %v", p.name, i, one, err)
				}
			}
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
				t.Errorf("%s: after the end: %q, %v", p.name, rest, err)
			}
		}
	}
}

// Status, length and trailers are the provider's, no type is guessed, and nothing
// names another way to reach the provider.
func TestRelayKeepsStatusLengthAndTrailers(t *testing.T) {
	g := relay(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/files/length", "/v1/messages":
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(201)
			if r.Method != http.MethodHead {
				io.WriteString(w, "hello")
			}
		case "/v1/files/trailer":
			w.Header().Set("Trailer", "X-Sum")
			io.WriteString(w, "x")
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-Late", "7")
		case "/v1/files/empty":
			w.WriteHeader(204)
		case "/v1/files/untyped":
			w.Header()["Content-Type"] = nil
			w.Header().Set("Alt-Svc", `h3=":443"`)
			io.WriteString(w, "<html>")
		}
	}, nil)
	for _, tc := range []struct {
		method, path, body string
		status             int
		length             int64
	}{
		{"POST", "/v1/files/length", "hello", 201, 5}, {"HEAD", "/v1/files/length", "", 201, 5}, {"POST", "/v1/files/trailer", "x", 200, -1},
		{"GET", "/v1/files/empty", "", 204, 0}, {"GET", "/v1/files/untyped", "<html>", 200, 6}, {"POST", "/v1/messages", "hello", 201, 5},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, g.URL+"/anthropic"+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != tc.body || resp.StatusCode != tc.status || resp.ContentLength != tc.length {
			t.Errorf("%s %s: status %d, length %d, %q, %v", tc.method, tc.path, resp.StatusCode, resp.ContentLength, body, err)
		}
		if tc.path == "/v1/files/untyped" && (resp.Header["Content-Type"] != nil || resp.Header["Alt-Svc"] != nil) {
			t.Errorf("header %v", resp.Header)
		}
		if tc.path == "/v1/files/trailer" && (resp.Trailer.Get("X-Sum") != "42" || resp.Trailer.Get("X-Late") != "7") {
			t.Errorf("trailers %v", resp.Trailer)
		}
	}
}

// A stream that is cut off ends with an error event after what arrived; anything
// else is cut off for the client too.
func TestRelayOfCutReplies(t *testing.T) {
	for _, p := range paths {
		for _, typ := range []string{"text/event-stream", "application/json"} {
			for _, length := range []bool{false, true} {
				g := relay(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", typ)
					if length {
						w.Header().Set("Content-Length", "100000")
					}
					io.WriteString(w, start+piece[:20])
					http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}, nil)
				body, err := io.ReadAll(g.send(t, t.Context(), p.path, p.header).Body)
				rest, ok := strings.CutPrefix(string(body), start+piece[:20])
				if !ok {
					t.Errorf("%s %s: %q, %v", p.name, typ, body, err)
				}
				told := strings.HasPrefix(rest, "\n\nevent: error\ndata: {") && strings.Contains(rest, "cut off")
				if stream := strings.HasPrefix(typ, "text/"); stream != told || !stream && (rest != "" || !errors.Is(err, io.ErrUnexpectedEOF)) || stream && !length && err != nil {
					t.Errorf("%s %s length=%v: the client got %q at the end, %v", p.name, typ, length, rest, err)
				}
			}
		}
	}
}

// When the client leaves, the provider's work is cancelled, or, with
// Options.Finish, read to its end for the record.
func TestTheClientLeaves(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Hour} {
		cancelled, left := make(chan bool, 1), make(chan struct{})
		g := relay(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, start+piece)
			http.NewResponseController(w).Flush()
			<-left
			if wait == 0 {
				<-r.Context().Done()
				cancelled <- true
				return
			}
			for range 100 {
				io.WriteString(w, piece)
				http.NewResponseController(w).Flush()
			}
			io.WriteString(w, finish)
			cancelled <- r.Context().Err() != nil
		}, &gateway.Options{Finish: wait})
		ctx, cancel := context.WithCancel(t.Context())
		resp := g.send(t, ctx, "/v1/messages", "")
		if _, err := io.ReadFull(resp.Body, make([]byte, len(start+piece))); err != nil {
			t.Fatal(err)
		}
		cancel()
		resp.Body.Close()
		close(left)
		if got := <-cancelled; got != (wait == 0) {
			t.Errorf("finish %v: the provider's work was cancelled: %v", wait, got)
		}
		g.Close() // waits for the handlers
		g.gateway.Wait(t.Context())
		s, err := g.sessions.Find(t.Context(), session.Latest)
		if err != nil {
			t.Fatal(err)
		}
		want, said := 1, ""
		if wait > 0 {
			want = 101
		}
		if st := sessiontest.Log(t, s).State(); st.Len() == 2 {
			_, m := st.Message(1)
			said = m.Blocks[0].Text
		}
		if n := strings.Count(said, "Grüße"); n != want {
			t.Errorf("finish %v: %d pieces are recorded, want %d", wait, n, want)
		}
	}
}

// A client that stops reading is given up, and the provider's work with it.
func TestStalledClient(t *testing.T) {
	for _, p := range paths {
		for _, length := range []bool{false, true} {
			cancelled := make(chan struct{})
			g := relay(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(cancelled)
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/x-ndjson")
				if length {
					w.Header().Set("Content-Length", fmt.Sprint(1<<40))
				}
				chunk := make([]byte, 1<<18)
				for r.Context().Err() == nil {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			}, &gateway.Options{Stall: 50 * time.Millisecond})
			g.send(t, t.Context(), p.path, p.header)
			<-cancelled
		}
	}
}

// A large body goes through in constant memory.
func TestLargeBodiesAreNotHeld(t *testing.T) {
	const size, limit = 96 << 20, uint64(48 << 20)
	for _, p := range paths[1:] { // of a reply of a model, wire.MaxReply bytes are kept
		chunk := make([]byte, 1<<20)
		g := relay(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			for range size / len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, nil)
		resp := g.send(t, t.Context(), p.path, p.header)
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		var n, peak uint64
		in := bufio.NewReaderSize(resp.Body, 1<<20)
		for i := 0; ; i++ {
			k, err := in.Discard(1 << 20)
			n += uint64(k)
			if err != nil {
				break
			}
			if i%32 == 0 {
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapInuse)
			}
		}
		if n != uint64(size) || peak > before.HeapInuse+limit {
			t.Errorf("%s: %d bytes of %d, the heap grew to %d MiB", p.name, n, size, peak>>20)
		}
	}
}

// The body of a request that is passed on is a stream, and the answer may begin
// before it has ended.
func TestRelayInFullDuplex(t *testing.T) {
	g := relay(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		io.WriteString(w, "hello ")
		rc.Flush()
		io.Copy(w, r.Body)
	}, nil)
	body, write := io.Pipe()
	resp, err := http.Post(g.URL+"/anthropic/v1/files", "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, len("hello "))); err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("there ", 20_000)
	go func() {
		io.WriteString(write, want)
		write.Close()
	}()
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != want {
		t.Errorf("%d bytes of %d, %v", len(rest), len(want), err)
	}
}

// A provider may answer while the request is still being sent; the client gets
// all of that answer.
func TestRelayOfLargeRequests(t *testing.T) {
	g := relay(t, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if len(got) != 60_000 || err != nil || r.ContentLength != 60_000 {
			t.Errorf("the provider got %d bytes, length %d, %v", len(got), r.ContentLength, err)
		}
		w.Write(got)
	}, nil)
	body := strings.Repeat("x", 60_000)
	for range 20 {
		resp, err := http.Post(g.URL+"/anthropic/v1/files", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != body {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}

// Interim responses of the provider do not reach the client, nor does the final
// one lose its header by them.
func TestInterimResponses(t *testing.T) {
	for _, p := range paths {
		g := relay(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</x>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
			w.Header().Set("X-Late", "1")
			io.WriteString(w, "{}")
		}, nil)
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k\r\n%s: true\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", p.path, cmp.Or(p.header, "X-None"), len(relayed), relayed)
		all, err := io.ReadAll(conn)
		conn.Close()
		if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") || !strings.Contains(string(all), "\r\nX-Late: 1\r\n") || !strings.Contains(string(all), "\r\nLink: </x>\r\n") || strings.Count(string(all), "HTTP/1.1 ") != 1 {
			t.Errorf("%s: %q, %v", p.name, all, err)
		}
		if model := p.name == "model"; strings.Contains(string(all), "X-Furl-Session: ") != model {
			t.Errorf("%s: %q", p.name, all)
		}
	}
}

// Query strings are passed on byte for byte.
func TestQueriesArePassedOn(t *testing.T) {
	var got string
	g := relay(t, func(w http.ResponseWriter, r *http.Request) { got = r.URL.RawQuery }, nil)
	for _, p := range paths {
		for _, query := range []string{"beta=true", "b=2&a=1", "a=%20+%2f&&=;x", "a;b=%zz", "q=\u00fc"} {
			g.send(t, t.Context(), p.path+"?"+query, p.header)
			if got != query {
				t.Errorf("%s: %q, want %q", p.name, got, query)
			}
		}
	}
}

// A writer that holds nothing back need not be able to flush.
func TestWritersWithoutFlush(t *testing.T) {
	body := start + strings.Repeat(piece, 2000) + finish // does not arrive in one read
	for _, p := range paths {
		g := relay(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, body)
		}, nil)
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+p.path, strings.NewReader(relayed))
		r.Header.Set("X-Api-Key", "k")
		if p.header != "" {
			r.Header.Set(p.header, "true")
		}
		w := &plainWriter{header: http.Header{}}
		g.gateway.ServeHTTP(w, r)
		if w.status != 200 || w.body.String() != body {
			t.Errorf("%s: %d, %d bytes of %d", p.name, w.status, w.body.Len(), len(body))
		}
	}
}

// plainWriter is an http.ResponseWriter and no more.
type plainWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *plainWriter) Header() http.Header         { return w.header }
func (w *plainWriter) WriteHeader(status int)      { w.status = status }
func (w *plainWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

// Many requests at once, each with its own answer.
func TestRelaysAreIndependent(t *testing.T) {
	g := relay(t, func(w http.ResponseWriter, r *http.Request) {
		for range 50 {
			io.WriteString(w, r.URL.RawQuery+"\n")
			http.NewResponseController(w).Flush()
		}
	}, nil)
	errs := make(chan error, 40)
	for i := range cap(errs) {
		go func() {
			p := paths[i%len(paths)]
			query := fmt.Sprint(i)
			resp, err := http.Post(g.URL+p.path+"?"+query, "application/json", strings.NewReader(relayed))
			if err != nil {
				errs <- err
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if string(got) != strings.Repeat(query+"\n", 50) {
				err = fmt.Errorf("%s got %q, %v", query, got, err)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// The stages in Server-Timing are parts of the time before the request is sent.
func TestStagesAddUp(t *testing.T) {
	g := relay(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, start+piece+finish)
	}, nil)
	timing := g.send(t, t.Context(), "/v1/messages", "").Header.Get("Server-Timing")
	times := make(map[string]float64)
	for part := range strings.SplitSeq(timing, ", ") {
		name, text, _ := strings.Cut(part, ";dur=")
		ms, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%q: %v", timing, err)
		}
		times[name] = ms
	}
	if sum := times["decode"] + times["match"] + times["plan"] + times["encode"]; times["decode"] <= 0 || sum > times["furl"]+0.1 {
		t.Errorf("%.2f ms in stages of %.2f ms: %s", sum, times["furl"], timing)
	}
}
