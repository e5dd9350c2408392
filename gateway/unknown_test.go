package gateway_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// A model that the catalogue does not have: that nothing is hidden is said, once
// in the log, until the provider says how large its window is.
func TestUnknownModel(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	st := newFixture(t, &sim.Options{Window: 12_000, Models: sim.Only(furl.Model{ID: "somebody-s-own", Window: 12_000, Format: furl.FormatChat}), Player: sim.NewAgent(&sim.AgentOptions{Steps: 40})},
		&session.Options{Policy: "sliding-window", Logger: logger}, nil)
	a := &agent{format: furl.FormatChat, model: "somebody-s-own"}
	a.say("Look at everything there is.")
	status := func() (n float64) {
		_, out := st.ask(t, http.MethodGet, "/status", "")
		n, _ = out["unknown_windows"].(float64)
		return n
	}
	notes := 0
	for range 4 {
		resp, answer := st.post(t, a.path(), a.body())
		if strings.HasPrefix(resp.Header.Get("X-Furl-Note"), "unknown context window of somebody-s-own") {
			notes++
		}
		a.take(t, answer, few)
	}
	if notes != 4 || strings.Count(log.String(), "unknown context window of model") != 1 || status() != 1 {
		t.Fatalf("%d notes, %v in the status, the log:\n%s", notes, status(), &log)
	}
	for len(st.only(t).Reductions()) == 0 {
		if !a.step(t, st, output) {
			t.Fatal("nothing was hidden")
		}
	}
	if n := status(); n != 0 {
		t.Errorf("the provider has said it, and %v are not known", n)
	}
}

// The log takes no more of a model's name than a name has.
func TestLongModelName(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	st := newFixture(t, &sim.Options{}, &session.Options{Logger: logger}, nil)
	st.post(t, "/v1/messages", []byte(`{"model":"`+strings.Repeat("m", 100_000)+`","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`))
	if n := log.Len(); n == 0 || n > 1000 {
		t.Errorf("the log has %d bytes, want a line", n)
	}
}

// A model that the catalogue lacks takes the rules of its family: if that binds thinking to
// the prompt before it, no request is refused. It is said once for each session, and once
// in the log.
func TestAssumedModel(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	real, _ := catalog.Default().Lookup("claude-fable-5-2")
	const name = "claude-fable-5-9"
	real.ID = name
	st := newFixture(t, &sim.Options{Models: sim.Only(real), Player: sim.NewAgent(&sim.AgentOptions{Steps: 1000, Thinking: 25})},
		&session.Options{Window: 9_000, Policy: "rolling-mask-5", Logger: logger}, nil)
	notes := 0
	c := sim.Client{
		HTTP: &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err == nil && strings.Contains(resp.Header.Get("X-Furl-Note"), "model "+name+" is not in the catalogue: it is assumed to be like claude-fable-5-2") {
				notes++
			}
			return resp, err
		})},
		URL: st.front.URL, Format: furl.FormatAnthropic, Model: name,
		Fields: map[string]any{"max_tokens": 2000, "thinking": map[string]string{"type": "adaptive"}},
	}
	if err := c.Say("Read all the files and report."); err != nil {
		t.Fatal(err)
	}
	sendSteps(t, &c, 0, 40)
	if b := st.sim.Bill(); b.Refused != 0 || b.ThinkingDropped != 0 || len(st.only(t).Reductions()) == 0 {
		t.Errorf("%d refused, %d thinking blocks were left to the provider to drop, %d reductions", b.Refused, b.ThinkingDropped, len(st.only(t).Reductions()))
	}
	_, out := st.ask(t, http.MethodGet, "/status", "")
	if notes != 1 || strings.Count(log.String(), "rules of its family are assumed") != 1 || out["assumed_models"] != 1.0 || out["unknown_windows"] != 0.0 {
		t.Errorf("%d notes, the status %v, the log:\n%s", notes, out, &log)
	}
}
