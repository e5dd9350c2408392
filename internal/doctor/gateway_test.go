package doctor

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/remote"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// patient is a gateway under test.
type patient struct {
	gateway *gateway.Gateway
	server  *httptest.Server
	asked   chan *http.Request // of the provider
}

func newPatient(t *testing.T, provider string, o *gateway.Options) *patient {
	t.Helper()
	p := &patient{asked: make(chan *http.Request, 10)}
	if provider == "" {
		simulated := sim.New(nil)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.asked <- r
			simulated.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.Close)
		provider = srv.URL
	}
	store := inmem.New()
	t.Cleanup(func() { _ = store.Close() })
	all, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(provider, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	if p.gateway, err = gateway.New(all, gateway.Upstreams{Anthropic: up}, o); err != nil {
		t.Fatal(err)
	}
	p.server = httptest.NewServer(p.gateway)
	t.Cleanup(p.server.Close)
	return p
}

// visit checks a gateway with these environment variables.
func visit(t *testing.T, address string, env map[string]string) *gatewayDoctor {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	d := &gatewayDoctor{url: u, http: remote.PlainClient(), now: time.Now, key: env["FURL_KEY"], getenv: func(name string) string { return env[name] }}
	d.examine(t.Context())
	return d
}

// all returns the findings with a state, each after the name of its check.
func (d *gatewayDoctor) all(state string) (list []string) {
	for _, f := range d.findings {
		if f.State == state {
			list = append(list, f.Check+": "+f.Text)
		}
		if f.State != findingFine && f.Cure == "" && f.Check != "streams" {
			list = append(list, f.Check+" has no cure")
		}
	}
	return list
}

func TestDoctorOfGateway(t *testing.T) {
	well := newPatient(t, "", &gateway.Options{Version: workspace.Version()})
	env := map[string]string{"ANTHROPIC_BASE_URL": strings.Replace(well.server.URL, "127.0.0.1", "localhost", 1) + "/v1"}
	d := visit(t, well.server.URL, env)
	if got := append(d.all(findingProblem), d.all(findingWarning)...); len(got) > 0 {
		t.Errorf("findings of a healthy gateway: %q", got)
	}
	for _, check := range []string{"reachable", "version", "ready", "store", "streams", "anthropic", "environment"} {
		if !slices.ContainsFunc(d.findings, func(f Finding) bool { return f.Check == check }) {
			t.Errorf("it has not looked at %s", check)
		}
	}
	r := <-well.asked
	if r.Method != http.MethodHead || r.Header.Get("Authorization")+r.Header.Get("X-Api-Key") != "" || len(well.asked) != 0 {
		t.Errorf("the provider was asked %s with %v, and %d times more", r.Method, r.Header, len(well.asked))
	}
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(d.report()); err != nil {
		t.Error(err)
	}
	var told struct {
		Gateway  string
		Findings []Finding
		Problems int
	}
	if err := json.Unmarshal(out.Bytes(), &told); err != nil || told.Gateway != well.server.URL || len(told.Findings) != len(d.findings) || told.Problems != 0 {
		t.Errorf("as JSON it is %s, %v", out.String(), err)
	}
}

