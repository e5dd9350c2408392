package upstream

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl/internal/sse"
)

const event = "event: content_block_delta\ndata: {\"text\":\"Gr\u00fc\u00dfe \U0001D11E\"}\n\n"

// Every piece reaches the client before the next one is sent.
func TestRelayFlushesAsItComes(t *testing.T) {
	for _, typ := range []string{"text/event-stream; charset=utf-8", "application/x-ndjson"} {
		next := make(chan struct{})
		p := provider(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", typ)
			w.Header().Set("Request-Id", "req_1")
			rc := http.NewResponseController(w)
			rc.Flush()
			for _, b := range []byte(event) { // inside a line, inside a character
				<-next
				w.Write([]byte{b})
				rc.Flush()
			}
		})
		notes := newNotebook()
		g := relay(t, client(t, p.URL, nil), func() Observer { return notes })
		resp, err := http.Post(g.URL+"/v1/messages", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.Header.Get("Content-Type") != typ || resp.Header.Get("Request-Id") != "req_1" {
			t.Errorf("header %v", resp.Header)
		}
		one := make([]byte, 1)
		for i := range len(event) {
			next <- struct{}{}
			if _, err := io.ReadFull(resp.Body, one); err != nil || one[0] != event[i] {
				t.Fatalf("byte %d: %q, %v", i, one, err)
			}
		}
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
			t.Errorf("after the end: %q, %v", rest, err)
		}
		if got, err := notes.got(t); got != event || err != nil {
			t.Errorf("observed %q, %v", got, err)
		}
		if res := <-g.results; res.err != nil || res.Read != int64(len(event)) || res.Sent != res.Read || res.Gone {
			t.Errorf("relayed %+v, %v", res.Relayed, res.err)
		}
	}
}

// The header comes through before the first byte of the body.
func TestRelaySendsTheHeaderAtOnce(t *testing.T) {
	hold := make(chan struct{})
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", sse.ContentType)
		http.NewResponseController(w).Flush()
		<-hold
	})
	defer close(hold)
	g := relay(t, client(t, p.URL, nil), nil)
	resp, err := http.Post(g.URL, "application/json", strings.NewReader("{}")) // would hang
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func TestRelayKeepsStatusLengthAndTrailers(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(201)
			if r.Method != http.MethodHead {
				io.WriteString(w, "hello")
			}
		case "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			io.WriteString(w, "x")
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-Late", "7")
		case "/empty":
			w.WriteHeader(204)
		case "/untyped":
			w.Header()["Content-Type"] = nil
			w.Header().Set("Alt-Svc", `h3=":443"`)
			io.WriteString(w, "<html>")
		}
	})
	g := relay(t, client(t, p.URL, nil), nil)
	for _, tc := range []struct {
		method, path, body string
		status             int
		length             int64
	}{
		{"POST", "/length", "hello", 201, 5}, {"HEAD", "/length", "", 201, 5}, {"POST", "/trailer", "x", 200, -1}, {"GET", "/empty", "", 204, 0}, {"GET", "/untyped", "<html>", 200, 6},
	} {
		req, _ := http.NewRequest(tc.method, g.URL+tc.path, nil)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != tc.body || resp.StatusCode != tc.status || resp.ContentLength != tc.length {
			t.Errorf("%s %s: status %d, length %d, %q, %v", tc.method, tc.path, resp.StatusCode, resp.ContentLength, body, err)
		}
		if tc.path == "/untyped" && (resp.Header["Content-Type"] != nil || resp.Header["Alt-Svc"] != nil) {
			t.Errorf("header %v", resp.Header)
		}
		if tc.path == "/trailer" && (resp.Trailer.Get("X-Sum") != "42" || resp.Trailer.Get("X-Late") != "7") {
			t.Errorf("trailers %v", resp.Trailer)
		}
		if res := <-g.results; res.err != nil || res.Gone {
			t.Errorf("%s %s: %+v, %v", tc.method, tc.path, res.Relayed, res.err)
		}
	}
}

// zipped answers with text in pieces, packed, each piece flushed.
func zipped(encoding string, pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", encoding)
		w.Header().Set("Content-Type", sse.ContentType)
		z := gzip.NewWriter(w)
		for _, p := range pieces {
			io.WriteString(z, p)
			z.Flush()
			http.NewResponseController(w).Flush()
			if p == pieces[0] && r.Header.Get("X-Wait") != "" {
				<-r.Context().Done()
				return
			}
		}
		z.Close()
	}
}

