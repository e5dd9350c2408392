package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/furlhq/furl/sim"
)

// counted is a provider that counts its requests and those in progress.
type counted struct {
	rogue
	answering, most atomic.Int64
}

func (p *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := p.answering.Add(1)
	for most := p.most.Load(); n > most && !p.most.CompareAndSwap(most, n); most = p.most.Load() {
		continue
	}
	defer p.answering.Add(-1)
	p.rogue.ServeHTTP(w, r)
}

// http2Client writes arbitrary frames to the gateway.
type http2Client struct {
	*http2.Framer
	conn  net.Conn
	block bytes.Buffer
	enc   *hpack.Encoder
}

// http2 opens a connection. If reading is set, responses are read and discarded.
// Otherwise they are never read.
func (p *process) http2(t *testing.T, reading bool, settings ...http2.Setting) *http2Client {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if reading {
		go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
	}
	c := &http2Client{Framer: http2.NewFramer(conn, nil), conn: conn}
	c.enc = hpack.NewEncoder(&c.block)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return c
}

// head is the encoded header of a request for a message.
func (c *http2Client) head(more ...string) []byte {
	c.block.Reset()
	fields := append([]string{":method", "POST", ":scheme", "http", ":authority", "localhost", ":path", "/v1/messages",
		"x-api-key", "k", "anthropic-version", "2023-06-01", "content-type", "application/json"}, more...)
	for i := 0; i < len(fields); i += 2 {
		_ = c.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // a buffer accepts all
	}
	return c.block.Bytes()
}

func (c *http2Client) open(id uint32, more ...string) error {
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.head(more...), EndHeaders: true})
}

// ask sends a whole request.
func (c *http2Client) ask(id uint32, body string, more ...string) error {
	if err := c.open(id, more...); err != nil {
		return err
	}
	return c.WriteData(id, true, []byte(body))
}

// floods are attacks on an HTTP/2 server, each on one connection unless it opens more.
// A flood ends when everything is written, or with a write error when the gateway
// closes the connection.
var floods = []struct {
	name string
	run  func(t *testing.T, p *process) error
}{
	{"rapid reset before the body", func(t *testing.T, p *process) error {
		c := p.http2(t, true)
		for id := uint32(1); id < 20_000; id += 2 {
			if err := c.open(id); err != nil {
				return err
			}
			if err := c.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
				return err
			}
		}
		return nil
	}},
	{"rapid reset after the body", func(t *testing.T, p *process) error {
		c := p.http2(t, true)
		for id := uint32(1); id < 20_000; id += 2 {
			if err := c.ask(id, say(fmt.Sprintf(`"reset %d"`, id))); err != nil {
				return err
			}
			if err := c.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
				return err
			}
		}
		return nil
	}},
	{"continuation without end", func(t *testing.T, p *process) error {
		c := p.http2(t, true)
		err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.head()})
		for i := 0; err == nil && i < 20_000; i++ {
			c.block.Reset()
			_ = c.enc.WriteField(hpack.HeaderField{Name: fmt.Sprint("x-", i), Value: strings.Repeat("x", 3000), Sensitive: true})
			err = c.WriteContinuation(1, false, c.block.Bytes())
		}
		return err
	}},
	{"empty continuations", func(t *testing.T, p *process) error {
		c := p.http2(t, true)
		err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.head()})
		for i := 0; err == nil && i < 100_000; i++ {
			err = c.WriteContinuation(1, false, nil)
		}
		return err
	}},
	{"header compression bomb", func(t *testing.T, p *process) error {
		c := p.http2(t, true)
		c.head("x-bomb", strings.Repeat("x", 3900)) // is now in the table
		bomb := bytes.Clone(c.block.Bytes())
		c.head("x-bomb", strings.Repeat("x", 3900))
		again := c.block.Bytes()[c.block.Len()-1:] // one byte
		bomb = append(bomb, bytes.Repeat(again, 12_000)...)
		err := error(nil)
		for id := uint32(1); err == nil && id < 200; id += 2 {
			if err = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: true, EndHeaders: true, BlockFragment: bomb}); id == 1 {
				bomb = append(bytes.Clone(c.head()), bytes.Repeat(again, 12_000)...)
			}
		}
		return err
	}},
	{"settings, answers unread", func(t *testing.T, p *process) (err error) {
		c := p.http2(t, false)
		for i := 0; err == nil && i < 200_000; i++ {
			err = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i)})
		}
		return err
	}},
	{"pings, answers unread", func(t *testing.T, p *process) (err error) {
		c := p.http2(t, false)
		for i := 0; err == nil && i < 200_000; i++ {
			err = c.WritePing(false, [8]byte{byte(i)})
		}
		return err
	}},
	{"empty data", func(t *testing.T, p *process) error {
		c := p.http2(t, true)
		err := c.open(1)
		for i := 0; err == nil && i < 200_000; i++ {
			err = c.WriteData(1, false, nil)
		}
		return err
	}},
	{"priorities and window updates", func(t *testing.T, p *process) error {
		c := p.http2(t, true)
		err := c.open(1)
		for i := uint32(0); err == nil && i < 100_000; i++ {
			if err = c.WritePriority(2*i+101, http2.PriorityParam{StreamDep: 2*i + 99, Weight: byte(i)}); err == nil {
				err = c.WriteWindowUpdate(1, 1)
			}
		}
		return err
	}},
	{"bodies that never come, on eight connections", func(t *testing.T, p *process) (err error) {
		for range 8 {
			c := p.http2(t, true)
			for id := uint32(1); err == nil && id < 500; id += 2 {
				err = c.open(id, "content-length", "4000000")
			}
		}
		for err == nil && statusOf(t, p.url).UnderWay < 8*250 {
			runtime.Gosched() // until the test times out
		}
		if heap := p.metric(t, "go_memstats_heap_alloc_bytes"); heap > 1000<<20 {
			t.Errorf("%d MB of heap are in use for bodies that were announced and not sent", heap>>20)
		}
		return err
	}},
	{"answers that are not read", func(t *testing.T, p *process) (err error) {
		c := p.http2(t, true, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for id := uint32(1); err == nil && id < 200; id += 2 {
			err = c.ask(id, strings.Replace(say(fmt.Sprintf(`"unread %d"`, id)), "{", `{"stream":true,`, 1))
		}
		for err == nil && statusOf(t, p.url).UnderWay < 100 {
			runtime.Gosched() // until the test times out
		}
		return err
	}},
}