func TestDoctorFindings(t *testing.T) {
	well := newPatient(t, "", &gateway.Options{Version: workspace.Version()})
	keyed := newPatient(t, "", &gateway.Options{Version: workspace.Version(), ClientKeys: []string{"planted-client-key"}})
	draining := newPatient(t, "", &gateway.Options{Version: workspace.Version(), DryRun: true})
	draining.gateway.Drain()
	gone := httptest.NewServer(nil)
	gone.Close()
	lost := newPatient(t, gone.URL, &gateway.Options{Version: "0.0.1"})
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	named := map[string]string{"ANTHROPIC_BASE_URL": well.server.URL}
	for _, tt := range []struct {
		name, address string
		env           map[string]string
		state, want   string
	}{
		{"nothing there", gone.URL, nil, findingProblem, "nothing listens there"},
		{"something else there", other.URL, nil, findingProblem, "unlike furl"},
		{"no key", keyed.server.URL, nil, findingProblem, "requires a key"},
		{"wrong key", keyed.server.URL, map[string]string{"FURL_KEY": "another"}, findingProblem, "requires a key"},
		{"draining", draining.server.URL, nil, findingProblem, "it accepts no requests: draining"},
		{"dry run", draining.server.URL, nil, findingWarning, "hides nothing"},
		{"provider gone", lost.server.URL, nil, findingProblem, ": connection refused, nothing listens there"},
		{"other version", lost.server.URL, nil, findingWarning, "the gateway is 0.0.1"},
		{"nothing set", well.server.URL, nil, findingWarning, "no base URL is set"},
		{"set elsewhere", well.server.URL, map[string]string{"OPENAI_BASE_URL": "https://api.example.com/v1"}, findingWarning, "OPENAI_BASE_URL points to api.example.com"},
		{"other port", well.server.URL, map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, findingWarning, "not to this gateway"},
		{"no address", well.server.URL, map[string]string{"OPENAI_BASE_URL": "localhost"}, findingProblem, "OPENAI_BASE_URL is not a URL"},
		{"proxy", well.server.URL, map[string]string{"HTTP_PROXY": "http://proxy:3128"}, findingWarning, "NO_PROXY does not include 127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := visit(t, tt.address, tt.env)
			if got := d.all(tt.state); !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tt.want) }) || slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, "has no cure") }) {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
			if r := d.report(); r.Problems != len(d.all(findingProblem)) {
				t.Errorf("it has %d problems: %+v", r.Problems, r.Findings)
			}
		})
	}
	if d := visit(t, keyed.server.URL, map[string]string{"FURL_KEY": "planted-client-key", "ANTHROPIC_BASE_URL": keyed.server.URL}); len(d.all(findingProblem)) > 0 {
		t.Errorf("with the key it says %q", d.all(findingProblem))
	}
	if d := visit(t, well.server.URL, map[string]string{"http_proxy": "http://proxy:3128", "no_proxy": "localhost, 127.0.0.1"}); slices.ContainsFunc(d.all(findingWarning), func(s string) bool { return strings.Contains(s, "PROXY") }) {
		t.Errorf("past the proxy it says %q", d.all(findingWarning))
	}
	u, err := url.Parse(well.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	slow := &gatewayDoctor{url: u, http: remote.PlainClient(), now: func() time.Time { return time.Now().Add(time.Hour) }, getenv: func(name string) string { return named[name] }}
	slow.examine(t.Context())
	if got := slow.all(findingWarning); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "clock: ") }) {
		t.Errorf("with a clock an hour off it says %q", got)
	}
}

// A proxy that buffers streams is detected, because their events arrive late.
func TestDoctorOfBufferedStreams(t *testing.T) {
	well := newPatient(t, "", &gateway.Options{Version: workspace.Version()})
	buffering := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), r.Method, well.server.URL+r.URL.Path, nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(body) // furl doctor notices missing data
	}))
	t.Cleanup(buffering.Close)
	d := visit(t, buffering.URL, nil)
	if got := d.all(findingProblem); len(got) != 1 || !strings.Contains(got[0], "buffers streams") {
		t.Errorf("it says %q", got)
	}
}

// Models that are not in the catalogue are reported.
func TestDoctorUnknownModel(t *testing.T) {
	p := newPatient(t, "", nil)
	body := `{"model":"unknown-model","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.server.URL+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	d := visit(t, p.server.URL, nil)
	if !slices.ContainsFunc(d.findings, func(f Finding) bool {
		return f.State == findingWarning && strings.Contains(f.Text, "the context window of 1 model is unknown") && strings.Contains(f.Cure, "--window")
	}) {
		t.Errorf("found %+v", d.findings)
	}
}

// With tenants, a client key gives access to the numbers of its tenant, and the
// operator key to those of all tenants.
func TestDoctorOfTenants(t *testing.T) {
	p := newPatient(t, "", &gateway.Options{Version: workspace.Version(), ClientKeys: []string{"planted-client-key"}, OperatorKeys: []string{"planted-operator-key"}, TenantSecret: []byte("0123456789abcdef")})
	for key, want := range map[string]string{
		"planted-client-key": "store: not checked: with tenants", "planted-operator-key": "store: no errors since",
	} {
		d := visit(t, p.server.URL, map[string]string{"FURL_KEY": key, "ANTHROPIC_BASE_URL": p.server.URL})
		if got := d.all(findingFine); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) || len(d.all(findingProblem)) > 0 {
			t.Errorf("with %s it says %q and %q, want %q", key, got, d.all(findingProblem), want)
		}
		if key == "planted-client-key" && !slices.ContainsFunc(d.all(findingFine), func(s string) bool { return strings.HasPrefix(s, "streams") }) {
			t.Error("a client cannot test streams")
		}
	}
}
