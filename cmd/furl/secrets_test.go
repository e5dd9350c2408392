package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl/sim"
)

// Planted secrets: keys in all places where clients may send one, each with its place in
// its name, and words in all message contents.
const (
	planted = "sk-planted-"
	spoken  = "canary-of-contents"
)

// echo is a provider that repeats requests, as some do in their errors, and breaks the
// protocol with them. Otherwise it is the simulated provider.
type echo struct{ sim http.Handler }

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Furl-") {
			w.WriteHeader(http.StatusTeapot) // must not reach the provider
			return
		}
	}
	how := r.Header.Get("X-Echo")
	if how == "" {
		e.sim.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body) // the part that arrived
	words := fmt.Sprintf("%s %s: %.300s", r.URL, r.Header, body)
	quoted := fmt.Sprintf("%q", words)
	switch how {
	case "refusal":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", "echoed") // a value of the client
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"authentication_error","message":%s}}`, quoted)
	case "overflow":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"prompt is too long: 9 tokens > 8 maximum"},"request_id":%s}`, quoted)
	case "answer":
		fmt.Fprintf(w, `{"type":%s,"object":%s}`, quoted, quoted)
	case "garbage":
		fmt.Fprint(w, words)
	case "events":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"role\":%s,\"content\":[]}}\n\n", quoted)
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":\"error\",\"error\":{\"type\":\"x\",\"message\":%s}}\n\n", "error", quoted)
	case "broken events":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", planted, words)
	default:
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, map[string]string{
			"status line": "HTTP/1.1 %s\r\n\r\n", "header": "HTTP/1.1 200 OK\r\n %s: x\r\n\r\n", "length": "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n",
			"chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n", "unasked": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}%s\r\n",
			"cut": "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n%s",
		}[how], strings.NewReplacer("\r", "", "\n", "").Replace(words))
	}
}

var echoes = []string{"", "refusal", "overflow", "answer", "garbage", "events", "broken events", "status line", "header", "length", "chunk", "unasked", "cut"}

// secretive sends requests with keys in all places.
type secretive struct {
	url      string
	key      string // client key of the gateway
	operator string // operator key of the gateway; "": none
}

func (s *secretive) header() http.Header {
	return http.Header{
		"Authorization": {"Bearer " + planted + "bearer"}, "X-Api-Key": {planted + "api-key"}, "X-Furl-Key": {s.key}, "Cookie": {"session=" + planted + "cookie"},
		"Api-Key": {planted + "azure"}, "X-Goog-Api-Key": {planted + "google"}, "Proxy-Authorization": {"Basic " + planted + "proxy"},
		"Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"}, "User-Agent": {"sdk/1.0"},
	}
}

const secretQuery = "?beta=true&key=" + planted + "query&api_key=" + planted + "query2"

// bodies are requests in each format. The last few are invalid.
var secretBodies = map[string][]string{
	"/v1/messages": {
		`{"model":"claude-sonnet-4-5","max_tokens":90,"stream":%t,"system":"` + spoken + `","metadata":{"user_id":"` + planted + `metadata"},"messages":[{"role":"user","content":"` + spoken + `"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"bash","input":{"command":"` + spoken + `"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"` + spoken + `"}]}],"tools":[{"name":"bash","input_schema":{"type":"object"}}],"mcp_servers":[{"type":"url","url":"http://a","name":"a","authorization_token":"` + planted + `mcp"}]}`,
		`{"model":"claude-sonnet-4-5","max_tokens":90,"stream":%t,"metadata":{"user_id":"` + planted + `metadata"},"messages":[{"role":"user","content":"` + spoken + ` again"}]}`,
	},
	"/v1/chat/completions": {
		`{"model":"gpt-5","stream":%t,"user":"` + planted + `user","metadata":{"key":"` + planted + `metadata"},"messages":[{"role":"system","content":"` + spoken + `"},{"role":"user","content":"` + spoken + `"},{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"` + spoken + `\"}"}}]},{"role":"tool","tool_call_id":"call_1","content":"` + spoken + `"}],"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}]}`,
	},
	"/v1/responses": {
		`{"model":"gpt-5","stream":%t,"store":false,"safety_identifier":"` + planted + `user","metadata":{"key":"` + planted + `metadata"},"instructions":"` + spoken + `","input":[{"role":"user","content":"` + spoken + `"},{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{\"command\":\"` + spoken + `\"}"},{"type":"function_call_output","call_id":"call_1","output":"` + spoken + `"}],"tools":[{"type":"function","name":"bash","parameters":{"type":"object"}},{"type":"mcp","server_label":"a","server_url":"http://a","authorization":"` + planted + `mcp","headers":{"X":"` + planted + `mcp2"}}]}`,
	},
}