func TestGzipIsDecoded(t *testing.T) {
	p := provider(t, zipped("gzip", event, event, event))
	c := client(t, p.URL, nil)
	resp, err := c.Do(context.Background(), post(""))
	if err != nil {
		t.Fatal(err)
	}
	body, err := resp.ReadAll()
	if err != nil || string(body) != strings.Repeat(event, 3) || resp.Encoding != "" || resp.Header.Get("Content-Encoding") != "" || !resp.Events() {
		t.Errorf("%q, %v, header %v", body, err, resp.Header)
	}
	resp.Close()

	// What is flushed comes at once.
	wait := post("")
	wait.Header.Set("X-Wait", "1")
	resp, err = c.Do(context.Background(), wait)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(event))
	if _, err := io.ReadFull(resp, got); err != nil || string(got) != event {
		t.Errorf("%q, %v", got, err)
	}
	resp.Close()

	// Passed on without being read, it stays as it is.
	resp, err = c.Do(context.Background(), &Request{Method: "GET", URL: post("").URL, Header: http.Header{"Accept-Encoding": {"gzip"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	body, err = resp.ReadAll()
	if err != nil || !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) || resp.Encoding != "gzip" || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestEncodingsThatCannotBeRead(t *testing.T) {
	for _, tc := range []struct{ encoding, body, want string }{
		{"br", "anything", ""},
		{"gzip", "no gzip", "body from "},
		{"gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "body from "},
	} {
		p := provider(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", tc.encoding)
			io.WriteString(w, tc.body)
		})
		resp, err := client(t, p.URL, nil).Do(context.Background(), post(""))
		if err != nil {
			t.Fatal(err)
		}
		body, err := resp.ReadAll()
		resp.Close()
		if tc.want == "" {
			if err != nil || string(body) != tc.body || resp.Encoding != tc.encoding || resp.Header.Get("Content-Encoding") != tc.encoding {
				t.Errorf("%s: %q, %v", tc.encoding, body, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s %q: %v", tc.encoding, tc.body, err)
		}
	}
}

func TestBombs(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(make([]byte, 2*harmless))
	z.Close()
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed.Bytes())
	})
	resp, err := client(t, p.URL, nil).Do(context.Background(), post(""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	n, err := io.Copy(io.Discard, resp)
	if !errors.Is(err, ErrBomb) || n > harmless+1<<20 {
		t.Errorf("%v after %d bytes", err, n)
	}
}

// A stream that is cut off at the provider's is cut off at the client's.
func TestCutStreamsStayCut(t *testing.T) {
	for _, length := range []bool{false, true} {
		p := provider(t, func(w http.ResponseWriter, r *http.Request) {
			if length {
				w.Header().Set("Content-Length", "1000")
			}
			io.WriteString(w, event[:20])
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		p.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		notes := newNotebook()
		g := relay(t, client(t, p.URL, nil), func() Observer { return notes })
		resp, err := http.Post(g.URL, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) || string(body) != event[:20] {
			t.Errorf("the client got %q, %v", body, err)
		}
		got, err := notes.got(t)
		var e *Error
		if got != event[:20] || !errors.As(err, &e) || e.Stage != StageBody || e.Timeout || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("observed %q, %v", got, err)
		}
		if res := <-g.results; res.err == nil || res.Gone {
			t.Errorf("relayed %+v, %v", res.Relayed, res.err)
		}
	}
}

// When the client leaves, the provider's work is cancelled, or, if asked for,
// read to its end for the observer.
func TestTheClientLeaves(t *testing.T) {
	for _, finish := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprint(finish), func(t *testing.T) {
			cancelled := make(chan bool, 1)
			left := make(chan struct{})
			p := provider(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", sse.ContentType)
				io.WriteString(w, event)
				http.NewResponseController(w).Flush()
				<-left
				if finish == 0 {
					<-r.Context().Done()
					cancelled <- true
					return
				}
				for range 100 {
					io.WriteString(w, event)
					http.NewResponseController(w).Flush()
				}
				cancelled <- r.Context().Err() != nil
			})
			notes := newNotebook()
			g := relay(t, client(t, p.URL, &Options{Finish: finish}), func() Observer { return notes })
			ctx, cancel := context.WithCancel(context.Background())
			req, _ := http.NewRequestWithContext(ctx, "POST", g.URL, strings.NewReader("{}"))
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, len(event))); err != nil {
				t.Fatal(err)
			}
			cancel()
			resp.Body.Close()
			close(left)
			if got := <-cancelled; got != (finish == 0) {
				t.Errorf("the provider's work was cancelled: %v", got)
			}
			got, err := notes.got(t)
			res := <-g.results
			if finish == 0 {
				if got != event || !errors.Is(err, ErrClientGone) || !errors.Is(res.err, ErrClientGone) || !res.Gone {
					t.Errorf("observed %d bytes, %v; relayed %+v, %v", len(got), err, res.Relayed, res.err)
				}
				return
			}
			if got != strings.Repeat(event, 101) || err != nil || res.err != nil {
				t.Errorf("observed %d bytes, %v; relayed %+v, %v", len(got), err, res.Relayed, res.err)
			}
		})
	}
}

