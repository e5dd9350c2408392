package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// restart replaces the gateway by a new one over the same store, once it has
// ended what is under way.
func (st *fixture) restart(t testing.TB, sess *session.Options, o *gateway.Options) {
	t.Helper()
	st.front.Close()
	st.begin(t, st.sessions.Store(), sess, o)
}

// tools gives the names of the tools of a request, in order.
func toolsOf(t testing.TB, body []byte) string {
	t.Helper()
	var req struct {
		Tools []struct {
			Name     string
			Function struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range req.Tools {
		names = append(names, tool.Name+tool.Function.Name)
	}
	return strings.Join(names, " ")
}

const twice = "-- 1 --\ntext: Well.\nrepeat: 9\n"

// A session has the recall tools from its first request on, or never: also
// after a restart, and whatever the setting says then.
func TestRecallToolsFromTheFirstRequestOn(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		for _, first := range []bool{true, false} {
			then := &gateway.Options{Recall: !first}
			st := recallFixture(t, twice)
			a.history = nil
			if !first {
				st.restart(t, nil, nil)
			}
			a.say("hello there")
			a.reply(t, st)
			st.restart(t, nil, then)
			a.say("and again")
			a.reply(t, st)
			want := "bash"
			if first {
				want = "bash memory_search memory_get"
			}
			for _, r := range st.sim.Requests() {
				if got := toolsOf(t, r.Body); got != want || r.Verdict != sim.VerdictOK {
					t.Errorf("request %d has the tools %q, want %q: %s", r.N, got, want, r.Error)
				}
			}
		}
	})
}

// Where tools stand and what is beside them makes no difference, and all
// other bytes of the request stay.
func TestRecallToolsInBodies(t *testing.T) {
	messages := `"messages":[{"role":"user","content":"hello there"}]`
	tool := `{"name":"bash","input_schema":{"type":"object"}, "x_n":1.0}`
	chat := `{"type":"function","function":{"name":"bash"}}`
	item := `{"type":"function","name":"bash","parameters":{"type":"object"}}`
	for _, tc := range []struct {
		name, path, body string
		offered          string // what is added, "" for nothing
		bypass           bool
	}{
		{"in front", "/v1/messages", `{"tools" : [ ` + tool + ` ] ,"model":"claude-sonnet-4-5", "max_tokens":9,` + messages + `}`, "memory_search memory_get", false},
		{"behind", "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":9,` + messages + ` , "tools":[` + tool + `]}`, "memory_search memory_get", false},
		{"no tools", "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":9,` + messages + `}`, "", false},
		{"an empty list", "/v1/chat/completions", `{"model":"gpt-5",` + messages + `,"stop":null}`, "", false},
		{"a tool of that name", "/v1/messages", `{"tools":[{"name":"memory_get","input_schema":{"type":"object"}}],"model":"claude-sonnet-4-5","max_tokens":9,` + messages + `}`, "memory_search", false},
		{"no choice", "/v1/messages", `{"tools":[` + tool + `],"tool_choice":{"type":"none"},"model":"claude-sonnet-4-5","max_tokens":9,` + messages + `}`, "memory_search memory_get", false},
		{"one choice", "/v1/messages", `{"tools":[` + tool + `],"tool_choice":{"type":"tool","name":"bash"},"model":"claude-sonnet-4-5","max_tokens":9,` + messages + `}`, "memory_search memory_get", false},
		{"bypass", "/v1/messages", `{"tools":[` + tool + `],"model":"claude-sonnet-4-5","max_tokens":9,` + messages + `}`, "", true},
		{"chat", "/v1/chat/completions", `{"model":"gpt-5",` + messages + `,"tools":[` + chat + `],"parallel_tool_calls":false}`, "memory_search memory_get", false},
		{"chat, several choices", "/v1/chat/completions", `{"model":"gpt-5","n":2,` + messages + `,"tools":[` + chat + `]}`, "", false},
		{"responses, kept", "/v1/responses", `{"model":"gpt-5","input":"hello there","tools":[` + item + `]}`, "", false},
		{"responses, kept expressly", "/v1/responses", `{"model":"gpt-5","store":true,"input":"hello there","tools":[` + item + `]}`, "", false},
		{"responses, words", "/v1/responses", `{"model":"gpt-5","store":false,"input":"hello there","tools":[` + item + `]}`, "memory_search memory_get", false},
		{"responses, items", "/v1/responses", `{"tools":[` + item + `],"store":false,"input":[{"role":"user","content":"hello there"}],"model":"gpt-5"}`, "memory_search memory_get", false},
		{"responses, tools in the input", "/v1/responses", `{"store":false,"input":[{"type":"additional_tools","role":"developer","tools":[` + item + `]},{"role":"user","content":"hello there"}],"model":"gpt-5"}`, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st := recallFixture(t, "-- 1 --\ntext: Well.\ncall: bash {}\n")
			headers := []string{"X-Furl-Bypass", fmt.Sprint(tc.bypass)}
			resp, answer := st.post(t, tc.path, []byte(tc.body), headers...)
			if resp.StatusCode != 200 {
				t.Fatalf("status %d: %s", resp.StatusCode, answer)
			}
			sent := st.sim.Requests()[0].Body
			had := toolsOf(t, []byte(tc.body))
			if got, want := toolsOf(t, sent), strings.TrimSpace(had+" "+tc.offered); got != want {
				t.Errorf("tools %q, want %q", got, want)
			}
			if tc.offered == "" && !bytes.Equal(sent, []byte(tc.body)) {
				t.Errorf("sent\n%s\nwant\n%s", sent, tc.body)
			}
			// The added part is one run of bytes.
			for i := range tc.body {
				if rest := len(tc.body) - i; string(sent[:i]) == tc.body[:i] && string(sent[len(sent)-rest:]) == tc.body[i:] {
					return
				}
			}
			t.Errorf("more was changed than added:\n%s\n%s", tc.body, sent)
		})
	}
}

