package gateway_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// limited is a gateway with limits, in front of a provider whose replies have the usage of
// requests to it.
type limited struct {
	*accessed
	sim   *sim.Sim
	clock *clock
	log   strings.Builder
}

func newLimited(t testing.TB, store storage.Store, c *clock, l access.Limits, o gateway.Options) *limited {
	t.Helper()
	a := &limited{accessed: &accessed{store: store}, clock: c, sim: sim.New(&sim.Options{NoAuth: true})}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.seen = append(a.seen, r.Clone(r.Context()))
		a.mu.Unlock()
		a.sim.ServeHTTP(w, r)
	}))
	t.Cleanup(provider.Close)
	var err error
	if a.sessions, err = session.New(store, &session.Options{Now: c.now}); err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(provider.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	o.Now, o.Limits = c.now, &gateway.LimitSet{Default: l}
	var mu sync.Mutex
	o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return a.log.Write(p)
	}), nil))
	if a.gateway, err = gateway.New(a.sessions, gateway.Upstreams{Anthropic: up, OpenAI: up}, &o); err != nil {
		t.Fatal(err)
	}
	a.server = httptest.NewUnstartedServer(patient{a.gateway})
	a.server.Start()
	t.Cleanup(a.server.Close)
	a.url = a.server.URL
	return a
}

// status returns the response of the API's status.
func (a *limited) status(t testing.TB, headers ...string) string {
	t.Helper()
	_, text := a.do(t, "GET", "/furl/v1/status", "", headers...)
	return text
}

// stored is the number of sessions and of records in them.
func (a *limited) stored(t testing.TB, tenant furl.Tenant) (sessions int, records furl.Seq, spent float64) {
	t.Helper()
	a.gateway.Wait(t.Context())
	for info, err := range a.store.Sessions(t.Context(), tenant, storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		sessions++
		records += info.Records
		spent += info.Ledger.Total().Spent()
	}
	return sessions, records, spent
}

// only returns the id of the only session.
func (a *limited) only(t testing.TB) (id string) {
	t.Helper()
	for info, err := range a.store.Sessions(t.Context(), "", storage.SessionQuery{}) {
		if err != nil || id != "" {
			t.Fatalf("sessions %s and %s, %v", id, info.Session, err)
		}
		id = string(info.Session)
	}
	return id
}