// broken bodies have words, but are not valid requests.
var brokenBodies = []string{
	`{"messages":[{"role":"user","content":"` + spoken + `"`, `{"model":"` + spoken + `","messages":"` + spoken + `","stream":%t}`, spoken, `{"messages":[{"role":"` + spoken + `","content":[{"type":"` + spoken + `"}]}]}`,
	"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"" + spoken + "\xff\x00\"}]}", `{"model":"m","input":[{"type":"` + spoken + `","x":` + spoken + `}]}`, `{"` + planted + `":1,"messages":[{}]}`,
}

// all sends all requests, and checks that only the provider's text comes back.
func (s *secretive) all(t *testing.T) {
	for path, bodies := range secretBodies {
		for _, how := range echoes {
			for _, stream := range []bool{false, true} {
				for _, body := range bodies {
					s.send(t, http.MethodPost, path+secretQuery, fmt.Sprintf(body, stream), how, nil)
				}
			}
		}
		for _, fault := range []string{"429", "500", "overflow", "cut=3", "error=3", "redirect=http://127.0.0.1:9/?key=" + planted + "elsewhere"} {
			s.send(t, http.MethodPost, path+secretQuery, fmt.Sprintf(bodies[0], true), "", http.Header{sim.FaultHeader: {fault}})
		}
		for _, body := range brokenBodies {
			s.send(t, http.MethodPost, path+secretQuery, strings.Replace(body, "%t", "true", 1), "", nil)
		}
		whole := fmt.Sprintf(bodies[0], false)
		s.send(t, http.MethodPost, path, whole, "", http.Header{"Content-Encoding": {"gzip"}})
		s.send(t, http.MethodPost, path, whole, "", http.Header{"Content-Encoding": {"zstd"}})
		s.send(t, http.MethodPost, path, whole, "", http.Header{"Content-Encoding": {"rot13"}})
		s.send(t, http.MethodPost, path, whole+strings.Repeat(" ", 3<<20), "", nil)
		s.send(t, http.MethodPost, path, whole, "", http.Header{"X-Furl-Key": {planted + "wrong"}})
		s.send(t, http.MethodPost, path, whole, "", http.Header{"X-Furl-Key": {s.operator}})
		s.send(t, http.MethodPost, path, whole, "", http.Header{"X-Api-Key": {s.operator}})
		s.send(t, http.MethodPost, path, whole, "", http.Header{"X-Furl-Bypass": {"true"}})
		s.send(t, http.MethodPost, path, whole, "", http.Header{"X-Furl-Dry-Run": {"true"}})
		s.send(t, http.MethodPost, path, whole, "", http.Header{"X-Furl-Session": {planted + "%%"}})
		s.send(t, http.MethodPost, path, whole, "", http.Header{"Connection": {planted}})
		s.send(t, http.MethodPost, "/"+planted+"path"+path, whole, "", nil)
		s.send(t, http.MethodPost, "/"+planted+"path"+path, whole, "length", nil)
		s.send(t, http.MethodGet, path+"/"+planted+"path"+secretQuery, "", "", nil)
		s.send(t, http.MethodGet, path+"/"+planted+"path"+secretQuery, "", "status line", nil)
		s.send(t, http.MethodPost, path+"/../"+planted, "", "", nil)
	}
	for _, path := range []string{"/furl/v1/status", "/furl/v1/sessions", "/furl/v1/" + planted, "/furl/v1/search?q=" + spoken, "/furl/v1/sessions/" + planted, "/metrics", "/healthz", "/readyz", "/furl"} {
		s.send(t, http.MethodGet, path, "", "", nil)
		s.send(t, http.MethodGet, path, "", "", http.Header{"X-Furl-Key": {planted + "wrong"}})
		s.send(t, http.MethodGet, path, "", "", http.Header{"X-Furl-Key": {s.operator}})
		s.send(t, http.MethodGet, path, "", "", http.Header{"Origin": {"http://evil.example"}})
	}
}

