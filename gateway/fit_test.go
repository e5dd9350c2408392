package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/fit"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// fitting fits the requests of a client as a program does that sends them itself, with the usage
// of the last reply.
type fitting struct {
	t     *testing.T
	st    *judgeStand
	store *inmem.Store
	usage json.RawMessage
	// sessions, if not nil, get all calls, as those of a gateway do. Otherwise each call is in
	// another process.
	sessions *session.Sessions
	// same counts the requests whose body is that of the gateway, changed those in which it
	// is not the client's.
	requests, same, changed int
}

func (f *fitting) compare(asked []byte, got [][]byte, reply []byte) {
	if len(got) != 1 {
		f.t.Fatalf("the provider got %d requests", len(got))
	}
	all := f.sessions
	if all == nil {
		all = f.open()
	}
	r, err := fit.Fit(f.t.Context(), all, &fit.Request{Body: asked, Format: f.st.client.Format, Usage: f.usage, Time: f.st.now, Session: "s1"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.requests++
	if !bytes.Equal(r.Body, asked) {
		f.changed++
	}
	if bytes.Equal(r.Body, got[0]) {
		f.same++
	} else if f.requests-f.same == 1 {
		f.t.Errorf("request %d differs from that of the gateway: %s", f.requests, firstDifference(r.Body, got[0]))
	}
	var fields struct{ Usage json.RawMessage }
	if err := json.Unmarshal(reply, &fields); err != nil {
		f.t.Fatal(err)
	}
	f.usage = fields.Usage
}

// open returns the sessions as another process has them.
func (f *fitting) open() *session.Sessions {
	o := f.st.options
	o.Now = nil // furl fit gets the time with the request
	all, err := session.New(f.store, &o)
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// firstDifference shows where two texts differ.
func firstDifference(a, b []byte) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	from := max(0, n-80)
	return fmt.Sprintf("%d and %d bytes; at %d: %q and %q", len(a), len(b), n, a[from:min(len(a), n+120)], b[from:min(len(b), n+120)])
}

// A program that fits its requests with a session sends what the gateway sends in their place,
// byte for byte, with every preset and in all formats. (Summaries by a model are the exception:
// the gateway asks for them after a reply, which only it sees.) FURL_MARKS=1 sends 100 requests of all
// recordings with all presets.
func TestFitEqualsGateway(t *testing.T) {
	all := os.Getenv("FURL_MARKS") != ""
	files, presets, most := recordings.Files(t, "entire-cli/6d-*.gz", "agentv/*.codex.jsonl.gz", "pi-mono/*.gz")[:3], policy.NewSet().Names(), 45
	if gateway.RaceDetector {
		most = 15
	}
	if all {
		files, most = recordings.Files(t, "*/*.gz"), 100
	}
	requests, changed := 0, 0
	for i, file := range files {
		rec, err := transcript.ReadFile(file)
		if err != nil || len(rec.Sessions) == 0 {
			continue // not an agent's
		}
		s := rec.Sessions[0]
		ways := []string{"claude", "codex", "pi-chat"}
		if !all {
			ways = ways[i%3:][:1]
		}
		for _, client := range ways {
			for j, name := range presets {
				if !all && j%3 != i || gateway.RaceDetector && j != 9+i%3 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", filepath.Base(file), client, name), func(t *testing.T) {
					st := newJudge(t, s, followed{client: client, window: 24_000, policy: name}, 10_000_000)
					f := &fitting{t: t, st: st, store: inmem.New()}
					if all { // another process would know only the latest 48 sizes
						f.sessions = f.open()
					}
					st.compare, st.noSummaries = f.compare, true
					st.start(t)
					if st.follow(t, s, followed{client: client}, most); st.err != nil {
						t.Log(st.err) // at a recorded compaction
					}
					t.Logf("%d requests, %d of them changed", f.requests, f.changed)
					requests, changed = requests+f.requests, changed+f.changed
				})
			}
		}
	}
	if t.Logf("%d requests, %d of them changed", requests, changed); changed == 0 {
		t.Error("no request was changed")
	}
}

