package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/furlhq/furl/sim"
)

// rogue is a provider that misbehaves if a request asks for it. Otherwise it is the
// simulated provider. It counts requests.
type rogue struct {
	sim      http.Handler
	requests atomic.Int64
	smuggled atomic.Int64 // requests that must not be passed on
}

func (p *rogue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	if strings.Contains(r.URL.Path, "smuggled") || r.Method == "SMUGGLED" {
		p.smuggled.Add(1)
	}
	flush := http.NewResponseController(w).Flush
	switch r.Header.Get("X-Rogue") {
	case "garbage":
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = conn.Write(bytes.Repeat([]byte("\x00\xff garbage "), 1000)) // it may have disconnected
			conn.Close()
		}
	case "endless header":
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for i := 0; err == nil && i < 1<<20; i++ {
			_, err = fmt.Fprintf(conn, "X-%d: %s\r\n", i, strings.Repeat("x", 1000))
		}
		conn.Close()
	case "endless line", "endless events":
		w.Header().Set("Content-Type", "text/event-stream")
		_, err := io.WriteString(w, "data: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
		piece := strings.Repeat("x", 64<<10)
		n := 300 // 20 MB
		if r.Header.Get("X-Rogue") == "endless events" {
			n = 150 // their text is counted too
			piece = `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + piece + "\"}}\n\n"
		}
		for i := 0; err == nil && i < n; i++ {
			_, err = io.WriteString(w, piece)
		}
	case "recalls", "recalls in a stream":
		stream := r.Header.Get("X-Rogue") != "recalls"
		write, head, tail := recallBlock, `{"type":"message","role":"assistant","content":[`, `{"type":"text","text":"x"}],"stop_reason":"tool_use","usage":{"input_tokens":-1,"output_tokens":1e99}}`
		w.Header().Set("Content-Type", "application/json")
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			write, tail = recallEvents, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
			head = "data: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\n"
		}
		_, err := io.WriteString(w, head)
		for i := 0; err == nil && i < 200; i++ {
			_, err = io.WriteString(w, write(i))
		}
		_, _ = io.WriteString(w, tail) // it may have disconnected
	case "bomb":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed()) // it may have disconnected
	case "never":
		w.Header().Set("Content-Type", "text/event-stream")
		_ = flush() // it may have disconnected
		<-r.Context().Done()
	default:
		p.sim.ServeHTTP(w, r)
	}
}

// recallArgs are invalid arguments of furl's tools.
var recallArgs = []string{
	`{"handle":"furl:1.0"}`, `{"handle":"furl:99999999999999999999.0"}`, `{"handle":"furl:-1.-1"}`, `{"handle":{"a":[]}}`, `[]`, `null`, `"x"`, `{}`, `{"query":""}`,
	`{"handle":"furl:1.0","from_line":-9223372036854775808,"to_line":9223372036854775807}`, `{"query":"\u0000\ud800 OR * NEAR( \" ' ; --"}`,
	`{"query":"` + strings.Repeat("x y ", 5000) + `"}`, `{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, `{"handle":`, ``,
}

// recallBlock is the i-th call of a reply that has only such calls.
func recallBlock(i int) string {
	args := recallArgs[i%len(recallArgs)]
	if !json.Valid([]byte(args)) {
		args = "{}"
	}
	return fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%q,"input":%s},`, i%150, []string{"memory_get", "memory_search"}[i%2], args)
}

// recallEvents are the events of a call in a stream.
func recallEvents(i int) string {
	start := fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%d","name":%q,"input":{}}}`, i, i%150, []string{"memory_get", "memory_search"}[i%2])
	delta := fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i, recallArgs[i%len(recallArgs)])
	return "data: " + start + "\n\ndata: " + delta + "\n\n" + fmt.Sprintf("data: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", i)
}

// packed is a compressed body of zeros, larger than the gateway accepts. It is computed
// on demand, since this binary is also the command.
var packed = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range 24 {
		_, _ = z.Write(zeros) // a buffer accepts all
	}
	_ = z.Close()
	return b.Bytes()
})

func packedZstd(t *testing.T) string {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return string(z.EncodeAll(make([]byte, 24<<20), nil))
}

// raw sends bytes and returns the bytes received until the connection ends, or until
// the first response.
func (p *process) raw(t *testing.T, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, request) }() // the response may come before its end
	var got bytes.Buffer
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &got)), nil)
	if err != nil {
		return fmt.Sprintf("no answer: %v: %q", err, got.String())
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return fmt.Sprintf("%d %v %s %v", resp.StatusCode, resp.Header, body, err)
}

