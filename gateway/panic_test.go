package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// wrong is a policy that panics with what it has seen.
type wrong struct{ furl.Policy }

func (wrong) Plan(_ context.Context, s *furl.State, _ furl.Budget) (*furl.Plan, error) {
	_, m := s.Message(0)
	panic(m.Blocks[0].Text)
}

func (wrong) Name() string { return "wrong" }

// If furl panics, the request is sent unchanged, and the log names the place of the
// panic but none of its values.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	policies := policy.NewSet()
	policies.AddPolicy(wrong{})
	st := newFixture(t, &sim.Options{}, &session.Options{Policy: "wrong", Policies: policies},
		&gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	a.say("planted words")
	for range 2 {
		a.step(t, st, output)
	}
	for _, r := range st.sim.Requests() {
		if r.Verdict != sim.VerdictOK {
			t.Errorf("request %d: %s", r.N, r.Error)
		}
	}
	if !strings.Contains(log.String(), "wrong.Plan") || strings.Contains(log.String(), "planted words") {
		t.Errorf("the log says\n%s", log.String())
	}
}
