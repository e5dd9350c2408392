package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// The limits in the headers of a provider are in the status, the metrics and the session,
// with the session's share. A credential is never among them.
func TestPlanLimits(t *testing.T) {
	c := newClock()
	simulated := sim.New(&sim.Options{NoAuth: true})
	used := 0.40
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("anthropic-ratelimit-unified-status", "allowed")
		h.Set("anthropic-ratelimit-unified-representative-claim", "five_hour")
		h.Set("anthropic-ratelimit-unified-5h-utilization", fmt.Sprintf("%.2f", used))
		h.Set("anthropic-ratelimit-unified-5h-reset", fmt.Sprint(c.now().Add(2*time.Hour).Unix()))
		h.Set("anthropic-ratelimit-unified-7d-utilization", "0.1")
		h.Set("anthropic-ratelimit-unified-7d-reset", fmt.Sprint(c.now().Add(100*time.Hour).Unix()))
		h.Set("anthropic-organization-id", "6a1b2c3d-org")
		used += 0.03
		simulated.ServeHTTP(w, r)
	}))
	t.Cleanup(provider.Close)
	a := &accessed{store: inmem.New()}
	var err error
	if a.sessions, err = session.New(a.store, &session.Options{Now: c.now}); err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(provider.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	if a.gateway, err = gateway.New(a.sessions, gateway.Upstreams{Anthropic: up}, &gateway.Options{Now: c.now}); err != nil {
		t.Fatal(err)
	}
	a.server = httptest.NewServer(patient{a.gateway})
	t.Cleanup(a.server.Close)
	a.url = a.server.URL

	id := []string{}
	for n, token := range []string{"sk-ant-oat01-first", "sk-ant-oat01-refreshed", "sk-ant-oat01-refreshed"} {
		body := strings.Replace(question, "sails", fmt.Sprint("sails ", n), 1)
		if code, text := a.do(t, "POST", "/v1/messages", body, append([]string{"Authorization", "Bearer " + token}, id...)...); code != 200 {
			t.Fatalf("%d %s", code, text)
		}
		a.gateway.Wait(t.Context())
		for info, err := range a.store.Sessions(t.Context(), "", storage.SessionQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			id = []string{"X-Furl-Session", string(info.Session)}
		}
		c.pass(time.Minute)
	}
	_, text := a.do(t, "GET", "/furl/v1/status", "")
	var st gateway.Status
	if err := json.Unmarshal([]byte(text), &st); err != nil {
		t.Fatal(err)
	}
	if len(st.Plans) != 1 || len(st.Plans[0].Windows) != 2 || st.Plans[0].Windows[0].Used != 0.46 || st.Plans[0].Status != "allowed" || !st.Plans[0].Forecasts["5h"].BeforeReset == (st.Plans[0].Forecasts["5h"].Reached.Before(st.Plans[0].Windows[0].Resets)) {
		t.Errorf("the status is %s", text)
	}
	if strings.Contains(text, "oat01") || strings.Contains(text, "6a1b2c3d") {
		t.Errorf("the status has a credential or an account: %s", text)
	}
	if _, text := a.do(t, "GET", "/metrics", ""); !strings.Contains(text, `furl_plan_used_ratio{provider="`) || !strings.Contains(text, `window="5h"} 0.46`) {
		t.Error("no furl_plan_used_ratio of 0.46 in the metrics")
	}
	var session struct {
		Plan *storage.Plan `json:"plan"`
	}
	_, text = a.do(t, "GET", "/furl/v1/sessions/"+id[1], "")
	if err := json.Unmarshal([]byte(text), &session); err != nil {
		t.Fatal(err)
	}
	if p := session.Plan; p == nil || len(p.Windows) != 2 || p.Windows[0].Name != "5h" || p.Windows[0].Share < 0.059 || p.Windows[0].Share > 0.061 || p.Windows[1].Share != 0 {
		t.Errorf("the session has %s", text)
	}
}
