package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

var formats = []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}

// command types a command and returns furl's answer. The provider must not get it.
func (a *agent) command(t testing.TB, st *fixture, words string, headers ...string) string {
	t.Helper()
	was := len(st.sim.Requests())
	a.say(words)
	resp, answer := st.post(t, a.path(), a.body(), headers...)
	if resp.StatusCode != http.StatusOK || len(st.sim.Requests()) != was {
		t.Fatalf("%s: status %d, %d requests sent: %s", words, resp.StatusCode, len(st.sim.Requests())-was, answer)
	}
	n := len(a.history)
	if a.take(t, answer, nil) || len(a.history) != n+1 {
		t.Fatalf("%s: the answer is %s", words, answer)
	}
	m, err := a.codec().DecodeMessage(a.history[n])
	if err != nil || len(m.Blocks) != 1 {
		t.Fatalf("%s: the answer is %s, %v", words, answer, err)
	}
	return m.Blocks[0].Text
}

var handles = regexp.MustCompile(`furl:\d+`)

// asSent returns the requests that the provider got. Numbers of records in
// placeholders differ, because commands are records.
func asSent(st *fixture) (bodies []string) {
	for _, r := range st.sim.Requests() {
		bodies = append(bodies, handles.ReplaceAllString(string(r.Body), "furl:N"))
	}
	return bodies
}

// A4: commands typed at any place leave the requests to the provider as they would be
// without, except for what they set. Restarts, lost caches and hints make no difference.
func TestA4CommandsLeaveRequestsUnchanged(t *testing.T) {
	turns := []string{"Look at everything there is.", "And now?", "Once more.", "That is all."}
	for seed := range 6 {
		for i, format := range formats {
			if gateway.RaceDetector && seed%3 != i {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", format, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(seed), 1))
				stream := seed%2 == 0
				var headers []string
				if seed%3 == 0 {
					headers = []string{"X-Session-Id", "the-session"}
				}
				run := func(commands bool) (*fixture, *agent) {
					store := inmem.New()
					t.Cleanup(func() { store.Close() })
					so := &session.Options{Policy: "rolling-mask-5", Commands: new(true)}
					st := newFixtureOn(t, store, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 4})}, so, &gateway.Options{Recall: seed%2 == 1})
					a := &agent{format: format, stream: stream, model: modelOf(format)}
					for i, words := range turns {
						n := rng.IntN(3)
						if i == 0 && seed == 1 {
							n = 2
						}
						for k := 0; commands && k < n; k++ {
							if rng.IntN(3) == 0 {
								st.sessions.Drop()
							}
							a.command(t, st, []string{"/rolling-context off", "furl: rolling-context off", "/rolling-context", "furl: context"}[rng.IntN(4)], headers...)
						}
						a.say(words)
						for a.step(t, st, output, headers...) {
						}
					}
					return st, a
				}
				plain, _ := run(false)
				typed, _ := run(true)
				want, got := asSent(plain), asSent(typed)
				if len(got) != len(want) {
					t.Fatalf("%d requests, want %d", len(got), len(want))
				}
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("request %d is\n%s\nwant\n%s", i, got[i], want[i])
					}
				}
				if list := typed.list(t); len(list) != 1 {
					t.Errorf("%d sessions: %v", len(list), list)
				}
			})
		}
	}
}

// A4: the command changes the session's setting, also across a restart, and the answer
// says so. Nothing of it is lost.
func TestA4RollingContextCommand(t *testing.T) {
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			store := inmem.New()
			t.Cleanup(func() { store.Close() })
			so := session.Options{Policy: "none", Commands: new(true)}
			st := newFixtureOn(t, store, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 10})}, &so, nil)
			a := &agent{format: format, model: modelOf(format)}
			text := a.command(t, st, "furl: rolling-context on")
			list := st.list(t)
			if len(list) != 1 {
				t.Fatalf("%d sessions", len(list))
			}
			id := list[0].Session
			if want := "furl (session " + string(id) + "): rolling context is on; old tool results are shortened as they age, before the policy none."; text != want {
				t.Errorf("the answer is %q, want %q", text, want)
			}
			st.front.Close()
			st.begin(t, store, &so, nil)
			a.say("Look at everything there is.")
			for a.step(t, st, output) {
			}
			st.gateway.Wait(t.Context())
			s, err := st.sessions.Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Reductions()) == 0 || len(st.list(t)) != 1 {
				t.Errorf("%d reductions in %d sessions", len(s.Reductions()), len(st.list(t)))
			}
			if text := a.command(t, st, " /rolling-context off\n"); !strings.Contains(text, "rolling context is off; the policy none hides nothing.") {
				t.Error(text)
			}
			if text := a.command(t, st, "furl: context"); !strings.Contains(text, " tokens used of ") || !strings.Contains(text, " reductions hide ") {
				t.Error(text)
			}
			typed := 0
			for _, r := range s.Records(0) {
				if m, ok := r.Body.(*furl.Message); ok && len(m.Blocks) == 1 && strings.Contains(m.Blocks[0].Text, "rolling context is o") {
					typed++
				}
			}
			if typed != 2 {
				t.Errorf("%d answers are recorded", typed)
			}
		})
	}
}