// During floods of HTTP/2 frames the gateway keeps running, stays small and serves other
// clients. Afterwards no requests are in progress, there are no sessions in the store,
// and the log does not have a line for each request. T9
func TestHTTP2Floods(t *testing.T) {
	provider := &counted{rogue: rogue{sim: sim.New(&sim.Options{Window: 100_000_000})}}
	srv := httptest.NewServer(provider)
	srv.Config.SetKeepAlivesEnabled(false) // idle connections would have goroutines
	t.Cleanup(srv.Close)                   // after the gateway has stopped
	home := t.TempDir()
	p := serve(t, home, "--anthropic", srv.URL, "--openai", "none", "--log", "warn")
	if got := p.raw(t, messages("", hello)); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	goroutines := p.goroutines(t)
	for _, f := range floods {
		t.Run(f.name, func(t *testing.T) {
			if err := f.run(t, p); err != nil {
				t.Logf("the gateway closed the connection: %v", err)
			}
			for range 3 {
				if got := p.raw(t, messages("", hello)); !strings.HasPrefix(got, "200 ") {
					t.Errorf("another client: %.300s", got)
				}
			}
		}) // its connections are closed here
		select {
		case <-p.done:
			t.Fatalf("%s: the gateway ended: %s\n%s", f.name, p.cmd.ProcessState, p.log())
		default:
		}
		for statusOf(t, p.url).UnderWay > 0 || p.goroutines(t) > goroutines+20 {
			runtime.Gosched() // until the test times out
		}
	}
	if n := provider.most.Load(); n > 300 { // the streams of a connection
		t.Errorf("%d requests were sent on at once", n)
	}
	if peak := p.peak(t); peak > 1000<<20 { // some 80 MB; the race detector takes several times as much
		t.Errorf("it took %d MB of memory", peak>>20)
	}
	if log := p.log(); strings.Count(log, "\n") > 50 || strings.Contains(log, "panic") {
		t.Errorf("the log has %d lines: %.3000s", strings.Count(log, "\n"), log)
	}
	out, err := furlCommand(home, "sessions", "--json", "--limit", "100000").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out, []byte(`"title": "reset `)); n > 300 {
		t.Errorf("%d requests that were reset left a session", n)
	}
}

// A client that disconnects before the response is not a failure of the provider. Its
// request is cancelled, and neither logged as a warning nor counted. T9
func TestClientLeavesBeforeTheAnswer(t *testing.T) {
	asked, cancelled := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice the disconnect
		close(asked)
		<-r.Context().Done()
		close(cancelled)
	}))
	t.Cleanup(srv.Close) // after the gateway has stopped
	p := serve(t, t.TempDir(), "--anthropic", srv.URL, "--openai", "none", "--log", "info")
	c := p.http2(t, true)
	if err := c.ask(1, hello); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := c.WriteRSTStream(1, http2.ErrCodeCancel); err != nil {
		t.Fatal(err)
	}
	<-cancelled
	for statusOf(t, p.url).UnderWay > 0 {
		runtime.Gosched() // until the test times out
	}
	if log := p.log(); strings.Contains(log, "WARN") {
		t.Errorf("the log says\n%s", log)
	}
	if n := p.metric(t, "furl_upstream_failures_total"); n > 0 {
		t.Errorf("%d requests count as failed", n)
	}
}

// goroutines returns the number of goroutines of the gateway.
func (p *process) goroutines(t *testing.T) int { return p.metric(t, "go_goroutines") }

// metric reads a number from the gateway's metrics.
func (p *process) metric(t *testing.T, name string) int {
	t.Helper()
	resp, err := http.Get(p.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + ` ([0-9.e+]+)$`).FindSubmatch(body)
	if m == nil {
		t.Fatalf("no metric %s", name)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}
