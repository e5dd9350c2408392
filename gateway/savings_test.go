package gateway_test

import (
	"math"
	"testing"

	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// ledgerOf sums up the ledgers of all sessions of a fixture.
func ledgerOf(t testing.TB, st *fixture) (sum storage.Savings) {
	t.Helper()
	for info, err := range st.sessions.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(info.Ledger.Total())
	}
	return sum
}

// The session's ledger has what the metrics count. A request that would have exceeded
// the window without furl is counted, and nothing is compared with a prompt that the
// provider would refuse.
func TestSavingsOverTheWindow(t *testing.T) {
	const window = 12_000 // of the provider, which furl learns from its refusal
	st := newFixture(t, &sim.Options{Window: window, Player: sim.NewAgent(&sim.AgentOptions{Steps: 40})}, &session.Options{Policy: "auto"}, nil)
	work(t, st.front.URL, "claude-sonnet-4-5")
	got, m := ledgerOf(t, st), metricsOf(t, st)
	if got.Requests != 41 || got.OverWindow < 10 || got.Unpriced != 0 {
		t.Fatalf("the ledger is %+v, want 41 requests with known prices, some of them over the window", got)
	}
	if float64(got.OverWindow) != m["furl_requests_beyond_window_total"] {
		t.Errorf("%d requests over the window, the metrics have %v", got.OverWindow, m["furl_requests_beyond_window_total"])
	}
	direct := unlimited(t, 40)
	if most := got.TokensWithout + got.TokensSpread; got.TokensSpread <= 0 || most > 41*window || 2*most > direct.Usage.Prompt() {
		t.Errorf("%+v: without furl up to %d tokens, in 41 requests with a window of %d", got, most, window)
	}
	if most := got.CostWithout + got.CostSpread; max(got.CostWithout, most) >= direct.Cost || min(got.CostWithout, most) < got.Cost/2 {
		t.Errorf("%+v; with a larger window it costs %v for %d tokens", got, direct.Cost, direct.Usage.Prompt())
	}
	label := `{model="claude-sonnet-4-5"}`
	if billed := st.sim.Bill(); math.Abs(got.Cost-billed.Cost) > 1e-9 || math.Abs(got.Cost-m["furl_cost_dollars_total"+label]) > 1e-9 || got.Tokens != billed.Usage.Prompt() {
		t.Errorf("%+v, billed were %v for %d tokens", got, billed.Cost, billed.Usage.Prompt())
	}
	if want := m["furl_cost_without_dollars_total"+label]; math.Abs(got.CostWithout-want) > 1e-9 {
		t.Errorf("without furl %v, the metrics have %v", got.CostWithout, want)
	}
	var recorded storage.Savings
	for _, s := range st.sessions.Stats().Savings {
		recorded.Add(s)
	}
	if recorded.Requests != got.Requests || recorded.Tokens != got.Tokens {
		t.Errorf("the process has recorded %+v", recorded)
	}
}

// The ledger tells the size of the context and what is hidden as furl context does.
func TestLedgerAgreesWithContext(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 30})}, &session.Options{Policy: "rolling-mask-5"}, nil)
	work(t, st.front.URL, "claude-sonnet-4-5")
	for info, err := range st.sessions.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		st.sessions.Drop()
		s, err := st.sessions.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		u := s.Context("")
		if diff := math.Abs(float64(u.Size - info.Ledger.Size)); diff > 0.01*float64(u.Size) || u.Hidden == 0 {
			t.Errorf("the context has %d tokens, the ledger says %d", u.Size, info.Ledger.Size)
		}
		if diff := math.Abs(float64(u.Hidden - info.Ledger.Hidden)); diff > 0.01*float64(u.Hidden) {
			t.Errorf("%d tokens are hidden, the ledger says %d", u.Hidden, info.Ledger.Hidden)
		}
		fork, err := st.sessions.Fork(t.Context(), s, s.Head())
		if err != nil || fork.Meta().Ledger != nil {
			t.Errorf("a copy has the ledger %+v, %v: its requests would count twice", fork.Meta().Ledger, err)
		}
	}
}

// unlimited is the bill of the same session without furl and with a large window.
func unlimited(t testing.TB, steps int) sim.Bill {
	t.Helper()
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: steps})}, nil, nil)
	work(t, st.direct.URL, "claude-sonnet-4-5")
	return st.sim.Bill()
}

// The API tells what was saved, and a tenant sees its own sessions only.
func TestSavingsAPI(t *testing.T) {
	st, _ := looped(t, nil)
	sum := ledgerOf(t, st)
	for _, path := range []string{"/savings", "/savings?since=7d"} {
		status, out := st.ask(t, "GET", path, "")
		total, _ := out["total"].(map[string]any)
		if status != 200 || total["requests"] != float64(sum.Requests) || total["tokens_without"] != float64(sum.TokensWithout) || total["tokens_saved"] != float64(sum.SavedTokens()) || sum.Requests == 0 {
			t.Errorf("%s: %d %v, want %+v", path, status, out, sum)
		}
		days, _ := out["days"].([]any)
		if len(days) != 1 {
			t.Errorf("%s: %v, want one line", path, out["days"])
		}
	}
	if _, out := st.ask(t, "GET", "/savings?since=2999-01-01", ""); len(out["days"].([]any)) != 0 {
		t.Errorf("days from a date in the future on: %v", out)
	}
	for _, since := range []string{"soon", "d", "-1d", "2026-13-01"} {
		if status, out := st.ask(t, "GET", "/savings?since="+since, ""); status != 400 {
			t.Errorf("since=%s: %d %v", since, status, out)
		}
	}
}