// count_tokens counts the recall tools where the request would have them.
func TestRecallToolsAreCounted(t *testing.T) {
	st := recallFixture(t, twice)
	plain := newFixture(t, &sim.Options{Player: script(t, twice)}, nil, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	a.say("hello there")
	count := func(st *fixture) int {
		t.Helper()
		body := a.body()
		body = bytes.Replace(bytes.Replace(body, []byte(`"max_tokens":1000,`), nil, 1), []byte(`,"stream":false`), nil, 1)
		resp, answer := st.post(t, "/v1/messages/count_tokens", body)
		var n struct {
			Tokens int `json:"input_tokens"`
		}
		if err := json.Unmarshal(answer, &n); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %s %v", resp.StatusCode, answer, err)
		}
		return n.Tokens
	}
	tools := count(st) - count(plain)
	if tools < 50 || tools > 300 {
		t.Errorf("the recall tools count %d tokens", tools)
	}
	a.reply(t, st)
	a.say("again")
	if with, without := count(st), count(plain); with-without != tools {
		t.Errorf("in the second request they count %d, in the first %d", with-without, tools)
	}
}

// Dry runs of a session with recall tools have them and what was recalled: both
// are part of the prompt that thinking is bound to. Nothing is hidden.
func TestRecallInDryRuns(t *testing.T) {
	st := recallFixture(t, `
-- 1 --
think: one
text: Let me look.
call: memory_get {"handle":"furl:1.0"}
-- 2 --
think: two
text: It was hello.
-- 3 --
think: three
call: memory_get {"handle":"furl:1.0"}
-- 4 --
think: four
text: Still hello.
-- 5 --
think: five
text: Bye.
`)
	c := &sim.Client{URL: st.front.URL, Format: furl.FormatAnthropic, Model: "claude-opus-5-5", Stream: true,
		Fields: map[string]any{"max_tokens": 2000, "thinking": map[string]string{"type": "adaptive"}}}
	talk(t, c, "hello there")
	c.Header = http.Header{"X-Api-Key": {"test"}, "Anthropic-Version": {"2023-06-01"}, "X-Furl-Dry-Run": {"true"}}
	talk(t, c, "again")
	c.Header.Del("X-Furl-Dry-Run")
	talk(t, c, "bye")
	a := &agent{format: furl.FormatAnthropic}
	st.accepted(t, a, 5)
	if b := st.sim.Bill(); b.ThinkingDropped > 0 {
		t.Errorf("%d thinking blocks were dropped", b.ThinkingDropped)
	}
}

// A prompt that is too long only with what was recalled is made shorter, and
// sent again; the client sees nothing of it.
func TestRecallThenOverflow(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		st := newFixture(t, &sim.Options{Window: 9_000, Player: script(t, `
-- 1 --
call: bash {"command":"one"}
-- 2 --
call: bash {"command":"two"}
-- 3 --
call: bash {"command":"three"}
-- 4 --
text: Again.
call: memory_get {"handle":"furl:4.0"}
-- 5 --
text: That was it.
`)}, nil, &gateway.Options{Recall: true, Summaries: gateway.SummaryOptions{Off: true}})
		c := a.client(st)
		c.Fields = map[string]any{"max_tokens": 500}
		switch a.format {
		case furl.FormatChat:
			c.Fields = nil
		case furl.FormatResponses:
			c.Fields = map[string]any{"store": false}
		}
		if err := c.Say("Look."); err != nil {
			t.Fatal(err)
		}
		reply, err := c.Work(t.Context(), func(call furl.Block) string {
			return strings.Repeat("a line that "+string(call.Args)+" printed, as long as others\n", 165)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(said(reply), " "); !strings.HasSuffix(got, "That was it.") {
			t.Errorf("the client has %q", got)
		}
		refused := 0
		for _, r := range st.sim.Requests() {
			if r.Verdict != sim.VerdictOK {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d requests were refused, want the one that was too long", refused)
		}
		s, err := st.sessions.Find(t.Context(), session.Latest)
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 || len(s.Reductions()) == 0 {
			t.Errorf("the session: %v %v, %d reductions", problems, err, len(s.Reductions()))
		}
	})
}