// fitRequest is the body of a request to POST /furl/v1/fit.
func fitRequest(t testing.TB, results int, more string) string {
	t.Helper()
	msgs := []any{map[string]any{"role": "user", "content": "Find it."}}
	for i := range results {
		id := fmt.Sprintf("t%d", i)
		msgs = append(msgs,
			map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "read", "input": map[string]any{"path": id}}}},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": strings.Repeat(id+" has text. ", 200)}}})
	}
	body, err := json.Marshal(map[string]any{"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": msgs})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"body":%s,"policy":"rolling-mask-5"%s}`, body, more)
}

// A request is fitted over HTTP: without a session nothing is remembered, with one what is
// hidden stays so and can be had back, and the provider gets nothing.
func TestFitOverHTTP(t *testing.T) {
	a := newAccessed(t, nil)
	fit := func(text string) (int, map[string]any) {
		code, reply := a.do(t, "POST", "/furl/v1/fit", text)
		var out map[string]any
		if err := json.Unmarshal([]byte(reply), &out); err != nil {
			t.Fatalf("%v: %s", err, reply)
		}
		return code, out
	}
	code, out := fit(fitRequest(t, 9, ""))
	outcome, _ := out["outcome"].(map[string]any)
	if code != 200 || outcome["changed"] != true || outcome["session"] != nil || len(outcome["hidden"].([]any)) != 4 || len(out["events"].([]any)) == 0 {
		t.Fatalf("%d %v", code, out)
	}
	for range a.sessions.List(t.Context(), storage.SessionQuery{}) {
		t.Fatal("a session was recorded")
	}
	_, first := fit(fitRequest(t, 9, `,"session":"s1","time":"2026-11-28T09:00:00Z"`))
	hidden := first["outcome"].(map[string]any)["hidden"].([]any)[0].(map[string]any)
	handle := strings.TrimPrefix(hidden["handle"].(string), "furl:")
	if code, text := a.do(t, "GET", "/furl/v1/sessions/s1/blocks/furl:"+handle, ""); code != 200 || !strings.Contains(text, "t0 has text. ") {
		t.Errorf("the original is %d %.200s", code, text)
	}
	// A reply, its usage, and another result: what was hidden is hidden alike.
	_, second := fit(fitRequest(t, 10, `,"session":"s1","usage":{"input_tokens":5000,"output_tokens":7},"time":"2026-11-28T09:00:20Z"`))
	before, after := first["body"].(map[string]any)["messages"].([]any), second["body"].(map[string]any)["messages"].([]any)
	if fmt.Sprint(before[:9]) != fmt.Sprint(after[:9]) {
		t.Errorf("the beginning has changed:\n%v\n%v", before[:9], after[:9])
	}
	s, err := a.sessions.Open(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	exchanges := 0
	for _, r := range s.Records(0) {
		if x, ok := r.Body.(*furl.Exchange); ok {
			if exchanges++; x.Usage.Input != 5000 || x.Usage.Output != 7 {
				t.Errorf("the usage is %+v", x.Usage)
			}
		}
	}
	if exchanges != 1 || len(a.seen) != 0 {
		t.Errorf("%d exchanges, the provider got %d requests", exchanges, len(a.seen))
	}
	for _, tt := range []struct {
		text, want string
		code       int
	}{
		{`{}`, "missing field body", 400},
		{`{"body":null}`, "give its format", 400},
		{`{"body":{"messages":[]},"format":"anthropic","Body":{}}`, "field body occurs twice", 400},
		{`{"body":{"messages":[]}`, "invalid request body", 400},
		{`[1]`, "expected a JSON object, got array", 400},
		{`{"body":{"messages":[{"role":"user","content":"hi"}]}}`, "give its format: anthropic, openai-chat or openai-responses", 400},
		{`{"body":{"messages":1},"format":"anthropic"}`, "is not a request in the format anthropic", 400},
		{`{"body":{"messages":[]},"format":"x"}`, `unknown format "x"`, 400},
		{fitRequest(t, 1, `,"budget":"12chars"`), "works only with the policy graduated", 400},
		{fitRequest(t, 1, `,"budget":-1`), "invalid budget", 400},
		{fitRequest(t, 1, `,"session":"../x"`), "invalid session", 400},
		{fitRequest(t, 1, `,"usage":{}`), "without a session", 400},
		{fitRequest(t, 1, `,"policies":1`), "unknown field", 400},
		{`{"body":` + `{"model":"m","system":"s","messages":[]}}`, `"note":"the request has no messages"`, 200},
	} {
		if code, reply := a.do(t, "POST", "/furl/v1/fit", tt.text); code != tt.code || !strings.Contains(reply, tt.want) && !strings.Contains(reply, strings.ReplaceAll(tt.want, `"`, `\"`)) {
			t.Errorf("%.60s: %d %.300s", tt.text, code, reply)
		}
	}
}

