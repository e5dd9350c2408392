package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// Keys that clients and operators show.
const (
	keyAnn, keyBob = "planted-key-ann", "planted-key-bob"
	operatorKey    = "planted-operator-key"
	dummy          = "EMPTY" // what many users show to a provider that asks for no key
	companyKey     = "sk-planted-company"
	oauthToken     = "sk-ant-oat01-planted"
	googleToken    = "ya29.planted"
)

// jwt is a JSON Web Token with these claims.
func jwt(claims string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"RS256"}`)) + "." + enc([]byte(claims)) + "." + enc([]byte("signature"))
}

// identity is what a request shows.
type identity struct {
	key        string // in X-Furl-Key
	place      string // of the credential: a header, "?key=", or "" for none
	credential string
}

func (id identity) String() string {
	return fmt.Sprintf("X-Furl-Key=%q %s=%q", id.key, id.place, id.credential)
}

// send sends a request that shows the identity.
func (id identity) send(t testing.TB, method, url string, body []byte) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	if id.key != "" {
		req.Header.Set("X-Furl-Key", id.key)
	}
	switch id.place {
	case "":
	case "?key=":
		query := req.URL.Query()
		query.Set("key", id.credential)
		req.URL.RawQuery = query.Encode()
	case "Authorization":
		req.Header.Set(id.place, "Bearer "+id.credential)
	default:
		req.Header.Set(id.place, id.credential)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer
}

// format is that of a provider which takes the credential: Google's host for one
// of its own, else a compatible server.
func (id identity) format() furl.Format {
	if id.place == "X-Goog-Api-Key" {
		return furl.FormatChat
	}
	return furl.FormatAnthropic
}

// reaches reports whether the provider of a format takes the credential.
func (id identity) reaches(format furl.Format) bool {
	return id.format() == format || id.place == "" || id.place == "?key="
}

// tenantFixture is a gateway with a compatible server for Anthropic Messages and a
// host of Google for Chat Completions.
func tenantFixture(t *testing.T, o *gateway.Options) *fixture {
	t.Helper()
	st := &fixture{sim: sim.New(&sim.Options{NoAuth: true})}
	st.direct = httptest.NewServer(st.sim)
	t.Cleanup(st.direct.Close)
	store := inmem.New()
	t.Cleanup(func() { store.Close() })
	var err error
	if st.sessions, err = session.New(store, nil); err != nil {
		t.Fatal(err)
	}
	compatible, err := upstream.New(st.direct.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(compatible.Close)
	toSim := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, st.direct.Listener.Addr().String())
	}}
	google, err := upstream.New("http://generativelanguage.googleapis.com", &upstream.Options{Transport: toSim})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(google.Close)
	if st.gateway, err = gateway.New(st.sessions, gateway.Upstreams{Anthropic: compatible, OpenAI: google}, o); err != nil {
		t.Fatal(err)
	}
	st.front = httptest.NewServer(patient{st.gateway})
	t.Cleanup(st.front.Close)
	return st
}

// identities are all combinations of a key and a credential in some place, under the race
// detector in two places.
func identities() (all []identity) {
	places := []string{"X-Api-Key", "X-Goog-Api-Key", "Authorization", "Api-Key", "?key="}
	if gateway.RaceDetector {
		places = places[:2]
	}
	for _, key := range []string{"", keyAnn, keyBob, "planted-wrong-key"} {
		all = append(all, identity{key: key})
		for _, place := range places {
			for _, credential := range []string{dummy, companyKey, keyAnn, oauthToken} {
				if place == "X-Goog-Api-Key" && credential == oauthToken {
					credential = googleToken
				}
				all = append(all, identity{key, place, credential})
			}
		}
	}
	return all
}

// tenant says whose sessions an identity sees, by any name, or the status with
// which it is refused.
func (id identity) tenant(keys bool, by gateway.TenantBy) (name string, refused int) {
	if by == "" {
		by = map[bool]gateway.TenantBy{true: gateway.TenantByKey, false: gateway.TenantByCredential}[keys]
	}
	verified := id.key
	if id.key == "" {
		verified = id.credential
	}
	switch {
	case keys && verified != keyAnn && verified != keyBob:
		return "", http.StatusUnauthorized
	case by == gateway.TenantByKey:
		return verified, 0
	case id.credential == "":
		return "", http.StatusUnauthorized
	case id.credential == oauthToken, id.credential == googleToken:
		return "", http.StatusForbidden
	case by == gateway.TenantByBoth:
		return verified + " and " + id.credential, 0
	}
	return id.credential, 0
}

// owned is a session that somebody has recorded.
type owned struct {
	tenant, id string
	history    *agent
}

// Whoever shows an identity sees the sessions of its tenant and no others: in the
// list, in a search, by their id, and by sending their history again.
func TestTenantsSeeOnlyTheirOwn(t *testing.T) {
	for _, tt := range []struct {
		keys bool
		by   gateway.TenantBy
	}{
		{false, ""}, {false, gateway.TenantByCredential},
		{true, ""}, {true, gateway.TenantByKey}, {true, gateway.TenantByCredential}, {true, gateway.TenantByBoth},
	} {
		t.Run(fmt.Sprintf("keys=%v by=%s", tt.keys, tt.by), func(t *testing.T) {
			o := &gateway.Options{TenantSecret: []byte("0123456789abcdef"), TenantBy: tt.by}
			if tt.keys {
				o.ClientKeys = []string{keyAnn, keyBob}
			}
			st := tenantFixture(t, o)
			api := st.front.URL + "/furl/v1"
			ask := func(id identity, path string) (int, map[string]any) {
				resp, body := id.send(t, http.MethodGet, api+path, nil)
				var out map[string]any
				if err := json.Unmarshal(body, &out); err != nil {
					t.Fatalf("%s: %v: %s", path, err, body)
				}
				return resp.StatusCode, out
			}
			ids := func(out map[string]any, list string) (ids []string) {
				for _, s := range out[list].([]any) {
					ids = append(ids, s.(map[string]any)["session"].(string))
				}
				slices.Sort(ids)
				return slices.Compact(ids)
			}

			// Everybody begins a session, or is refused.
			sessions := make(map[string][]string) // by tenant
			tenantOf := make(map[string]string)
			var first []owned // one of each tenant
			var admitted []identity
			for i, id := range identities() {
				a := &agent{format: id.format(), model: "claude-sonnet-4-5"}
				if a.format == furl.FormatChat {
					a.model = "gpt-5"
				}
				a.say(fmt.Sprintf("Remember the word canary, number %d.", i))
				sent := len(st.sim.Requests())
				resp, body := id.send(t, http.MethodPost, st.front.URL+a.path(), a.body())
				tenant, refused := id.tenant(tt.keys, tt.by)
				if refused != 0 {
					if resp.StatusCode != refused || len(st.sim.Requests()) != sent || bytes.Contains(body, []byte("planted")) || bytes.Contains(body, []byte(dummy)) {
						t.Errorf("%s: %d %s, want %d and nothing sent on", id, resp.StatusCode, body, refused)
					}
					for _, path := range []string{"/sessions", "/search?q=canary", "/status"} {
						if status, out := ask(id, path); status != refused {
							t.Errorf("%s: %s: %d %v, want %d", id, path, status, out, refused)
						}
					}
					continue
				}
				session := resp.Header.Get("X-Furl-Session")
				if resp.StatusCode != http.StatusOK || session == "" || tenantOf[session] != "" {
					t.Fatalf("%s: %d, in session %q: %s", id, resp.StatusCode, session, body)
				}
				a.take(t, body, output)
				a.say("Go on.")
				if len(sessions[tenant]) == 0 {
					first = append(first, owned{tenant, session, a})
				}
				sessions[tenant] = append(sessions[tenant], session)
				tenantOf[session] = tenant
				admitted = append(admitted, id)
			}
			for _, list := range sessions {
				slices.Sort(list)
			}

			// Everybody looks for all sessions.
			for _, id := range admitted {
				tenant, _ := id.tenant(tt.keys, tt.by)
				if _, out := ask(id, "/sessions?limit=1000"); !slices.Equal(ids(out, "sessions"), sessions[tenant]) {
					t.Errorf("%s lists %v, want %v", id, ids(out, "sessions"), sessions[tenant])
				}
				if _, out := ask(id, "/search?q=canary&in=everywhere&limit=100"); !slices.Equal(ids(out, "hits"), sessions[tenant]) {
					t.Errorf("%s finds %v, want %v", id, ids(out, "hits"), sessions[tenant])
				}
				if _, out := ask(id, "/status"); out["sessions_in_memory"] != float64(len(sessions[tenant])) || out["store_errors"] != nil {
					t.Errorf("%s: status %v, want %d sessions in memory and no totals", id, out, len(sessions[tenant]))
				}
				for _, of := range first {
					want := http.StatusNotFound
					if of.tenant == tenant {
						want = http.StatusOK
					}
					for _, path := range []string{"", "/records", "/view"} {
						if status, _ := ask(id, "/sessions/"+of.id+path); status != want {
							t.Errorf("%s asks for a session of %s: %d, want %d", id, of.tenant, status, want)
						}
					}
				}
			}

			// Somebody of each tenant sends the history of a session of each, where
			// the provider of that session takes their credential.
			type sending struct{ tenant, session string }
			sent := make(map[sending]bool)
			for _, id := range admitted {
				tenant, _ := id.tenant(tt.keys, tt.by)
				for _, of := range first {
					if sent[sending{tenant, of.id}] || !id.reaches(of.history.format) {
						continue
					}
					sent[sending{tenant, of.id}] = true
					resp, body := id.send(t, http.MethodPost, st.front.URL+of.history.path(), of.history.body())
					got := resp.Header.Get("X-Furl-Session")
					switch whose, known := tenantOf[got]; {
					case resp.StatusCode != http.StatusOK || got == "":
						t.Errorf("%s sends a history of %s: %d %s", id, of.tenant, resp.StatusCode, body)
					case known && whose != tenant:
						t.Errorf("%s sends a history of %s and is in a session of %s", id, of.tenant, whose)
					case of.tenant == tenant && got != of.id:
						t.Errorf("%s sends its own history and is in session %s, want %s", id, got, of.id)
					}
					tenantOf[got] = tenant
				}
			}
		})
	}
}

// A client that refreshes its access token, or has another API key, stays the
// tenant of its client key.
func TestTenantOfAKeyKeepsItsSessions(t *testing.T) {
	st := newFixture(t, &sim.Options{NoAuth: true}, nil, &gateway.Options{TenantSecret: []byte("0123456789abcdef"), ClientKeys: []string{keyAnn, keyBob}})
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	session := ""
	for i, credential := range []string{oauthToken, oauthToken + "-refreshed", jwt(`{"sub":"ann","exp":1}`), jwt(`{"sub":"ann","exp":2}`), companyKey} {
		a.say(fmt.Sprintf("Step %d.", i))
		resp, body := identity{keyAnn, "Authorization", credential}.send(t, http.MethodPost, st.front.URL+a.path(), a.body())
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		a.take(t, body, output)
		got := resp.Header.Get("X-Furl-Session")
		if i > 0 && got != session {
			t.Errorf("with credential %d it is in session %s, want %s", i, got, session)
		}
		session = got
	}
}

// Where the credential tells the tenant, a token that is refreshed is refused,
// so that it begins no new tenant; an API key that looks like one is not.
func TestRefreshedTokenTellsNoTenant(t *testing.T) {
	st := newFixture(t, &sim.Options{NoAuth: true}, nil, &gateway.Options{TenantSecret: []byte("0123456789abcdef")})
	a := &agent{format: furl.FormatChat, model: "gpt-5"}
	a.say("Hello.")
	for credential, want := range map[string]int{
		oauthToken:                            403,
		"ya29.planted":                        403,
		jwt(`{"exp":1795000000,"sub":"ann"}`): 403,
		jwt(`{"exp":"soon"}`):                 403,
		jwt(`{"sub":"ann"}`):                  200, // some providers' API keys are such
		jwt(`no JSON`):                        200,
		"a.b.c":                               200,
		"...":                                 200,
		"sk-ant-api03-planted":                200,
	} {
		resp, body := identity{"", "Authorization", credential}.send(t, http.MethodPost, st.front.URL+a.path(), a.body())
		if resp.StatusCode != want || want == 403 && !strings.Contains(string(body), "access tokens change on refresh") {
			t.Errorf("%s: %d %s, want %d", credential, resp.StatusCode, body, want)
		}
	}
}

// A provider may verify any of the credentials of a request. Two users that share
// one of them are two tenants, and a user that shows theirs in other places is one.
func TestSeveralCredentialsAreOneIdentity(t *testing.T) {
	st := newFixture(t, &sim.Options{NoAuth: true}, nil, &gateway.Options{TenantSecret: []byte("0123456789abcdef")})
	body := []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`)
	ann := []string{"Authorization", "Bearer sk-ann", "X-Api-Key", dummy}
	bob := []string{"Authorization", "Bearer sk-bob", "X-Api-Key", dummy}
	for _, user := range [][]string{ann, bob} {
		if resp, answer := st.post(t, "/v1/messages", body, user...); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
	}
	for _, tt := range []struct {
		headers []string
		want    int
	}{
		{ann, 1}, {bob, 1}, {[]string{"Authorization", "Bearer " + dummy, "Api-Key", "sk-ann"}, 1},
		{[]string{"Authorization", "Bearer sk-ann"}, 0}, {[]string{"Authorization", "Bearer " + dummy}, 0},
	} {
		if _, out := st.ask(t, "GET", "/sessions", "", tt.headers...); len(out["sessions"].([]any)) != tt.want {
			t.Errorf("%v: %v, want %d", tt.headers, out, tt.want)
		}
	}
	// The provider decodes the parameter's name, so the gateway does too.
	if resp, answer := st.post(t, "/v1/messages?%6Bey="+dummy, body); resp.StatusCode != 200 {
		t.Errorf("a credential in %%6Bey: %d %s", resp.StatusCode, answer)
	}
	if status, out := st.ask(t, "GET", "/sessions?key="+dummy, ""); status != 200 || len(out["sessions"].([]any)) != 1 {
		t.Errorf("a credential in key: %d %v", status, out)
	}
	var many strings.Builder
	for i := range 20 {
		fmt.Fprintf(&many, "&key=a&key=%d", i)
	}
	if status, out := st.ask(t, "GET", "/sessions?x"+many.String(), ""); status != 401 || !strings.Contains(fmt.Sprint(out), "too many credentials") {
		t.Errorf("with many credentials: %d %v", status, out)
	}
}

