package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// client is how an agent speaks of its sessions; docs/internals/matching.md has the same
// table in words.
type client struct {
	name    string
	format  furl.Format
	headers func(id string) []string
	fields  func(id string) map[string]any
}

var clients = []client{
	{"claude", furl.FormatAnthropic, func(string) []string { return []string{"User-Agent", "claude-cli/2.0.0 (external, cli)"} },
		func(id string) map[string]any {
			return map[string]any{"metadata": map[string]any{"user_id": "user_0a1b_account__session_" + id}}
		}},
	{"codex", furl.FormatResponses, func(id string) []string {
		return []string{"Session-Id", id, "Thread-Id", id, "X-Codex-Turn-Metadata", `{"session_id":"` + id + `","request_kind":"turn"}`}
	}, func(id string) map[string]any { return map[string]any{"prompt_cache_key": id} }},
	{"opencode", furl.FormatChat, func(id string) []string {
		return []string{"X-Session-Id", "ses_" + id, "X-Session-Affinity", "ses_" + id}
	}, nil},
	{"pi-responses", furl.FormatResponses, func(id string) []string { return []string{"Session_id", id} }, func(id string) map[string]any { return map[string]any{"prompt_cache_key": id} }},
	{"pi-chat", furl.FormatChat, nil, nil},
	{"sdk", furl.FormatAnthropic, nil, nil},
}

func (c *client) agent(st *fixture) *agent {
	a := &agent{format: c.format, model: "claude-sonnet-4-5"}
	if c.format != furl.FormatAnthropic {
		a.model = "gpt-5"
	}
	a.say("Look at everything there is.")
	return a
}

func (c *client) of(id string) []string {
	if c.headers == nil {
		return nil
	}
	return c.headers(id)
}

// with adds the client's own fields to a body.
func (c *client) with(body []byte, id string) []byte {
	if c.fields == nil {
		return body
	}
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		panic(err)
	}
	maps.Copy(m, c.fields(id))
	return mustJSON(m)
}

func (st *fixture) list(t testing.TB) (infos []storage.SessionInfo) {
	t.Helper()
	for info, err := range st.sessions.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
	}
	return infos
}

// Two sessions of one client that begin alike stay two, each whole, whatever
// the client says about them.
func TestClients(t *testing.T) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 3}), AnyField: true}, nil, nil)
			agents := map[string]*agent{"11111111-aaaa": c.agent(st), "22222222-bbbb": c.agent(st)}
			for step := range 5 {
				for _, id := range []string{"11111111-aaaa", "22222222-bbbb"} {
					a := agents[id]
					a.extra = func(body []byte) []byte { return c.with(body, id) }
					if !a.done {
						a.done = !a.step(t, st, func(b furl.Block) string { return fmt.Sprint(id, " result of step ", step) }, c.of(id)...)
					}
				}
			}
			infos := st.list(t)
			if len(infos) != 2 {
				t.Fatalf("%d sessions, want 2: %+v", len(infos), infos)
			}
			for _, info := range infos {
				s, err := st.sessions.Open(t.Context(), info.Session)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(s.Branches()); n != 1 {
					t.Errorf("session %s has %d branches", info.Session, n)
				}
				if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("session %s: %v %v", info.Session, problems, err)
				}
			}
		})
	}
}

// A title that a client asks for under the id of a session, and a request that
// it asks to be left alone, are in no transcript.
func TestAside(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 2})}, nil, nil)
	c := clients[2]
	a := c.agent(st)
	a.step(t, st, output, c.of("x")...)
	title := mustJSON(map[string]any{"model": "gpt-5", "messages": []any{
		map[string]any{"role": "system", "content": "You write titles."}, map[string]any{"role": "user", "content": "Look at everything there is."},
	}})
	resp, _ := st.post(t, "/v1/chat/completions", title, c.of("x")...)
	if resp.StatusCode != 200 || resp.Header.Get("X-Furl-Session") != "" {
		t.Errorf("a title: %d, session %q", resp.StatusCode, resp.Header.Get("X-Furl-Session"))
	}
	resp, _ = st.post(t, "/v1/chat/completions", a.body(), "X-Furl-Bypass", "true")
	if resp.StatusCode != 200 || resp.Header.Get("X-Furl-Session") != "" {
		t.Errorf("a bypass: %d, session %q", resp.StatusCode, resp.Header.Get("X-Furl-Session"))
	}
	a.step(t, st, output, c.of("x")...)
	infos := st.list(t)
	if len(infos) != 1 {
		t.Fatalf("%d sessions, want 1", len(infos))
	}
	s, err := st.sessions.Open(t.Context(), infos[0].Session)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Branches()) != 1 {
		t.Errorf("%d branches, want 1", len(s.Branches()))
	}
}