// What a request becomes in memory is bounded before it is decoded, also where the body to fit is
// a field of it.
func TestFitBounds(t *testing.T) {
	a := newAccessed(t, nil)
	many := strings.Repeat(`{"role":"user","content":"a"},`, 60_000) + `{"role":"user","content":"a"}`
	for _, tt := range []struct{ path, body, want string }{
		{"fit", `{"format":"anthropic","body":{"model":"m","messages":[` + many + `]}}`, "more than 50000 parts"},
		{"sessions/a1/append", `{"format":"anthropic","messages":[` + many + `]}`, "more than 50000 parts"},
		{"fit", `{"format":"anthropic","usage":[` + many + `],"body":{"model":"m","messages":[]}}`, "beside its body"},
	} {
		if code, reply := a.do(t, "POST", "/furl/v1/"+tt.path, tt.body); code != 413 && code != 400 || !strings.Contains(reply, tt.want) {
			t.Errorf("%s: %d %.200s", tt.path, code, reply)
		}
	}
}

// Fitting needs the scope of requests to a model, and counts toward the limits of its tenant;
// appending needs that of changes.
func TestFitAccess(t *testing.T) {
	ann, annKey := key(t, "ann", "", access.Client, time.Time{})
	reader, readerKey := key(t, "reader", "ann", access.Read, time.Time{})
	set := &gateway.LimitSet{Default: access.Limits{Sessions: 1, RequestsPerMinute: 4}}
	a := newAccessed(t, &gateway.Options{Keys: access.NewKeys([]access.Key{ann, reader}), TenantSecret: []byte("0123456789abcdef"), Limits: set})
	for _, tt := range []struct {
		path, body, key, want string
		code                  int
	}{
		{"fit", fitRequest(t, 1, ""), readerKey, "scope", 403},
		{"sessions/a1/append", `{"messages":[{"role":"user","content":"hi"}],"format":"anthropic"}`, readerKey, "scope", 403},
		{"sessions/a1/append", `{"messages":[{"role":"user","content":"hi"}],"format":"anthropic"}`, annKey, `"records":[1]`, 200},
		{"fit", fitRequest(t, 1, `,"session":"a1"`), annKey, `"session":"a1"`, 200},
		{"fit", fitRequest(t, 1, `,"session":"a2"`), annKey, "limit", 429},
		{"fit", fitRequest(t, 1, ""), annKey, `"changed":false`, 200},
		{"fit", fitRequest(t, 1, ""), annKey, "limit", 429},
	} {
		if code, reply := a.do(t, "POST", "/furl/v1/"+tt.path, tt.body, "X-Furl-Key", tt.key); code != tt.code || !strings.Contains(reply, tt.want) {
			t.Errorf("%s %.50s: %d %.300s", tt.path, tt.body, code, reply)
		}
	}
}

// Messages are added to a session without a provider, all or none, and once if the request is
// repeated.
func TestAppendOverHTTP(t *testing.T) {
	a := newAccessed(t, nil)
	for _, tt := range []struct {
		body, want string
		code       int
	}{
		{`{"messages":[]}`, "missing field messages", 400},
		{`{"messages":[{"role":"user","content":"hi"}]}`, "missing or unknown format", 400},
		{`{"format":"openai-chat","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}],"after":0}`, `"records":[1,2]`, 200},
		{`{"format":"openai-chat","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}],"after":0}`, `"records":[1,2]`, 200},
		{`{"messages":[{"role":"user","content":"go on"}]}`, "a tool call has no result yet", 400},
		{`{"messages":[{"role":"tool","tool_call_id":"c","content":"done"},7]}`, "message 1", 400},
		{`{"messages":[{"role":"tool","tool_call_id":"c","content":"done"}],"after":1}`, "", 409},
		{`{"messages":[{"role":"tool","tool_call_id":"c","content":"done"}]}`, `"head":3`, 200},
	} {
		if code, reply := a.do(t, "POST", "/furl/v1/sessions/n1/append", tt.body); code != tt.code || !strings.Contains(reply, tt.want) {
			t.Errorf("%.90s: %d %.300s", tt.body, code, reply)
		}
	}
}
