package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// fixture is a gateway between a client and a sim.
type fixture struct {
	sim      *sim.Sim
	direct   *httptest.Server // the sim itself
	front    *httptest.Server // the gateway
	vendor   string           // that the gateway takes the sim for; "": a compatible server
	sessions *session.Sessions
	gateway  *gateway.Gateway
}

func newFixture(t testing.TB, so *sim.Options, sess *session.Options, o *gateway.Options) *fixture {
	t.Helper()
	store := inmem.New()
	t.Cleanup(func() { store.Close() })
	return newFixtureOn(t, store, so, sess, o)
}

// newFixtureOn is newFixture on a store that stays the test's.
func newFixtureOn(t testing.TB, store storage.Store, so *sim.Options, sess *session.Options, o *gateway.Options) *fixture {
	t.Helper()
	st := &fixture{}
	so.KeepBodies = true
	st.sim = sim.New(so)
	st.direct = httptest.NewServer(st.sim)
	t.Cleanup(st.direct.Close)
	st.begin(t, store, sess, o)
	return st
}

// begin puts a gateway over a store in front of the sim.
func (st *fixture) begin(t testing.TB, store storage.Store, sess *session.Options, o *gateway.Options) {
	t.Helper()
	var err error
	if st.sessions, err = session.New(store, sess); err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(st.direct.URL, &upstream.Options{Vendor: st.vendor})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	google, err := upstream.New(st.direct.URL, &upstream.Options{Vendor: upstream.Google})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(google.Close)
	if st.gateway, err = gateway.New(st.sessions, gateway.Upstreams{Anthropic: up, OpenAI: up, Gemini: google}, o); err != nil {
		t.Fatal(err)
	}
	st.front = httptest.NewServer(patient{st.gateway})
	t.Cleanup(st.front.Close)
}

// patient is a gateway whose answers end when they are recorded, for tests that
// look into the sessions right after.
type patient struct{ *gateway.Gateway }

func (g patient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer g.Wait(context.WithoutCancel(r.Context()))
	g.Gateway.ServeHTTP(w, r)
}

// post sends a request to the gateway.
func (st *fixture) post(t testing.TB, path string, body []byte, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, st.front.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer planted-secret-key")
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(path, "/v1/messages") {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := st.front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer
}

// agent is a client in one of the formats: it resends its whole history and
// answers every call.
type agent struct {
	format  furl.Format
	stream  bool
	model   string
	history []json.RawMessage
	extra   func(body []byte) []byte // what the client adds; nil: nothing
	done    bool
	caches  bool // its requests ask for cache entries (Anthropic)
}

func (a *agent) path() string {
	return map[furl.Format]string{
		furl.FormatAnthropic: "/v1/messages", furl.FormatChat: "/v1/chat/completions", furl.FormatResponses: "/v1/responses",
	}[a.format]
}

func (a *agent) codec() interface {
	protocol.Codec
	protocol.ReplyCodec
} {
	type both interface {
		protocol.Codec
		protocol.ReplyCodec
	}
	return map[furl.Format]protocol.Codec{
		furl.FormatAnthropic: anthropic.Codec, furl.FormatChat: openai.Chat, furl.FormatResponses: openai.Responses,
	}[a.format].(both)
}

func (a *agent) say(words string) {
	a.history = append(a.history, mustJSON(map[string]any{"role": "user", "content": words}))
}

func (a *agent) body() []byte {
	schema := map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}, "required": []string{"command"}}
	req := map[string]any{"model": a.model, "stream": a.stream}
	switch a.format {
	case furl.FormatAnthropic:
		req["max_tokens"] = 1000
		req["messages"] = a.history
		req["tools"] = []any{map[string]any{"name": "bash", "description": "Run a command.", "input_schema": schema}}
		if a.caches {
			req["cache_control"] = map[string]any{"type": "ephemeral"}
		}
	case furl.FormatChat:
		req["messages"] = a.history
		req["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": "bash", "description": "Run a command.", "parameters": schema}}}
		if a.stream {
			req["stream_options"] = map[string]any{"include_usage": true}
		}
	default:
		req["input"] = a.history
		req["store"] = false
		req["tools"] = []any{map[string]any{"type": "function", "name": "bash", "description": "Run a command.", "parameters": schema}}
	}
	if body := mustJSON(req); a.extra == nil {
		return body
	} else {
		return a.extra(body)
	}
}

// step sends the history and answers the calls of the reply. It reports
// whether the model has called anything.
func (a *agent) step(t testing.TB, st *fixture, result func(call furl.Block) string, headers ...string) bool {
	t.Helper()
	resp, answer := st.post(t, a.path(), a.body(), headers...)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", resp.StatusCode, answer)
	}
	return a.take(t, answer, result)
}

// take adds an answer to the history, and the results of its calls. It reports
// whether there are any.
func (a *agent) take(t testing.TB, answer []byte, result func(call furl.Block) string) bool {
	t.Helper()
	reply := a.understand(t, answer)
	calls := false
	var results []any
	for _, m := range reply.Messages {
		a.history = append(a.history, m.Raw)
		for _, b := range m.Blocks {
			if b.Kind != furl.KindCall {
				continue
			}
			calls = true
			switch a.format {
			case furl.FormatAnthropic:
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": b.ID, "content": result(b)})
			case furl.FormatChat:
				a.history = append(a.history, mustJSON(map[string]any{"role": "tool", "tool_call_id": b.ID, "content": result(b)}))
			default:
				a.history = append(a.history, mustJSON(map[string]any{"type": "function_call_output", "call_id": b.ID, "output": result(b)}))
			}
		}
	}
	if results != nil {
		a.history = append(a.history, mustJSON(map[string]any{"role": "user", "content": results}))
	}
	return calls
}

func (a *agent) understand(t testing.TB, answer []byte) *protocol.Reply {
	t.Helper()
	if !a.stream {
		reply, err := a.codec().DecodeReply(200, answer)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	asm, sc := a.codec().NewAssembler(), new(sse.Scanner)
	for ev, err := range sc.Feed(answer) {
		if err == nil {
			err = asm.Feed(ev.Type, ev.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reply, err := asm.Reply()
	if err != nil || !reply.Complete {
		t.Fatalf("the reply is not whole: %v, %+v", err, reply)
	}
	return reply
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// output is what a command prints: different for each call, and long.
func output(call furl.Block) string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "%s line %d of some output that a command printed, with pkg/file_%d.go in it\n", call.ID, i, i)
	}
	return b.String()
}

// A tool loop far longer than the window ends without a refused request, in
// one session, with everything recorded. X1
func TestLongLoop(t *testing.T) {
	for i, format := range formats {
		for _, stream := range []bool{false, true} {
			if gateway.RaceDetector && stream == (i == 1) {
				continue
			}
			t.Run(fmt.Sprintf("%s stream=%v", format, stream), func(t *testing.T) {
				st := newFixture(t, &sim.Options{Window: 16_000, Player: sim.NewAgent(&sim.AgentOptions{Steps: 40})},
					&session.Options{Window: 16_000}, nil)
				a := newAgent(format, stream)
				steps := 0
				for a.step(t, st, output) {
					if steps++; steps > 60 {
						t.Fatal("the agent does not end")
					}
				}
				st.allOK(t)
				s := st.only(t)
				if len(s.Reductions()) < 3 {
					t.Errorf("%d reductions, want 3 or more", len(s.Reductions()))
				}
				if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("the session: %v %v", problems, err)
				}
				if got := s.Info().Messages; got != len(a.history) {
					t.Logf("%d messages recorded, the client has %d", got, len(a.history))
				}
			})
		}
	}
}
