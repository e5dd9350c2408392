package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// billed is an agent whose instructions start as Claude Code's do: with a line that
// changes with each request.
type billed struct {
	agent
	id       string
	requests int
}

func billingLineOf(id string, request int) string {
	return fmt.Sprintf("x-anthropic-billing-header: cc_version=2.1.332.%.3s; cc_entrypoint=cli; cch=%05x;", id, request*7919)
}

func newBilled(id string) *billed {
	b := &billed{agent: agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5", caches: true}, id: id}
	b.extra = func(body []byte) []byte {
		b.requests++
		system := mustJSON([]any{
			map[string]any{"type": "text", "text": billingLineOf(id, b.requests)},
			map[string]any{"type": "text", "text": "You are Claude Code.", "cache_control": map[string]any{"type": "ephemeral"}},
		})
		return rawjson.WithField(body, "system", system)
	}
	b.say("Look at everything there is: " + id)
	return b
}

func (b *billed) headers(more ...string) []string {
	return append([]string{"X-Claude-Code-Session-Id", b.id}, more...)
}

// sentLine is the first system block of the newest request that the provider got, whose
// other instructions are those of the agent.
func sentLine(t *testing.T, st *fixture) string {
	t.Helper()
	all := st.sim.Requests()
	var body struct{ System []struct{ Text string } }
	if err := json.Unmarshal(all[len(all)-1].Body, &body); err != nil || len(body.System) != 2 || body.System[1].Text != "You are Claude Code." {
		t.Fatalf("instructions %+v: %v", body.System, err)
	}
	return body.System[0].Text
}

// With HoldBilling, a session's first line is sent in all its requests, also after
// reductions, by another gateway of the store and after a restart, and by a fork of the
// client's history. Another session has its own.
func TestHoldBilling(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	o, sess := gateway.Options{HoldBilling: true}, session.Options{Window: 16_000}
	st := newFixtureOn(t, store, &sim.Options{Window: 16_000, Player: sim.NewAgent(&sim.AgentOptions{Steps: 40})}, &sess, &o)
	a, b := newBilled("aaaa1111"), newBilled("bbbb2222")
	for i := range 14 {
		for _, c := range []*billed{a, b} {
			if !c.step(t, st, output, c.headers()...) {
				t.Fatalf("the agent has ended after %d requests", i)
			}
			if got, want := sentLine(t, st), billingLineOf(c.id, 1); got != want {
				t.Fatalf("request %d of session %s was sent with %q, want %q", i+1, c.id, got, want)
			}
		}
		if i%4 == 3 {
			st.begin(t, store, &sess, &o) // another gateway; the next ones alternate
		}
	}
	if infos := st.list(t); len(infos) != 2 {
		t.Errorf("%d sessions, want 2", len(infos))
	}
	s, err := st.sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Reductions()) == 0 {
		t.Error("nothing was reduced")
	}
	bodies := make(map[string]bool)
	for _, e := range st.sim.Requests() {
		bodies[string(e.Body)] = true
	}
	for _, r := range s.Records(0) {
		if _, ok := r.Body.(*furl.Exchange); !ok {
			continue
		}
		if sent, err := s.SentBody(t.Context(), r.Seq); err != nil || !bodies[string(sent)] {
			t.Errorf("record %d does not have the request that was sent: %v", r.Seq, err)
		}
		if came, err := s.ReceivedBody(t.Context(), r.Seq); err != nil || r.Seq > 5 && bytes.Contains(came, []byte(billingLineOf(b.id, 1))) {
			t.Errorf("record %d does not have the request that came: %v", r.Seq, err)
		}
	}
}

// The line is sent as received to Anthropic, by default, in dry runs, and in requests that
// furl does not change.
func TestBillingLinePasses(t *testing.T) {
	for _, tt := range []struct {
		name, vendor string
		o            gateway.Options
		headers      []string
		policy       string
		held         bool
	}{
		{"hold", "", gateway.Options{HoldBilling: true}, nil, "auto", true},
		{"hold under the policy none", "", gateway.Options{HoldBilling: true}, nil, "none", true},
		{"default", "", gateway.Options{}, nil, "auto", false},
		{"Anthropic", upstream.Anthropic, gateway.Options{HoldBilling: true}, nil, "auto", false},
		{"dry runs", "", gateway.Options{HoldBilling: true, DryRun: true}, nil, "auto", false},
		{"a dry run", "", gateway.Options{HoldBilling: true}, []string{"X-Furl-Dry-Run", "true"}, "auto", false},
		{"bypass", "", gateway.Options{HoldBilling: true}, []string{"X-Furl-Bypass", "true"}, "auto", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := inmem.New()
			defer store.Close()
			st := newFixtureOn(t, store, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 9})}, nil, nil)
			st.vendor = tt.vendor
			st.begin(t, store, &session.Options{Policy: tt.policy}, &tt.o)
			a := newBilled("aaaa1111")
			for i := range 3 {
				headers := a.headers()
				if i > 0 {
					headers = a.headers(tt.headers...)
				}
				body := a.body()
				_, answer := st.post(t, a.path(), body, headers...)
				a.take(t, answer, output)
				want := billingLineOf(a.id, i+1)
				if tt.held {
					want = billingLineOf(a.id, 1)
				}
				if got := sentLine(t, st); got != want {
					t.Errorf("request %d was sent with %q, want %q", i, got, want)
				}
				all := st.sim.Requests()
				if sent := all[len(all)-1].Body; !tt.held && !bytes.Equal(sent, body) {
					t.Errorf("request %d was changed", i)
				}
			}
		})
	}
}