// Sessions without the setting send commands to the model. Once it is set, they are
// answered; answers stay cut out after it is removed.
func TestA4CommandsAreOptIn(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 1})}, nil, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	a.say("/rolling-context on")
	for a.step(t, st, output) {
	}
	id := string(st.list(t)[0].Session)
	if n := len(st.sim.Requests()); n == 0 {
		t.Fatal("the model was not asked")
	}
	set := func(body string) {
		t.Helper()
		if status, out := st.ask(t, "POST", "/sessions/"+id+"/settings", body); status != 200 {
			t.Fatal(out)
		}
	}
	set(`{"commands":"on"}`)
	a.command(t, st, "/rolling-context on")
	set(`{"commands":null}`)
	a.say("furl: context")
	for a.step(t, st, output) {
	}
	all := asSent(st)
	if last := all[len(all)-1]; strings.Contains(last, "furl (session") || !strings.Contains(last, "furl: context") {
		t.Errorf("sent %s", last)
	}
}

// Only a whole message of the user is a command. Text of tools and of the model never
// is, and an answer counts only after a command.
func TestA4HostileCommands(t *testing.T) {
	text := func(role, words string) string {
		return string(mustJSON(map[string]any{"role": role, "content": words}))
	}
	parts := func(role string, words ...string) string {
		var list []any
		for _, w := range words {
			list = append(list, map[string]any{"type": "text", "text": w})
		}
		return string(mustJSON(map[string]any{"role": role, "content": list}))
	}
	const on, answer = "furl: rolling-context on", "furl (session abc): rolling context is on; and so on."
	call := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{}}]}`
	result := func(words string) string {
		return string(mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "t1", "content": words}}}))
	}
	both := string(mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "t1", "content": "x"}, map[string]any{"type": "text", "text": on}}}))
	const reminder = "<system-reminder>\nUse Go.\n</system-reminder>"
	for name, tc := range map[string]struct {
		messages []string
		headers  []string
		bare     bool // the request has no tools
		answered bool
		want     string // the messages that are sent; "": as given
	}{
		"a command":                      {messages: []string{text("user", on)}, answered: true},
		"with reminders":                 {messages: []string{parts("user", reminder, on, reminder)}, answered: true},
		"with a reminder in the text":    {messages: []string{text("user", reminder+"\n"+on)}, answered: true},
		"before a reminder in the text":  {messages: []string{text("user", on+"\n"+reminder)}, answered: true},
		"inside a reminder":              {messages: []string{parts("user", "<system-reminder>x</system-reminder>\n"+on+"\n<system-reminder>y</system-reminder>")}},
		"after a false end":              {messages: []string{parts("user", "<system-reminder>x</system-reminder>\n"+on+"\n</system-reminder>")}},
		"after another text":             {messages: []string{parts("user", "Please.", on)}},
		"more words":                     {messages: []string{text("user", on+" please")}},
		"in a sentence":                  {messages: []string{text("user", "What does "+on+" do?")}},
		"two commands":                   {messages: []string{parts("user", on, on)}},
		"other case":                     {messages: []string{text("user", "furl: rolling-context ON")}},
		"a result":                       {messages: []string{text("user", "Go."), call, result(on)}},
		"without tools":                  {messages: []string{text("user", on)}, bare: true},
		"output as text":                 {messages: []string{text("user", "Go."), text("assistant", "```\ncat notes\n```"), text("user", on)}, bare: true},
		"tools in the history":           {messages: []string{text("user", "Go."), call, result("x"), text("assistant", "Yes."), text("user", on)}, bare: true, answered: true},
		"after another message":          {messages: []string{text("user", "Go."), text("user", on)}},
		"after a result of its own":      {messages: []string{text("user", "Go."), call, result("x"), text("user", on)}},
		"after a reminder of its own":    {messages: []string{text("user", reminder), text("user", on)}, answered: true},
		"after an answer":                {messages: []string{text("user", "Go."), text("assistant", "Yes."), text("user", on)}, answered: true},
		"of claude code's sub-agent":     {messages: []string{text("user", on)}, headers: []string{"X-Claude-Code-Agent-Id", "a1"}},
		"of codex's sub-agent":           {messages: []string{text("user", on)}, headers: []string{"X-Openai-Subagent", "collab_spawn"}},
		"of a thread of the session":     {messages: []string{text("user", on)}, headers: []string{"Session-Id", "s1", "Thread-Id", "t2"}},
		"with a result":                  {messages: []string{text("user", "Go."), call, both}},
		"the model's words":              {messages: []string{text("user", "Go."), text("assistant", on), text("user", "Why?")}},
		"an answer without command":      {messages: []string{text("user", "Go."), text("assistant", answer), text("user", "Why?")}},
		"an answer after a result":       {messages: []string{text("user", "Go."), call, result(on), text("assistant", answer), text("user", "Why?")}},
		"a command without answer":       {messages: []string{text("user", on), text("assistant", "I cannot."), text("user", "Why?")}},
		"answered":                       {messages: []string{text("user", "Go."), text("assistant", "Yes."), text("user", on), text("assistant", answer), text("user", "Why?")}, want: text("user", "Go.") + "," + text("assistant", "Yes.") + "," + text("user", "Why?")},
		"answered at first":              {messages: []string{text("user", on), text("assistant", " "+answer+"\n"), text("user", "Why?")}, want: text("user", "Why?")},
		"answered twice":                 {messages: []string{text("user", on), text("assistant", answer), text("user", on), parts("assistant", answer), text("user", "Why?")}, want: text("user", "Why?")},
		"answered at the end":            {messages: []string{text("user", "Go."), text("user", on), text("assistant", answer), text("user", on), text("assistant", answer)}, want: text("user", "Go.")},
		"answered, with a reminder":      {messages: []string{parts("user", reminder, on), text("assistant", answer), text("user", "Why?")}, want: parts("user", reminder) + "," + text("user", "Why?")},
		"answered, reminder in the text": {messages: []string{text("user", "<system-reminder>x</system-reminder>\n"+on), text("assistant", answer), text("user", "Why?")}, want: `{"content":"<system-reminder>x</system-reminder>","role":"user"},` + text("user", "Why?")},
	} {
		t.Run(name, func(t *testing.T) {
			st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 1})}, &session.Options{Commands: new(true)}, nil)
			body := func(messages string) string {
				tools := `,"tools":[{"name":"bash","input_schema":{"type":"object"}}]`
				if tc.bare {
					tools = ""
				}
				return `{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":[` + messages + `]` + tools + `}`
			}
			given := strings.Join(tc.messages, ",")
			resp, out := st.post(t, "/v1/messages", []byte(body(given)), tc.headers...)
			if resp.StatusCode != 200 {
				t.Fatalf("%d %s", resp.StatusCode, out)
			}
			sent := st.sim.Requests()
			if tc.answered {
				if len(sent) != 0 || !strings.Contains(string(out), "furl (session ") {
					t.Errorf("%d requests sent, answered %s", len(sent), out)
				}
				return
			}
			want := tc.want
			if want == "" {
				want = given
			}
			if len(sent) != 1 || string(sent[0].Body) != body(want) {
				t.Errorf("sent %s\nwant %s", sent[0].Body, body(want))
			}
		})
	}
}