// gone is a client that takes n writes and then no more.
type gone struct {
	*httptest.ResponseRecorder
	n int
}

func (g *gone) Write(p []byte) (int, error) {
	if g.n--; g.n < 0 {
		return 0, errors.New("broken pipe")
	}
	return g.ResponseRecorder.Write(p)
}

func TestFinishingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, Options{Finish: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			for r.Context().Err() == nil {
				io.WriteString(w, event)
				http.NewResponseController(w).Flush()
				time.Sleep(time.Second)
			}
		})
		resp, err := c.Do(t.Context(), post("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Close()
		notes := newNotebook()
		began := time.Now()
		res, err := c.Relay(&gone{httptest.NewRecorder(), 3}, resp, notes)
		if took := time.Since(began); took < time.Minute || took > 70*time.Second {
			t.Errorf("took %v", took)
		}
		got, observed := notes.got(t)
		if !errors.Is(err, ErrClientGone) || !errors.Is(observed, ErrClientGone) || !res.Gone || res.Sent != int64(3*len(event)) || int64(len(got)) != res.Read || res.Read < 60*int64(len(event)) {
			t.Errorf("%+v, %v; observed %d bytes, %v", res, err, len(got), observed)
		}
	})
}

type observerFunc struct {
	chunk func([]byte)
	end   func(error)
}

func (o observerFunc) Chunk(p []byte) { o.chunk(p) }
func (o observerFunc) End(err error)  { o.end(err) }

// An observer that hangs, panics or is slow does not touch the client.
func TestObserversCannotDisturb(t *testing.T) {
	body := strings.Repeat(event, 1000)
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		io.WriteString(w, body)
	})
	release := make(chan struct{})
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	ended := make(chan error, 1)
	for name, o := range map[string]observerFunc{
		"hangs":         {func([]byte) { <-release }, func(err error) { ended <- err }},
		"panics":        {func([]byte) { panic("on purpose") }, func(error) { t.Error("End after a panic") }},
		"panics at end": {func([]byte) {}, func(error) { panic("on purpose") }},
	} {
		opts := &Options{Logger: logger}
		if name == "hangs" {
			opts.MaxQueue = len(body) / 2
		}
		g := relay(t, client(t, p.URL, opts), func() Observer { return o })
		resp, err := http.Post(g.URL, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != body {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(body), err)
		}
		res := <-g.results
		if res.err != nil {
			t.Errorf("%s: %v", name, res.err)
		}
		if name == "hangs" {
			close(release)
			if err := <-ended; !errors.Is(err, ErrLost) && err != nil {
				t.Errorf("%s: ended with %v", name, err)
			}
		}
		<-res.Observed
	}
	if n := strings.Count(log.String(), "an observer panicked"); n != 2 {
		t.Errorf("%d panics in the log: %s", n, log.String())
	}
}

// An observer that is behind by more than may wait is told so.
func TestObserverLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, Options{MaxQueue: 3 * len(event)}, func(w http.ResponseWriter, r *http.Request) {
			for range 10 {
				io.WriteString(w, event)
				http.NewResponseController(w).Flush()
				time.Sleep(time.Second)
			}
		})
		resp, err := c.Do(t.Context(), post("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Close()
		var seen int
		var end error
		res, err := c.Relay(httptest.NewRecorder(), resp, observerFunc{func(p []byte) { seen += len(p); time.Sleep(time.Minute) }, func(err error) { end = err }})
		if err != nil || res.Sent != int64(10*len(event)) {
			t.Errorf("%+v, %v", res, err)
		}
		<-res.Observed
		if !errors.Is(end, ErrLost) || seen != len(event) {
			t.Errorf("observed %d bytes, %v", seen, end)
		}
	})
}

