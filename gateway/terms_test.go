package gateway_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// The terms that a response names are recorded, and the request is billed under them.
func TestBilledUnderTerms(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 1})}, nil, nil)
	for i, q := range []struct{ path, fields string }{
		{"/v1/messages", `"model":"claude-opus-5","max_tokens":99,"speed":"fast","inference_geo":"us"`},
		{"/v1/chat/completions", `"model":"gpt-5.5","service_tier":"flex"`},
		{"/v1/responses", `"model":"gpt-5.5","service_tier":"priority","store":false`},
	} {
		list := "messages"
		if q.path == "/v1/responses" {
			list = "input"
		}
		for _, stream := range []string{"false", `true`} {
			body := fmt.Sprintf(`{%s,"stream":%s,%q:[{"role":"user","content":"Question %d %s: %s"}]}`, q.fields, stream, list, i, stream, strings.Repeat("words ", 2000))
			if stream == "true" && q.path == "/v1/chat/completions" {
				body = strings.Replace(body, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
			}
			r, err := http.NewRequest(http.MethodPost, st.front.URL+q.path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("content-type", "application/json")
			r.Header.Set("anthropic-version", "2023-06-01")
			r.Header.Set("anthropic-beta", "fast-mode-2026-02-01")
			r.Header.Set("x-api-key", "k")
			r.Header.Set("authorization", "Bearer k")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Fatalf("%s: %s", q.path, answer)
			}
		}
	}
	terms := make(map[string]int)
	sum := 0.0
	for info, err := range st.sessions.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := st.sessions.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		requests, err := s.Requests()
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range requests {
			terms[fmt.Sprint(q.Terms)]++
			if len(q.Unpriced) > 0 || math.Abs(q.Cost-q.Split.Sum()) > 1e-12 {
				t.Errorf("%+v", q)
			}
		}
		sum += session.TotalsOf(requests).Cost
	}
	for _, want := range []furl.Terms{{Speed: "fast", Geo: "us"}, {Tier: "flex"}, {Tier: "priority"}} {
		if terms[fmt.Sprint(want)] != 2 {
			t.Errorf("%d requests with %+v, want 2: %v", terms[fmt.Sprint(want)], want, terms)
		}
	}
	ledger := ledgerOf(t, st)
	if billed := st.sim.Bill(); billed.Cost == 0 || math.Abs(sum-billed.Cost) > 1e-9 || math.Abs(ledger.Cost-billed.Cost) > 1e-9 {
		t.Errorf("the sessions cost %v, the ledger says %v, the provider billed %v", sum, ledger.Cost, billed.Cost)
	}
}