// An answer says why rolling context has no effect, and what to do.
func TestA4CommandWithoutEffect(t *testing.T) {
	for name, tc := range map[string]struct {
		set  map[string]string
		dry  bool
		want string
	}{
		"off for the session": {map[string]string{"context_management_enabled": "off"}, false, "run: furl set "},
		"dry run":             {nil, true, "This is a dry run: requests are sent unchanged."},
	} {
		t.Run(name, func(t *testing.T) {
			st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 1})}, &session.Options{Commands: new(true)}, &gateway.Options{DryRun: tc.dry})
			a := &agent{format: furl.FormatChat, model: "gpt-5"}
			a.say("Go.")
			for a.step(t, st, output) {
			}
			if tc.set != nil {
				in, _ := json.Marshal(tc.set)
				if status, out := st.ask(t, "POST", "/sessions/"+string(st.list(t)[0].Session)+"/settings", string(in)); status != 200 {
					t.Fatal(out)
				}
			}
			if text := a.command(t, st, "/rolling-context on"); !strings.Contains(text, tc.want) {
				t.Errorf("the answer is %q", text)
			}
			if text := a.command(t, st, "/rolling-context"); !strings.Contains(text, "rolling context is on; ") || !strings.Contains(text, "to change it") {
				t.Errorf("the answer is %q", text)
			}
			a.say("And now?")
			a.step(t, st, output)
			all := asSent(st)
			if strings.Contains(all[len(all)-1], "rolling") {
				t.Errorf("sent %s", all[len(all)-1])
			}
		})
	}
}

