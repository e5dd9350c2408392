package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// metricsOf reads a gateway's metrics: each sample by its name and labels as
// they are written.
func metricsOf(t testing.TB, st *fixture) map[string]float64 {
	t.Helper()
	resp, err := st.front.Client().Get(st.front.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := parser.TextToMetricFamilies(bytes.NewReader(text)); err != nil {
		t.Fatalf("this is not Prometheus' format: %v", err)
	}
	out := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		var value float64
		i := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if line[0] == '#' || i < 0 {
			continue
		}
		if _, err := fmt.Sscan(line[i:], &value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out[line[:i]] = value
	}
	return out
}

// work has the built-in agent of the sim work through the gateway.
func work(t testing.TB, url, model string) {
	t.Helper()
	format := furl.FormatAnthropic
	if strings.HasPrefix(model, "gpt") {
		format = furl.FormatResponses
	}
	c := sim.Client{URL: url, Format: format, Model: model, Stream: true}
	if err := c.Say("Look at everything there is."); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Work(t.Context(), output); err != nil {
		t.Fatal(err)
	}
}

// The estimate of what a session would have cost without furl is held against
// the same session without it.
func TestCostMetrics(t *testing.T) {
	steps, policies := 50, []string{"none", "rolling-mask-5", "auto", "sliding-window"}
	if gateway.RaceDetector { // which is to see the paths, not the figures
		steps, policies = 15, []string{"rolling-mask-5"}
	}
	for _, model := range []string{"claude-sonnet-4-5", "gpt-5.2"} {
		for _, policy := range policies {
			t.Run(model+" "+policy, func(t *testing.T) {
				options := func() *sim.Options {
					return &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: steps})}
				}
				so := &session.Options{Policy: policy}
				if policy == "sliding-window" {
					so.Window = 60_000
				}
				st := newFixture(t, options(), so, nil)
				work(t, st.front.URL, model)
				m := metricsOf(t, st)
				direct := newFixture(t, options(), nil, nil)
				work(t, direct.direct.URL, model)

				label := fmt.Sprintf("{model=%q}", model)
				cost, without := m["furl_cost_dollars_total"+label], m["furl_cost_without_dollars_total"+label]
				saved, spent := m["furl_cost_saved_dollars_total"+label], m[`furl_cost_spent_dollars_total{on="rewriting"}`]
				billed, wanted := st.sim.Bill(), direct.sim.Bill()
				if math.Abs(cost-billed.Cost) > 1e-6 {
					t.Errorf("the cost is %f, billed were %f", cost, billed.Cost)
				}
				if math.Abs((without-cost)-(saved-spent)) > 1e-6 {
					t.Errorf("without %f, cost %f: that is not %f saved less %f spent", without, cost, saved, spent)
				}
				if policy == "none" && without != cost {
					t.Errorf("nothing is hidden, and without it the cost would be %f instead of %f", without, cost)
				}
				if ratio := without / wanted.Cost; ratio < 0.95 || ratio > 1.05 {
					t.Errorf("the estimate is %f, without furl it costs %f: %.3f of it", without, wanted.Cost, ratio)
				} else {
					t.Logf("estimated %f, in truth %f; with furl %f", without, wanted.Cost, cost)
				}
				var tokens float64
				for _, kind := range []string{"input", "cache_read", "cache_write", "output"} {
					tokens += m[fmt.Sprintf("furl_tokens_total{kind=%q,model=%q}", kind, model)]
				}
				if want := billed.Usage.Prompt() + billed.Usage.Output; int(tokens) != want {
					t.Errorf("%d tokens are counted, billed were %d", int(tokens), want)
				}
				planned, unexpected := m[`furl_cache_breaks_total{cause="planned"}`], m[`furl_cache_breaks_total{cause="unexpected"}`]
				if (planned == 0) != (policy == "none") || unexpected != 0 {
					t.Errorf("%v planned cache breaks and %v unexpected ones", planned, unexpected)
				}
			})
		}
	}
}