// A retry records nothing twice, and an explicit session binds.
func TestRetryAndSessionHeader(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 9})}, nil, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	a.say("Look at everything there is.")
	a.step(t, st, output, "X-Furl-Session", "mine")
	before := st.list(t)[0]
	for range 3 {
		resp, body := st.post(t, a.path(), a.body(), "X-Furl-Session", "mine")
		if resp.StatusCode != 200 || resp.Header.Get("X-Furl-Session") != "mine" {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	s, err := st.sessions.Open(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	users := 0
	for _, r := range s.Records(before.Records) {
		if m, ok := r.Body.(*furl.Message); ok && m.Role == furl.RoleUser {
			users++
		}
	}
	if users > 1 {
		t.Errorf("the result was recorded %d times", users)
	}
	if n := len(st.list(t)); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}

// What counts tokens is answered for what would really be sent, and leaves no
// trace.
func TestCountTokens(t *testing.T) {
	st, id := looped(t, nil)
	s, err := st.sessions.Open(t.Context(), furl.SessionID(id))
	if err != nil {
		t.Fatal(err)
	}
	head, n := s.Head(), len(st.list(t))
	var history []json.RawMessage
	for _, r := range s.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			history = append(history, m.Raw)
		}
	}
	body := mustJSON(map[string]any{"model": "claude-sonnet-4-5", "messages": history[:len(history)-1]})
	resp, answer := st.post(t, "/v1/messages/count_tokens", body)
	var through, direct struct {
		Tokens int `json:"input_tokens"`
	}
	if err := json.Unmarshal(answer, &through); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	if err := json.Unmarshal(fetch(t, st.direct, "/v1/messages/count_tokens", body).body, &direct); err != nil {
		t.Fatal(err)
	}
	if through.Tokens >= direct.Tokens || through.Tokens > 16_000 {
		t.Errorf("%d tokens through furl, %d directly", through.Tokens, direct.Tokens)
	}
	st.post(t, "/v1/messages/count_tokens", []byte(`{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"a file"}]}`))
	if s.Head() != head || len(st.list(t)) != n {
		t.Error("counting left a trace")
	}
}

// Whatever is not a request to a model goes through as it is.
func TestPassThrough(t *testing.T) {
	st := newFixture(t, &sim.Options{}, nil, &gateway.Options{})
	for path, at := range map[string]string{
		"/v1/models": "/v1/models", "/v1/messages/batches": "/v1/messages/batches", "/nothing?x=1": "/nothing?x=1",
		"/anthropic/v1/models": "/v1/models", "/openai/v1/embeddings": "/v1/embeddings",
	} {
		want, have := fetch(t, st.direct, at, []byte(`{}`)), fetch(t, st.front, path, []byte(`{}`))
		if want.status != have.status || !bytes.Equal(strip(want.body), strip(have.body)) {
			t.Errorf("%s: %d %s, want %d %s", path, have.status, have.body, want.status, want.body)
		}
	}
	// What cannot be read is the provider's to refuse.
	for _, body := range []string{"", "{", `{"messages":7}`, "\x00"} {
		want, have := fetch(t, st.direct, "/v1/messages", []byte(body)), fetch(t, st.front, "/v1/messages", []byte(body))
		if want.status != have.status || !bytes.Equal(strip(want.body), strip(have.body)) {
			t.Errorf("%q: %d %s, want %d %s", body, have.status, have.body, want.status, want.body)
		}
	}
}

// strip takes the request's id out of an error.
func strip(b []byte) []byte {
	before, _, ok := bytes.Cut(b, []byte(`"request_id"`))
	if !ok {
		return b
	}
	return before
}