// In each API, streamed or not, a request beyond a limit gets a 400 in the provider's form
// that names the limit, the amount and the cure. It is neither sent nor recorded.
func TestSpendingLimits(t *testing.T) {
	tools := `"tools":[{"name":"ls","description":"lists","input_schema":{"type":"object"}}],`
	bodies := map[string]func(n int, stream bool) string{
		"/v1/messages": func(n int, stream bool) string {
			return fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":100,"stream":%v,%s"system":"Working directory: /srv/boats","messages":[{"role":"user","content":"Tell me of sail %d."}]}`, stream, tools, n)
		},
		"/v1/chat/completions": func(n int, stream bool) string {
			return fmt.Sprintf(`{"model":"gpt-5","stream":%v,%s"messages":[{"role":"system","content":"Working directory: /srv/boats"},{"role":"user","content":"Tell me of sail %d."}]}`, stream, map[bool]string{true: `"stream_options":{"include_usage":true},`}[stream], n)
		},
		"/v1/responses": func(n int, stream bool) string {
			return fmt.Sprintf(`{"model":"gpt-5","stream":%v,"store":false,"instructions":"Working directory: /srv/boats","input":[{"role":"user","content":"Tell me of sail %d."}]}`, stream, n)
		},
	}
	for path, body := range bodies {
		for _, stream := range []bool{false, true} {
			for name, l := range map[string]access.Limits{
				"dollars_per_day": {DollarsPerDay: 1e-6}, "dollars_per_project_day": {DollarsPerProjectDay: 1e-6},
				"dollars_per_session": {DollarsPerSession: 1e-6}, "tokens_per_session": {TokensPerSession: 3},
			} {
				t.Run(fmt.Sprint(path, stream, name), func(t *testing.T) {
					a := newLimited(t, inmem.New(), newClock(), l, gateway.Options{})
					perSession := strings.HasSuffix(name, "session")
					if code, text := a.do(t, "POST", path, body(0, stream)); code != 200 {
						t.Fatalf("%d %s", code, text)
					}
					sessions, records, spent := a.stored(t, "")
					if sessions != 1 || spent <= 0 {
						t.Fatalf("%d sessions, $%v", sessions, spent)
					}
					var headers []string
					if perSession {
						headers = []string{"X-Furl-Session", a.only(t)}
					}
					typ := map[bool]string{true: "billing_error", false: "invalid_request_error"}[path == "/v1/messages"]
					code, text := a.do(t, "POST", path, body(1, stream), headers...)
					if code != 400 || !strings.Contains(text, "spending limit reached") || !strings.Contains(text, "gateway.limits."+name) || !strings.Contains(text, `"type":"`+typ+`"`) {
						t.Fatalf("%d %s", code, text)
					}
					if now, recs, _ := a.stored(t, ""); now != sessions || recs != records || len(a.seen) != 1 {
						t.Errorf("the refused request has left %d sessions, %d records (before %d), and %d requests were sent", now, recs, records, len(a.seen))
					}
					if !strings.Contains(a.log.String(), "spending limit reached") {
						t.Errorf("the log is %s", a.log.String())
					}
					code, text = a.do(t, "GET", "/metrics", "")
					if want := fmt.Sprintf(`furl_requests_limited_total{limit=%q} 1`, name); code != 200 || !strings.Contains(text, want) {
						t.Errorf("no %s in the metrics", want)
					}
					if st := a.status(t); !strings.Contains(st, `"limits":{"`+name) || !strings.Contains(st, `"today":`) || strings.Contains(st, `"near":[{"limit":"`+name) == perSession {
						t.Errorf("the status is %s", st)
					}
					if perSession { // another session is not affected
						if code, text := a.do(t, "POST", path, body(7, stream)); code != 200 {
							t.Errorf("another session: %d %s", code, text)
						}
						return
					}
					a.clock.pass(16 * time.Hour) // the next day
					if code, text := a.do(t, "POST", path, body(2, stream)); code != 200 {
						t.Errorf("the next day: %d %s", code, text)
					}
				})
			}
		}
	}
}

// A limit that is used by 80% is logged once.
func TestSpendingWarning(t *testing.T) {
	probe := newLimited(t, inmem.New(), newClock(), access.Limits{}, gateway.Options{})
	probe.do(t, "POST", "/v1/messages", question)
	_, _, one := probe.stored(t, "")
	a := newLimited(t, inmem.New(), newClock(), access.Limits{DollarsPerDay: one * 10}, gateway.Options{})
	for n := range 10 {
		code, text := a.do(t, "POST", "/v1/messages", strings.Replace(question, "sails", fmt.Sprintf("sails %d", n), 1))
		a.gateway.Wait(t.Context())
		if code != 200 {
			if n < 8 || code != 400 {
				t.Errorf("request %d: %d %s", n, code, text)
			}
			break
		}
	}
	if n := strings.Count(a.log.String(), "nearly reached"); n != 1 {
		t.Errorf("%d warnings in %s", n, a.log.String())
	}
	if st := a.status(t); !strings.Contains(st, `"near":[{"limit":"dollars_per_day"`) {
		t.Errorf("the status is %s", st)
	}
}

// Gateways on one store share the sums: what one has recorded counts at the others within
// 10 seconds.
func TestSpendingOfTheFleet(t *testing.T) {
	store, c := inmem.New(), newClock()
	l := access.Limits{DollarsPerDay: 1e-6}
	a, b := newLimited(t, store, c, l, gateway.Options{}), newLimited(t, store, c, l, gateway.Options{})
	b.status(t) // it has read the store
	if code, text := a.do(t, "POST", "/v1/messages", question); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	a.gateway.Wait(t.Context())
	c.pass(10 * time.Second)
	if code, text := b.do(t, "POST", "/v1/messages", strings.Replace(question, "sails", "masts", 1)); code != 400 {
		t.Fatalf("%d %s", code, text)
	}
	// A restarted gateway knows the sums.
	if code, text := newLimited(t, store, c, l, gateway.Options{}).do(t, "POST", "/v1/messages", question); code != 400 {
		t.Fatalf("%d %s", code, text)
	}
}

