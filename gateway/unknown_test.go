package gateway_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
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