// Metrics say what happened by stage, and no label has what a client made up.
func TestMetrics(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 20, Arguments: func(_ string, step int) []byte { return fmt.Appendf(nil, `{"command":"ls %d"}`, step%8) }})},
		&session.Options{Policy: "rolling-mask-5"}, &gateway.Options{Version: "1.2.3"})
	work(t, st.front.URL, "claude-sonnet-4-5")
	for i := range 5 {
		a := &agent{format: furl.FormatChat, model: fmt.Sprintf("planted-model-%d", i)}
		a.say("Hello.")
		st.post(t, a.path(), a.body())
	}
	st.post(t, "/v1/messages", []byte("this is no request"))
	m := metricsOf(t, st)
	for name, least := range map[string]float64{
		`furl_requests_total{format="anthropic",model="claude-sonnet-4-5",status="2xx"}`: 21,
		`furl_requests_total{format="anthropic",model="other",status="4xx"}`:             1,
		`furl_reductions_total{stage="mask"}`:                                            14,
		`furl_tokens_hidden_total{stage="mask"}`:                                         5000,
		`furl_refetches_total`:                                                           12,
		`furl_requests_undecoded_total`:                                                  1,
		`furl_stage_seconds_count{stage="match"}`:                                        21,
		`furl_stage_seconds_count{stage="plan"}`:                                         21,
		`furl_stage_seconds_count{stage="encode"}`:                                       21,
		`furl_stage_seconds_count{stage="store"}`:                                        21,
		`furl_upstream_first_byte_seconds_count{format="anthropic"}`:                     21,
		`furl_request_seconds_count{format="anthropic"}`:                                 22,
		`furl_build_info{version="1.2.3"}`:                                               1,
		`furl_sessions_in_memory`:                                                        1,
		`furl_sessions_in_memory_bytes`:                                                  10_000,
		`go_goroutines`:                                                                  1,
	} {
		if got := m[name]; got < least {
			t.Errorf("%s is %v, want %v or more", name, got, least)
		}
	}
	for _, name := range []string{"furl_store_errors_total", "furl_exchanges_failed_total", "furl_answers_unread_total", "furl_requests_under_way"} {
		if got, ok := m[name]; got != 0 || !ok {
			t.Errorf("%s is %v", name, got)
		}
	}
	for name := range m {
		if strings.Contains(name, "planted") || strings.Contains(name, "session_id") {
			t.Errorf("%s has what a client made up", name)
		}
	}
}

// A cache that is not used although nothing was changed is told apart from the
// breaks that furl makes.
func TestCacheBreaks(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 30})}, &session.Options{Policy: "none"}, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	marked, system := true, "You help."
	a.extra = func(body []byte) []byte {
		mark := ""
		if marked {
			mark = `"cache_control":{"type":"ephemeral"},`
		}
		return bytes.Replace(body, []byte(`{`), fmt.Appendf(nil, `{%s"system":%q,`, mark, system), 1)
	}
	a.say("Look at everything there is.")
	for range 6 {
		a.step(t, st, output)
	}
	breaks := func(cause string) float64 {
		return metricsOf(t, st)[fmt.Sprintf("furl_cache_breaks_total{cause=%q}", cause)]
	}
	if n := breaks("unexpected") + breaks("preamble"); n != 0 {
		t.Fatalf("%v breaks, none was made", n)
	}
	system = "You help otherwise."
	a.step(t, st, output)
	if n := breaks("preamble"); n != 1 {
		t.Errorf("%v breaks by other instructions, want 1", n)
	}
	a.step(t, st, output)
	marked = false
	a.step(t, st, output)
	if n := breaks("unexpected"); n != 1 {
		t.Errorf("%v unexpected breaks, want 1", n)
	}
	if n := breaks("preamble") + breaks("unexpected"); n != 2 {
		t.Errorf("%v breaks, want 2", n)
	}
}