// A client key in X-Furl-Key is not sent on. One shown as the provider's
// credential is: it is what the provider expects.
func TestClientKeyIsNotSentOn(t *testing.T) {
	seen := make(chan http.Header, 1)
	simulated := sim.New(&sim.Options{NoAuth: true})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		simulated.ServeHTTP(w, r)
	}))
	defer provider.Close()
	st := &fixture{direct: provider}
	store := inmem.New()
	defer store.Close()
	st.begin(t, store, nil, &gateway.Options{ClientKeys: []string{keyAnn}, TenantSecret: []byte("0123456789abcdef")})
	body := []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`)
	for _, tt := range []struct {
		id   identity
		want bool
	}{
		{identity{keyAnn, "X-Api-Key", companyKey}, false}, {identity{keyAnn, "", ""}, false}, {identity{"", "X-Api-Key", keyAnn}, true},
	} {
		if resp, answer := tt.id.send(t, http.MethodPost, st.front.URL+"/v1/messages", body); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
		if got := strings.Contains(fmt.Sprint(<-seen), keyAnn); got != tt.want {
			t.Errorf("%s: the provider sees the key: %v, want %v", tt.id, got, tt.want)
		}
	}
}

// What tells of all tenants, or concerns them all, is the operator's. The
// operator key is for nothing else.
func TestOperatorKey(t *testing.T) {
	secret := []byte("0123456789abcdef")
	ann, boss, nobody := identity{key: keyAnn}, identity{key: operatorKey}, identity{}
	bearer := identity{place: "Authorization", credential: operatorKey}
	for _, tt := range []struct {
		name string
		o    gateway.Options
		id   identity
		// metrics and reload, status, whether it has totals, sessions, a request
		operate, status int
		totals          bool
		sessions, model int
	}{
		{"no tenants, no keys", gateway.Options{}, nobody, 200, 200, true, 200, 200},
		{"no tenants, a client key", gateway.Options{ClientKeys: []string{keyAnn}}, ann, 200, 200, true, 200, 200},
		{"no tenants, no key shown", gateway.Options{ClientKeys: []string{keyAnn}}, nobody, 401, 401, false, 401, 401},
		{"no tenants, an operator key", gateway.Options{ClientKeys: []string{keyAnn}, OperatorKeys: []string{operatorKey}}, bearer, 200, 200, true, 403, 403},
		{"tenants, a client key", gateway.Options{ClientKeys: []string{keyAnn}, OperatorKeys: []string{operatorKey}, TenantSecret: secret}, ann, 401, 200, false, 200, 200},
		{"tenants, a client key, no operator key", gateway.Options{ClientKeys: []string{keyAnn}, TenantSecret: secret}, ann, 403, 200, false, 200, 200},
		{"tenants, a credential, no operator key", gateway.Options{TenantSecret: secret}, identity{place: "X-Api-Key", credential: companyKey}, 403, 200, false, 200, 200},
		{"tenants, nothing shown", gateway.Options{OperatorKeys: []string{operatorKey}, TenantSecret: secret}, nobody, 401, 401, false, 401, 401},
		{"tenants, an operator key", gateway.Options{ClientKeys: []string{keyAnn}, OperatorKeys: []string{operatorKey}, TenantSecret: secret}, boss, 200, 200, true, 403, 403},
		{"tenants, an operator key as Prometheus shows it", gateway.Options{OperatorKeys: []string{"older", operatorKey}, TenantSecret: secret}, bearer, 200, 200, true, 403, 403},
		{"tenants, a client key and the operator key for the provider", gateway.Options{ClientKeys: []string{keyAnn}, OperatorKeys: []string{operatorKey}, TenantSecret: secret}, identity{keyAnn, "X-Api-Key", operatorKey}, 401, 403, false, 403, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Reload = func(context.Context) (*gateway.Reloaded, error) { return &gateway.Reloaded{}, nil }
			st := newFixture(t, &sim.Options{NoAuth: true}, nil, &tt.o)
			for _, c := range []struct {
				method, path string
				want         int
			}{
				{"GET", "/metrics", tt.operate}, {"POST", "/furl/v1/reload", tt.operate},
				{"GET", "/furl/v1/status", tt.status}, {"GET", "/furl/v1/sessions", tt.sessions}, {"GET", "/furl/v1/search?q=hello", tt.sessions},
				{"POST", "/v1/messages", tt.model}, {"GET", "/v1/models", tt.model}, {"GET", "/healthz", 204}, {"GET", "/readyz", 204},
			} {
				var body []byte
				if c.path == "/v1/messages" {
					body = []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`)
				}
				resp, answer := tt.id.send(t, c.method, st.front.URL+c.path, body)
				if resp.StatusCode != c.want || resp.StatusCode >= 400 && bytes.Contains(answer, []byte("planted")) {
					t.Errorf("%s %s: %d %.300s, want %d", c.method, c.path, resp.StatusCode, answer, c.want)
				}
				if c.path == "/furl/v1/status" && resp.StatusCode == 200 && bytes.Contains(answer, []byte(`"answers_unrecorded"`)) != tt.totals {
					t.Errorf("the status is %s, want totals: %v", answer, tt.totals)
				}
			}
			if n := len(st.sim.Requests()); tt.model != 200 && n > 0 {
				t.Errorf("the provider has seen %d requests", n)
			}
		})
	}
}