const (
	keyed = "Host: localhost\r\nX-Api-Key: k\r\nAnthropic-Version: 2023-06-01\r\nContent-Type: application/json\r\n"
	hello = `{"model":"claude-sonnet-4-5","max_tokens":90,"tools":[{"name":"bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hello"}]}`
)

func messages(headers, body string) string {
	return "POST /v1/messages HTTP/1.1\r\n" + keyed + headers + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

func say(content string) string { return strings.Replace(hello, `"hello"`, content, 1) }

// For any input, the gateway responds in the provider's format or refuses, stays small,
// and keeps running. T9
func TestHostile(t *testing.T) {
	provider := &rogue{sim: sim.New(&sim.Options{Window: 100_000_000})}
	srv := httptest.NewServer(provider)
	t.Cleanup(srv.Close) // after the gateway has stopped
	open := func(home string, args ...string) *process {
		cmd := furlCommand(home, append([]string{"serve", "--listen", "127.0.0.1:0", "--anthropic", srv.URL, "--openai", srv.URL, "--log", "warn"}, args...)...)
		if err := os.WriteFile(home+"/config.yaml", []byte("gateway:\n  max_body: 12MB\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return start(t, cmd)
	}
	home, remembering := t.TempDir(), t.TempDir()
	p, recall := open(home), open(remembering, "--recall", "--policy", "compaction", "--window", "12k")
	keys, many, deep := 1_000_000, 51_000, 1_000_000
	if raceDetector {
		keys, many, deep = 100_000, 5_000, 100_000
	}
	anthropicError := `{"type":"error","error":{"type":"`
	for _, tc := range []struct{ name, request, want string }{
		// Framing.
		{"two lengths", "POST /v1/messages HTTP/1.1\r\n" + keyed + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", `^400 `},
		{"negative length", "POST /v1/messages HTTP/1.1\r\n" + keyed + "Content-Length: -1\r\n\r\n", `^400 `},
		{"length beyond numbers", "POST /v1/messages HTTP/1.1\r\n" + keyed + "Content-Length: 99999999999999999999999\r\n\r\n", `^400 `},
		{"absurd length", "POST /v1/messages HTTP/1.1\r\n" + keyed + "Content-Length: 9999999999999\r\n\r\n", `^413 .*` + anthropicError + "request_too_large"},
		{"absurd length, chat", "POST /v1/chat/completions HTTP/1.1\r\n" + keyed + "Content-Length: 9999999999999\r\n\r\n", `^413 .*\{"error":\{"message":"furl: `},
		{"unknown coding", "POST /v1/messages HTTP/1.1\r\n" + keyed + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", `^501 `},
		{"two codings", "POST /v1/messages HTTP/1.1\r\n" + keyed + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", `^501 |^400 `},
		{"bad chunk", "POST /v1/messages HTTP/1.1\r\n" + keyed + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", `^400 .*` + anthropicError},
		{"endless chunk extension", "POST /v1/messages HTTP/1.1\r\n" + keyed + "Transfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("x", 1<<20) + "\r\nhello\r\n0\r\n\r\n", `^400 .*` + anthropicError},
		{"space before colon", "POST /v1/messages HTTP/1.1\r\n" + keyed + "X-Evil : x\r\nContent-Length: 0\r\n\r\n", `^400 `},
		{"NUL in a header", "POST /v1/messages HTTP/1.1\r\n" + keyed + "X-Evil: a\x00b\r\nContent-Length: 0\r\n\r\n", `^400 `},
		{"folded header", "POST /v1/messages HTTP/1.1\r\n" + keyed + "X-Folded: a\r\n b\r\nContent-Length: " + strconv.Itoa(len(hello)) + "\r\n\r\n" + hello, `^200 |^400 `},
		{"giant header", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Giant: " + strings.Repeat("x", 3<<20) + "\r\n\r\n", `^431 `},
		{"giant path", "GET /" + strings.Repeat("x", 3<<20) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", `^431 |^414 `},
		{"no host", "GET /healthz HTTP/1.1\r\n\r\n", `^400 `},

		// Bodies.
		{"deflate", messages("Content-Encoding: deflate\r\n", hello), `^415 .*` + anthropicError},
		{"two encodings", messages("Content-Encoding: gzip, gzip\r\n", hello), `^415 .*` + anthropicError},
		{"no gzip", messages("Content-Encoding: gzip\r\n", hello), `^400 .*` + anthropicError + "invalid_request_error"},
		{"gzip bomb", messages("Content-Encoding: gzip\r\n", string(packed())), `^413 .*` + anthropicError + "request_too_large"},
		{"zstd bomb", messages("Content-Encoding: zstd\r\n", packedZstd(t)), `^413 .*` + anthropicError + "request_too_large"},
		{"deep lists", messages("", strings.Replace(hello, "{", `{"x":`+strings.Repeat("[", deep)+strings.Repeat("]", deep)+",", 1)), `^400 .*` + anthropicError},
		{"deep objects", messages("", say(strings.Repeat(`{"a":`, deep)+"1"+strings.Repeat("}", deep))), `^400 .*` + anthropicError},
		{"lists without end", messages("", `{"messages":`+strings.Repeat("[", 8*deep)), `^400 .*` + anthropicError},
		{"many keys", messages("", strings.Replace(hello, "{", `{"metadata":{`+strings.Repeat(`"k":1,`, keys)+`"user_id":"u"},`, 1)), `^200 |^400 .*` + anthropicError},
		{"many messages", messages("", strings.Replace(hello, `"messages":[`, `"messages":[`+strings.Repeat(`{"role":"user","content":"x"},`, many), 1)), `^200 `},
		{"one long word", messages("", say(`"`+strings.Repeat("x", deep)+`"`)), `^200 `},
		{"no UTF-8", messages("", say("\"\xff\xfe\xc0\x80\"")), `^200 |^400 .*` + anthropicError},
		{"half a surrogate", messages("", say(`"\ud800 \u0000"`)), `^200 |^400 .*` + anthropicError},
		{"NUL in JSON", messages("", say("\"a\x00b\"")), `^400 .*` + anthropicError},
		{"huge number", messages("", strings.Replace(hello, "90", "1e999999999", 1)), `^400 .*` + anthropicError},
		{"nothing", messages("", ""), `^400 .*` + anthropicError},

		// Paths.
		{"two slashes", strings.Replace(messages("", hello), "/v1", "//v1", 1), `^200 .*X-Furl-Session`},
		{"up to the API", "GET /v1/../furl/v1/sessions HTTP/1.1\r\n" + keyed + "\r\n", `^400 .*` + anthropicError},
		{"up, escaped", "GET /v1/%2e%2e/furl/v1/sessions HTTP/1.1\r\n" + keyed + "\r\n", `^400 .*` + anthropicError},
		{"up, slash escaped", "GET /v1/messages%2f..%2f..%2ffurl HTTP/1.1\r\n" + keyed + "\r\n", `^400 .*` + anthropicError},
		{"up, backslash", "GET /v1/..\\..\\smuggled HTTP/1.1\r\n" + keyed + "\r\n", `^400 `},
		{"escaped letters", strings.Replace(messages("", hello), "/messages", "/%6dessages", 1), `^200 |^404 `},
		{"bad escape", "GET /v1/%zz HTTP/1.1\r\n" + keyed + "\r\n", `^400 `},
		{"line break in a path", "GET /v1/a%0d%0aX-Evil:%20x HTTP/1.1\r\n" + keyed + "\r\n", `^404 `},
		{"connect", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", `^405 `},
		{"as a proxy", "POST http://evil.example/v1/messages HTTP/1.1\r\n" + keyed + "Content-Length: " + strconv.Itoa(len(hello)) + "\r\n\r\n" + hello, `^200 .*X-Furl-Session`},
		{"as a proxy to the API", "GET http://evil.example/furl/v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n", `^403 `},
		{"star", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", `^200 `},
		{"upgrade", "GET /v1/responses HTTP/1.1\r\n" + keyed + "Authorization: Bearer k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n", `^426 `},
		{"upgrade to HTTP/2", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", `^204 `},

		// Pages.
		{"rebound name", "GET /furl/v1/sessions HTTP/1.1\r\nHost: evil.example\r\n\r\n", `^403 `},
		{"rebound name, metrics", "GET /metrics HTTP/1.1\r\nHost: evil.example:7410\r\n\r\n", `^403 `},
		{"another page", "GET /furl/v1/sessions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", `^403 `},
		{"another page acts", "POST /furl/v1/sessions/x/reduce HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", `^403 `},
		{"another site", "GET /furl/v1/search?q=x HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n", `^403 `},
		{"a page asks a model", strings.ReplaceAll(messages("Origin: http://evil.example\r\n", hello), "X-Api-Key: k\r\n", ""), `^403 .*` + anthropicError + "permission_error"},

		// Providers.
		{"garbage", messages("X-Rogue: garbage\r\n", hello), `^502 .*` + anthropicError},
		{"endless header", messages("X-Rogue: endless header\r\n", hello), `^502 .*` + anthropicError},
		{"endless line", messages("X-Rogue: endless line\r\n", hello), `^200 `},
		{"endless events", messages("X-Rogue: endless events\r\n", hello), `^200 `},
		{"packed answer", messages("X-Rogue: bomb\r\n", hello), `^200 |^502 `},
		{"redirect", messages(sim.FaultHeader+": redirect=http://127.0.0.1:9/smuggled\r\n", hello), `^307 `},
		{"recalls", messages("X-Rogue: recalls\r\n", hello), `^200 `},
		{"recalls in a stream", messages("X-Rogue: recalls in a stream\r\n", hello), `^200 `},
	} {
		gateways := []*process{p}
		if slices.Contains([]string{"garbage", "endless line", "packed answer", "redirect", "recalls", "recalls in a stream"}, tc.name) {
			gateways = append(gateways, recall) // its replies call recall tools
		}
		for _, p := range gateways {
			got := p.raw(t, tc.request)
			if !regexp.MustCompile(`(?s)` + tc.want).MatchString(got) {
				t.Errorf("%s: %.500s\nwant %s", tc.name, got, tc.want)
			}
			if p == recall && strings.HasPrefix(tc.name, "recalls") && strings.Contains(got, "memory_") {
				t.Errorf("%s: the client sees %.500s", tc.name, got)
			}
			select {
			case <-p.done:
				t.Fatalf("%s: the gateway ended: %s\n%s", tc.name, p.cmd.ProcessState, p.log())
			default:
			}
		}
	}
	smuggle(t, p)
	reset(t, p)
	crowd(t, p)
	if n := provider.smuggled.Load(); n > 0 {
		t.Errorf("%d requests were smuggled to the provider", n)
	}
	for home, p := range map[string]*process{home: p, remembering: recall} {
		if got := p.raw(t, messages("", hello)); !strings.HasPrefix(got, "200 ") {
			t.Errorf("at last: %s", got)
		}
		if strings.Contains(p.log(), "panic") {
			t.Errorf("the log says\n%s", p.log())
		}
		if peak := p.peak(t); peak > 1500<<20 { // the race detector takes twice as much
			t.Errorf("it took %d MB of memory", peak>>20)
		}
		if out, err := furlCommand(home, "doctor").CombinedOutput(); err != nil {
			t.Errorf("furl doctor: %v\n%s", err, out)
		}
	}
}

// smuggle sends requests whose end two parsers could see differently. The bytes after
// them must not reach the provider.
func smuggle(t *testing.T, p *process) {
	t.Helper()
	second := "SMUGGLED /v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, head := range []string{
		"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n",
		"Content-Length: %d\r\nTransfer-Encoding : chunked\r\n\r\n", "Content-Length: %d\r\nTransfer-Encoding:\vchunked\r\n\r\n",
		"Content-Length: %d\r\nX-A: b\nTransfer-Encoding: chunked\r\n\r\n", "Content-Length: %d\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
	} {
		for _, path := range []string{"/v1/messages", "/v1/files"} {
			body := "0\r\n\r\n" + second
			request := "POST " + path + " HTTP/1.1\r\n" + keyed + fmt.Sprintf(head, len(body)) + body
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(conn)
			resp, err := http.ReadResponse(in, nil)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body) // the response does not matter
				resp.Body.Close()
			}
			conn.Close()
		}
	}
}

// reset opens streams and resets them immediately, as fast as possible.
func reset(t *testing.T, p *process) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(io.Discard, conn) }() // not read
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, nil)
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	err = framer.WriteSettings()
	for id := uint32(1); err == nil && id < 20_000; id += 2 {
		block.Reset()
		for _, f := range []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "localhost"}, {Name: ":path", Value: "/v1/messages"}, {Name: "x-api-key", Value: "k"}} {
			_ = enc.WriteField(f) // a buffer accepts all
		}
		if err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}); err == nil {
			err = framer.WriteRSTStream(id, http2.ErrCodeCancel)
		}
	}
	// The server may close the connection or not.
}

// crowd opens many connections that send half a request, or disconnect after it, and
// streams that never end.
func crowd(t *testing.T, p *process) {
	t.Helper()
	for i := range 300 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		half := messages("X-Rogue: never\r\n", hello)
		switch i % 3 {
		case 0:
			half = half[:60] // of the head
		case 1:
			half = half[:len(half)-10]
		}
		if _, err := io.WriteString(conn, half); err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if got := p.raw(t, messages("", hello)); !strings.HasPrefix(got, "200 ") {
		t.Errorf("beside a crowd: %s", got)
	}
}

// peak is the peak memory of the process, or 0 if it is unknown.
func (p *process) peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("at most %d MB", n>>10)
	return n << 10
}
