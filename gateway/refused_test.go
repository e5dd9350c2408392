package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// census lists the sessions of a store with what they hold.
func census(t *testing.T, store storage.Store) string {
	t.Helper()
	all, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&out, info.Session, info.Records, info.Messages, info.Bytes, info.Hint, info.Settings)
	}
	return out.String()
}

// A request that the provider refuses leaves nothing, neither in the store nor
// in memory, whether it would begin a session or go on in one. The same request,
// accepted, is recorded once.
func TestRefusedRequestsLeaveNothing(t *testing.T) {
	for _, status := range []string{"401", "403", "400", "429", "500", "529"} {
		for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
			for _, stream := range []bool{false, true} {
				for _, hint := range []string{"", "conversation-1"} {
					t.Run(fmt.Sprintf("%s %s stream=%v id=%q", status, format, stream, hint), func(t *testing.T) {
						t.Parallel()
						leavesNothing(t, status, &agent{format: format, model: map[bool]string{true: "claude-sonnet-4-5", false: "gpt-5"}[format == furl.FormatAnthropic], stream: stream}, hint)
					})
				}
			}
		}
	}
}

func leavesNothing(t *testing.T, status string, a *agent, hint string) {
	store := inmem.New()
	defer store.Close()
	st := newFixtureOn(t, store, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 3})}, nil, nil)
	var headers []string
	if hint != "" {
		headers = []string{"Session-Id", hint}
	}
	a.say("Look at everything there is.")
	for step := range 3 {
		before := census(t, store)
		stats := st.sessions.Stats()
		for range 2 {
			resp, body := st.post(t, a.path(), a.body(), append(headers, sim.FaultHeader, status)...)
			if fmt.Sprint(resp.StatusCode) != status {
				t.Fatalf("step %d: %d %s", step, resp.StatusCode, body)
			}
			if id := resp.Header.Get("X-Furl-Session"); (id == "") != (step == 0) {
				t.Errorf("step %d: a refusal tells of session %q", step, id)
			}
		}
		if after := census(t, store); after != before {
			t.Errorf("step %d: the store has\n%swant\n%s", step, after, before)
		}
		if now := st.sessions.Stats(); now.Sessions != stats.Sessions || now.Bytes != stats.Bytes {
			t.Errorf("step %d: %d sessions in memory with %d bytes, want %d with %d", step, now.Sessions, now.Bytes, stats.Sessions, stats.Bytes)
		}
		a.step(t, st, output, headers...)
	}
	list := st.list(t)
	if len(list) != 1 {
		t.Fatalf("%d sessions, want 1", len(list))
	}
	s, err := st.sessions.Open(t.Context(), list[0].Session)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Branches()); n != 1 {
		t.Errorf("%d branches, want 1", n)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// What was to be hidden in a request that the provider refuses is hidden in the
// next one that it accepts, and counted once.
func TestRefusedReductionsLeaveNothing(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	st := newFixtureOn(t, store, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 9})}, &session.Options{Policy: "rolling-mask-5"}, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	a.say("Look at everything there is.")
	for range 6 {
		a.step(t, st, output)
	}
	before := census(t, store)
	reductions := func() (n float64) {
		for name, value := range metricsOf(t, st) {
			if strings.HasPrefix(name, "furl_reductions_total") {
				n += value
			}
		}
		return n
	}
	was := reductions()
	for range 3 {
		if resp, _ := st.post(t, a.path(), a.body(), sim.FaultHeader, "429"); resp.StatusCode != 429 || resp.Header.Get("X-Furl-Reductions") != "1" {
			t.Fatalf("%d, %s reductions", resp.StatusCode, resp.Header.Get("X-Furl-Reductions"))
		}
	}
	if after := census(t, store); after != before {
		t.Errorf("the store has\n%swant\n%s", after, before)
	}
	if n := reductions(); n != was {
		t.Errorf("%v reductions are counted, want %v", n, was)
	}
	resp, body := st.post(t, a.path(), a.body())
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Furl-Reductions") != "1" {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if n := reductions(); n != was+1 {
		t.Errorf("%v reductions are counted, want %v", n, was+1)
	}
}

// A client that gives up before it got anything, and asks again, is in one
// session: nothing is recorded of the first request, also if the provider's
// answer had begun without saying anything.
func TestClientsThatGiveUp(t *testing.T) {
	for name, begin := range map[string]string{
		"before the status": "",
		"behind the status": "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			store := inmem.New()
			defer store.Close()
			reached, left := make(chan struct{}), make(chan struct{})
			st := &fixture{sim: sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 3})})}
			st.direct = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Wait") == "" {
					st.sim.ServeHTTP(w, r)
					return
				}
				if begin != "" {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, begin)
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = io.Copy(io.Discard, r.Body) // else nobody sees that the client leaves
				close(reached)
				<-r.Context().Done()
				close(left)
			}))
			t.Cleanup(st.direct.Close)
			st.begin(t, store, nil, nil)
			a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5", stream: true}
			a.say("Look at everything there is.")
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-reached
				cancel()
			}()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, st.front.URL+a.path(), bytes.NewReader(a.body()))
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range []string{"Authorization: Bearer k", "Content-Type: application/json", "Anthropic-Version: 2023-06-01", "X-Wait: 1"} {
				name, value, _ := strings.Cut(h, ": ")
				req.Header.Set(name, value)
			}
			if _, err := st.front.Client().Do(req); err == nil {
				t.Error("the client got an answer")
			}
			<-left
			a.step(t, st, output)
			a.step(t, st, output)
			if got := st.list(t); len(got) != 1 {
				t.Errorf("%d sessions, want 1:\n%s", len(got), census(t, store))
			}
		})
	}
}

// Agents that share an id ask at the same time, and some of their requests are
// refused. The provider gets each request once, and the session has each
// exchange and each message of the agents once.
func TestAgentsThatShareAnID(t *testing.T) {
	for _, policy := range []string{"none", "rolling-mask-5", "auto"} {
		t.Run(policy, func(t *testing.T) {
			st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 30})}, &session.Options{Policy: policy, Window: 8000}, nil)
			st.impatient(t)
			const agents, steps = 5, 8
			var work sync.WaitGroup
			for n := range agents {
				work.Go(func() {
					a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5", stream: n%2 == 0}
					a.say(fmt.Sprintf("Agent %d looks at everything there is.", n))
					for step := range steps {
						if fault := []string{"", "401", "429", "529"}[(n+step)%4]; fault != "" {
							st.post(t, a.path(), a.body(), "Session-Id", "shared", sim.FaultHeader, fault)
						}
						a.step(t, st, output, "Session-Id", "shared")
					}
				})
			}
			work.Wait()
			st.gateway.Wait(t.Context())
			if got, want := len(st.sim.Requests()), agents*steps+agents*steps*3/4; got != want {
				t.Errorf("the provider got %d requests, want %d", got, want)
			}
			list := st.list(t)
			if len(list) != 1 {
				t.Fatalf("%d sessions, want 1", len(list))
			}
			s, err := st.sessions.Open(t.Context(), list[0].Session)
			if err != nil {
				t.Fatal(err)
			}
			if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("%v %v", problems, err)
			}
			exchanges, questions := 0, 0
			for _, r := range s.Records(0) {
				switch b := r.Body.(type) {
				case *furl.Exchange:
					exchanges++
				case *furl.Message:
					if b.Role == furl.RoleUser {
						questions++
					}
				}
			}
			if exchanges != agents*steps || questions != agents*steps {
				t.Errorf("%d exchanges and %d messages of the agents, want %d of both", exchanges, questions, agents*steps)
			}
		})
	}
}