// Options that would not keep tenants apart as they say are refused.
func TestTenantOptions(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New("http://127.0.0.1:9", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	secret, keys := []byte("0123456789abcdef"), []string{keyAnn}
	for want, o := range map[string]gateway.Options{
		"no effect without gateway.tenants":    {TenantBy: gateway.TenantByKey, ClientKeys: keys},
		"gateway.tenant_by: key needs client":  {TenantBy: gateway.TenantByKey, TenantSecret: secret},
		"gateway.tenant_by: both needs client": {TenantBy: gateway.TenantByBoth, TenantSecret: secret},
		`invalid gateway.tenant_by "name"`:     {TenantBy: "name", TenantSecret: secret},
		"operator key is also a client key":    {ClientKeys: keys, OperatorKeys: keys},
	} {
		if _, err := gateway.New(sessions, gateway.Upstreams{OpenAI: up}, &o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// What tells the tenant does not change while the gateway runs.
	g, err := gateway.New(sessions, gateway.Upstreams{OpenAI: up}, &gateway.Options{TenantSecret: secret, ClientKeys: keys})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.With(gateway.Upstreams{OpenAI: up}, &gateway.Options{TenantSecret: secret}); err == nil || !strings.Contains(err.Error(), "needs client keys") {
		t.Errorf("without the keys that tell tenants: %v", err)
	}
}