// A client that stops reading is given up.
func TestStalledClient(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	g := relay(t, client(t, p.URL, &Options{Stall: 50 * time.Millisecond}), nil)
	req, _ := http.NewRequest("POST", g.URL, strings.NewReader("{}"))
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if res := <-g.results; !res.Gone || !errors.Is(res.err, ErrClientGone) {
		t.Errorf("%+v, %v", res.Relayed, res.err)
	}
}

// A gigabyte goes through in constant memory, with somebody watching.
func TestLargeBodiesAreNotHeld(t *testing.T) {
	const size = 1 << 30
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = byte(i * 7)
	}
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		for range size / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	sums := make(chan [32]byte, 1)
	observer := func() Observer {
		h := sha256.New()
		return observerFunc{func(p []byte) { h.Write(p[:min(len(p), 64)]) }, func(error) { sums <- [32]byte(h.Sum(nil)) }}
	}
	g := relay(t, client(t, p.URL, nil), observer)
	resp, err := http.Post(g.URL, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
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
		if i%64 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}
	if n != size {
		t.Errorf("%d bytes of %d", n, size)
	}
	if limit := before.HeapAlloc + 192<<20; peak > limit {
		t.Errorf("the heap grew to %d MiB", peak>>20)
	}
	<-sums
}

// exact fails when it is read past its end.
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

// The body of a request that is passed on may be gone once it has been read:
// servers take it away when the answer begins.
func TestBodiesPassedOnAreNotReadPastTheirEnd(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if len(got) != 60_000 || err != nil {
			t.Errorf("the provider got %d bytes, %v", len(got), err)
		}
		w.Write(got)
	})
	c := client(t, p.URL, nil)
	body := strings.Repeat("x", 60_000)
	resp, err := c.Do(t.Context(), &Request{Method: "POST", URL: post("").URL, Stream: &exact{strings.NewReader(body), len(body)}, Length: int64(len(body))})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	if got, err := resp.ReadAll(); err != nil || string(got) != body {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// An answer may begin before the request has ended.
func TestRelayInFullDuplex(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		io.WriteString(w, "hello ")
		rc.Flush()
		io.Copy(w, r.Body)
	})
	c := client(t, p.URL, nil)
	g := provider(t, func(w http.ResponseWriter, r *http.Request) {
		resp, err := c.Do(r.Context(), &Request{Method: r.Method, URL: r.URL, Header: r.Header, Stream: r.Body, Length: r.ContentLength})
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Close()
		if _, err := c.Relay(w, resp, nil); err != nil {
			t.Error(err)
		}
	})
	body, write := io.Pipe()
	resp, err := http.Post(g.URL, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got := make([]byte, len("hello "))
	if _, err := io.ReadFull(resp.Body, got); err != nil {
		t.Fatal(err)
	}
	go func() {
		io.WriteString(write, strings.Repeat("there ", 20_000))
		write.Close()
	}()
	rest, err := io.ReadAll(resp.Body)
	if want := strings.Repeat("there ", 20_000); err != nil || string(rest) != want {
		t.Errorf("%d bytes of %d, %v", len(rest), len(want), err)
	}
}

// Many answers at once, each its own.
func TestRelaysAreIndependent(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		for range 50 {
			io.WriteString(w, r.URL.Path+"\n")
			http.NewResponseController(w).Flush()
		}
	})
	c := client(t, p.URL, nil)
	g := relay(t, c, func() Observer { return newNotebook() })
	errs := make(chan error, 40)
	for i := range cap(errs) {
		go func() {
			path := fmt.Sprintf("/%d", i)
			resp, err := http.Post(g.URL+path, "application/json", strings.NewReader("{}"))
			if err != nil {
				errs <- err
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if want := strings.Repeat(path+"\n", 50); string(got) != want {
				err = fmt.Errorf("%s got %q, %v", path, got, err)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	c.Wait()
}