// Each client key has its own sums with tenants. Other limits for a tenant replace the
// default.
func TestSpendingPerKey(t *testing.T) {
	ann, annKey := key(t, "ann", "", access.Client, time.Time{})
	bob, bobKey := key(t, "bob", "", access.Client, time.Time{})
	c := newClock()
	ann.Created, bob.Created = c.now(), c.now()
	a := newLimited(t, inmem.New(), c, access.Limits{DollarsPerDay: 1e-6}, gateway.Options{Keys: access.NewKeys([]access.Key{ann, bob}), TenantSecret: []byte("0123456789abcdef")})
	for _, k := range []string{annKey, bobKey} {
		for n, want := range []int{200, 400} {
			if code, text := a.do(t, "POST", "/v1/messages", strings.Replace(question, "sails", fmt.Sprint("sails ", n), 1), "X-Furl-Key", k); code != want {
				t.Errorf("request %d: %d %s", n, code, text)
			}
			a.gateway.Wait(t.Context())
		}
	}
	if st := a.status(t, "X-Furl-Key", annKey); !strings.Contains(st, `"tenant":"ann"`) || strings.Contains(st, "bob") {
		t.Errorf("the status is %s", st)
	}
}

// Requests that are not recorded count: titles and those with X-Furl-Bypass. So do
// sub-agents, for the session that has started them.
func TestSpendingAside(t *testing.T) {
	title := `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Title for: sails"}]}`
	first := strings.Replace(question, `"max_tokens"`, `"tools":[{"name":"ls","description":"lists","input_schema":{"type":"object"}}],"max_tokens"`, 1)
	hint := []string{"X-Claude-Code-Session-Id", "5f0e61a6-1dd8-4c4b-8d5c-2f3a67a0c111"}
	for name, tt := range map[string]struct {
		limits  access.Limits
		body    string
		headers []string
	}{
		"title, day":     {access.Limits{DollarsPerDay: 1e-6}, title, hint},
		"title, session": {access.Limits{TokensPerSession: 3}, title, hint},
		"bypass, day":    {access.Limits{DollarsPerDay: 1e-6}, first, append([]string{"X-Furl-Bypass", "true"}, hint...)},
		"sub-agent":      {access.Limits{DollarsPerSession: 1e-6}, first, append([]string{"X-Claude-Code-Agent-Id", "a1"}, hint...)},
		"of another":     {access.Limits{DollarsPerSession: 1e-6}, first, []string{"X-Claude-Code-Session-Id", "another"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newLimited(t, inmem.New(), newClock(), tt.limits, gateway.Options{})
			if code, text := a.do(t, "POST", "/v1/messages", tt.body, tt.headers...); code != 200 {
				t.Fatalf("%d %s", code, text)
			}
			a.gateway.Wait(t.Context())
			want := map[bool]int{true: 400, false: 200}[name != "of another"]
			for _, agent := range []string{"", "a2"} {
				headers := append([]string{"X-Claude-Code-Agent-Id", agent}, hint...)
				if code, text := a.do(t, "POST", "/v1/messages", strings.Replace(first, "sails", "masts "+agent, 1), headers...); code != want {
					t.Errorf("agent %q: %d %s", agent, code, text)
				}
				want = 400
				a.gateway.Wait(t.Context())
			}
		})
	}
}

// Requests that are sent at once while the limit is not reached are completed, and none
// is sent after that.
func TestSpendingUnderWay(t *testing.T) {
	a := newLimited(t, inmem.New(), newClock(), access.Limits{DollarsPerDay: 1e-6}, gateway.Options{})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			if code, text := a.do(t, "POST", "/v1/messages", strings.Replace(question, "sails", fmt.Sprint("sails ", n), 1)); code != 200 && code != 400 {
				t.Errorf("%d %s", code, text)
			}
		})
	}
	wg.Wait()
	a.gateway.Wait(t.Context())
	sent := len(a.seen)
	for n := range 3 {
		if code, _ := a.do(t, "POST", "/v1/messages", strings.Replace(question, "sails", fmt.Sprint("masts ", n), 1)); code != 400 {
			t.Errorf("%d", code)
		}
	}
	if len(a.seen) != sent {
		t.Errorf("%d requests were sent after the limit", len(a.seen)-sent)
	}
}