// Where the provider stores the history, the answer's id is furl's own, and a request
// that continues from it continues from the response before.
func TestA4CommandsWithStoredHistory(t *testing.T) {
	done := sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
		return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindText, Text: "Done."}}}, nil
	})
	st := newFixture(t, &sim.Options{Player: done, NoAuth: true}, &session.Options{Commands: new(true)}, nil)
	ask := func(previous string, input ...string) (status int, id, text string) {
		t.Helper()
		req := map[string]any{"model": "gpt-5", "store": true, "tools": []any{map[string]any{"type": "function", "name": "bash", "parameters": map[string]any{"type": "object"}}}}
		if previous != "" {
			req["previous_response_id"] = previous
		}
		var items []any
		for _, words := range input {
			items = append(items, map[string]any{"role": "user", "content": words})
		}
		req["input"] = items
		resp, out := st.post(t, "/v1/responses", mustJSON(req))
		var got struct{ ID string }
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, got.ID, string(out)
	}
	previousOf := func() string {
		all := st.sim.Requests()
		var got struct {
			Previous string `json:"previous_response_id"`
		}
		if err := json.Unmarshal(all[len(all)-1].Body, &got); err != nil {
			t.Fatal(err)
		}
		return got.Previous
	}
	_, begun, text := ask("", "/rolling-context on")
	if !strings.HasPrefix(begun, "resp_furl") {
		t.Fatal(text)
	}
	status, real, text := ask(begun, "Say hello.")
	if status != 200 || previousOf() != "" {
		t.Fatalf("%d %s, sent %q", status, text, previousOf())
	}
	_, own, text := ask(real, "furl: rolling-context on")
	if !strings.Contains(text, "the provider stores the history") || len(st.sim.Requests()) != 1 {
		t.Fatal(text)
	}
	_, own, text = ask(own, "furl: context")
	if !strings.HasPrefix(own, "resp_furl") {
		t.Fatal(text)
	}
	if status, _, text = ask(own, "And now?"); status != 200 || previousOf() != real {
		t.Fatalf("%d %s, continued from %q", status, text, previousOf())
	}
	if _, id, text := ask(real, "Some words.", "/rolling-context on"); strings.HasPrefix(id, "resp_furl") {
		t.Errorf("the provider would miss a message: %s", text)
	}
	_, lost, _ := ask("", "<environment_context>x</environment_context>", "/rolling-context on")
	if status, _, text := ask(lost, "And now?"); status != 400 || !strings.Contains(text, "previous_response_not_found") {
		t.Errorf("%d %s", status, text)
	}
}

// Counting tokens leaves answered commands out, and answers none.
func TestA4CommandsAreNotCounted(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 1}), NoAuth: true}, &session.Options{Commands: new(true)}, nil)
	count := func(messages string) string {
		_, out := st.post(t, "/v1/messages/count_tokens", []byte(`{"model":"claude-sonnet-4-5","messages":[`+messages+`]}`))
		return string(out)
	}
	const pair, hello = `{"role":"user","content":"/rolling-context on"},{"role":"assistant","content":"furl (session abc): rolling context is on."},`, `{"role":"user","content":"Hello."}`
	if got, want := count(pair+hello), count(hello); got != want || !strings.Contains(got, "input_tokens") {
		t.Errorf("counted %s, want %s", got, want)
	}
	if got := count(`{"role":"user","content":"/rolling-context on"}`); !strings.Contains(got, "input_tokens") {
		t.Error(got)
	}
}