var echoedPath = regexp.MustCompile(`unknown API path [A-Z]+ /[^"]*|"sk-planted-[a-z%]*\\?"`)

// send sends a request, as to a server and as through a proxy.
func (s *secretive) send(t *testing.T, method, path, body, how string, more http.Header) {
	t.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := *at
	proxy.User = url.UserPassword("me", planted+"proxy-url")
	for _, transport := range []*http.Transport{{DisableKeepAlives: true}, {DisableKeepAlives: true, Proxy: http.ProxyURL(&proxy)}} {
		host := at.Host
		if transport.Proxy != nil && !strings.HasPrefix(path, "/furl/") && path != "/metrics" {
			host = "me:" + planted + "url@api.example"
		}
		req, err := http.NewRequest(method, "http://"+host+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = s.header()
		for name, values := range more {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
		if how != "" {
			req.Header.Set("X-Echo", how)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			continue // the provider cut it off
		}
		got, _ := io.ReadAll(resp.Body) // the same
		resp.Body.Close()
		if resp.StatusCode == http.StatusTeapot {
			t.Errorf("%s %s: a furl header reached the provider", method, path)
		}
		// The client gets the provider's text, even with a key in it. furl's text is
		// recognized by its name.
		said := fmt.Append(nil, resp.Header["X-Furl-Note"], resp.Header["X-Furl-Session"], resp.Header["X-Furl-Plan"], resp.Header["Server-Timing"])
		if more.Get(sim.FaultHeader) == "" {
			said = fmt.Append(said, resp.Header["Location"])
		}
		own := bytes.Contains(got, []byte("furl: ")) || strings.HasPrefix(path, "/furl/") || path == "/metrics"
		if own {
			said = append(said, ownWords(got)...)
		}
		if said = echoedPath.ReplaceAll(said, nil); bytes.Contains(said, []byte(planted)) {
			t.Errorf("%s %s %s %v: the answer holds a key: %.600s", method, path, how, more, said)
		}
		if own && resp.StatusCode >= 400 && bytes.Contains(ownWords(got), []byte(spoken)) {
			t.Errorf("%s %s %s %v: an error of furl's holds what was said: %.600s", method, path, how, more, got)
		}
	}
}

// ownWords returns furl's part of a stream, or all of it.
func ownWords(body []byte) []byte {
	if i := bytes.LastIndex(body, []byte("\n\n\n\n")); i >= 0 {
		return body[i:]
	}
	return body
}

// Keys of clients are in no file, log, metric, export, error or header of furl, even if the
// provider repeats them. Message contents are in no log above debug, no metric and no
// error. T9
func TestSecrets(t *testing.T) {
	for _, level := range []string{"debug", "info"} {
		t.Run(level, func(t *testing.T) {
			provider := httptest.NewServer(&echo{sim.New(&sim.Options{AnyField: true})})
			defer provider.Close()
			home := t.TempDir()
			s := &secretive{key: planted + "client"}
			cmd := furlCommand(home, "serve", "--listen", "127.0.0.1:0", "--anthropic", provider.URL, "--openai", provider.URL, "--log", level)
			settings := "gateway:\n  max_body: 2MB\n"
			if level == "info" {
				s.operator = planted + "operator"
				settings += "  client_keys_env: FURL_KEYS\n  operator_key_env: FURL_OPERATOR\n  tenants: true\n"
				cmd.Env = append(cmd.Env, "FURL_KEYS="+s.key, "FURL_OPERATOR="+s.operator)
			}
			if err := os.WriteFile(home+"/config.yaml", []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			p := start(t, cmd)
			s.url = p.url
			s.all(t)
			if level == "debug" {
				s.own(t)
			}
			provider.Close() // connections are refused from now on
			for path, bodies := range secretBodies {
				s.send(t, http.MethodPost, path+secretQuery, fmt.Sprintf(bodies[0], true), "", nil)
			}
			// Crash, with all goroutines in the output.
			if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
				t.Fatal(err)
			}
			<-p.done
			if !strings.Contains(p.log(), "goroutine ") {
				t.Error("it did not crash as it was told to")
			}
			clean(t, "the log", []byte(p.log()), planted)
			if level != "debug" {
				clean(t, "the log", []byte(p.log()), spoken)
			}
			scan(t, home)
			if level == "debug" {
				exports(t, home)
			}
		})
	}
}

func clean(t *testing.T, what string, data []byte, words string) {
	t.Helper()
	if i := bytes.Index(data, []byte(words)); i >= 0 {
		t.Errorf("%s holds what it must not: …%q…", what, data[max(0, i-300):min(len(data), i+60)])
	}
}

// own searches the responses of furl's API and metrics.
func (s *secretive) own(t *testing.T) {
	t.Helper()
	get := func(path string) []byte {
		resp, err := http.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		clean(t, path, body, planted)
		return body
	}
	clean(t, "the metrics", get("/metrics"), spoken)
	ids := regexp.MustCompile(`"session":"([^"]+)"`).FindAllSubmatch(get("/furl/v1/sessions"), -1)
	if len(ids) < 3 {
		t.Errorf("there are %d sessions", len(ids))
	}
	for _, id := range ids {
		base := "/furl/v1/sessions/" + string(id[1])
		for _, path := range []string{"", "/records", "/view", "/context", "/reductions", "/branches", "/search?q=planted&in=everywhere"} {
			get(base + path)
		}
	}
}

// scan searches all files, and compressed contents of the store.
func scan(t *testing.T, home string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(home, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		clean(t, name, data, planted)
		if files++; strings.Contains(name, "/data/") {
			if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s can be read by others: %v", name, info.Mode())
			}
		}
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
	db, err := sql.Open("sqlite", home+"/data/furl.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tables, err := db.Query("SELECT name FROM sqlite_master WHERE type = 'table'")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tables.Next() {
		var name string
		if err := tables.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := tables.Err(); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, name := range names {
		found = scanTable(t, db, name) || found
	}
	if !found {
		t.Error("what was said is not in the store, so that nothing is known of keys either")
	}
}

// scanTable searches the values of a table, raw and decompressed. It reports whether it
// found message contents.
func scanTable(t *testing.T, db *sql.DB, name string) (found bool) {
	t.Helper()
	rows, err := db.Query("SELECT * FROM " + name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unpack.Close()
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			data := fmt.Append(nil, v)
			if b, ok := v.([]byte); ok {
				data = b
			}
			forms := [][]byte{data}
			if b, err := s2.Decode(nil, data); err == nil {
				forms = append(forms, b)
			}
			if b, err := unpack.DecodeAll(data, nil); err == nil {
				forms = append(forms, b)
			}
			for _, form := range forms {
				clean(t, name+"."+columns[i], form, planted)
				found = found || bytes.Contains(form, []byte(spoken))
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// exports searches the output of commands for the store.
func exports(t *testing.T, home string) {
	t.Helper()
	for _, args := range [][]string{{"sessions", "--json"}, {"stats"}, {"show", "latest", "--json"}, {"show", "latest", "--view"}, {"context", "latest"}, {"doctor"}, {"export", "latest"}} {
		out, err := furlCommand(home, args...).CombinedOutput()
		if err != nil {
			t.Errorf("furl %v: %v\n%s", args, err, out)
		}
		clean(t, fmt.Sprint("furl ", args), out, planted)
	}
}
