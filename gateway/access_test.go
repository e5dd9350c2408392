package gateway_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/dev/certstest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// accessed is a gateway whose provider accepts any credential and remembers it.
type accessed struct {
	url      string
	gateway  *gateway.Gateway
	sessions *session.Sessions
	store    storage.Store
	server   *httptest.Server

	mu   sync.Mutex
	seen []*http.Request // by the provider
}

func newAccessed(t testing.TB, o *gateway.Options) *accessed {
	t.Helper()
	a := &accessed{store: inmem.New()}
	simulated := sim.New(&sim.Options{NoAuth: true})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.seen = append(a.seen, r.Clone(r.Context()))
		a.mu.Unlock()
		simulated.ServeHTTP(w, r)
	}))
	t.Cleanup(provider.Close)
	t.Cleanup(func() { a.store.Close() })
	var err error
	if a.sessions, err = session.New(a.store, nil); err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(provider.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	if a.gateway, err = gateway.New(a.sessions, gateway.Upstreams{Anthropic: up}, o); err != nil {
		t.Fatal(err)
	}
	a.server = httptest.NewUnstartedServer(patient{a.gateway})
	a.server.Start()
	t.Cleanup(a.server.Close)
	a.url = a.server.URL
	return a
}

const question = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Tell me of furled sails."}]}`

// do sends a request with headers, and returns the status and the body.
func (a *accessed) do(t testing.TB, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := a.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// tenants returns the tenants that have sessions.
func (a *accessed) tenants(t testing.TB) []furl.Tenant {
	t.Helper()
	list, err := a.sessions.Tenants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// key makes a named key.
func key(t testing.TB, name, tenant string, s access.Scopes, expires time.Time) (access.Key, string) {
	t.Helper()
	k, secret, err := access.NewKey(name, tenant, s, time.Now(), expires)
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

// A named key does what its scopes say, for its tenant. An ended one is refused with the
// reason. No key reaches the provider, wherever a client sends it.
func TestNamedKeys(t *testing.T) {
	ann, annKey := key(t, "ann", "", access.Client, time.Time{})
	second, secondKey := key(t, "ann-2", "ann", access.Client, time.Now().Add(time.Hour))
	reader, readerKey := key(t, "reader", "ann", access.Read, time.Time{})
	agent, agentKey := key(t, "agent", "bob", access.Proxy, time.Time{})
	prom, promKey := key(t, "prom", "", access.Operate, time.Time{})
	old, oldKey := key(t, "old", "ann", access.Client, time.Now().Add(-time.Second))
	gone, goneKey := key(t, "gone", "ann", access.Client, time.Time{})
	gone.Revoked = time.Now()
	a := newAccessed(t, &gateway.Options{Keys: access.NewKeys([]access.Key{ann, second, reader, agent, prom, old, gone}), TenantSecret: []byte("0123456789abcdef")})

	for _, at := range [][]string{{"X-Furl-Key", annKey, "X-Api-Key", "sk-company"}, {"Authorization", "Bearer " + annKey}, {"X-Api-Key", annKey}, {"X-Furl-Key", annKey, "X-Api-Key", secondKey}} {
		if code, body := a.do(t, "POST", "/v1/messages", question, at...); code != 200 {
			t.Errorf("%v: %d %s", at, code, body)
		}
	}
	if code, _ := a.do(t, "GET", "/v1/models?key="+annKey+"&limit=3", "", "X-Furl-Key", annKey); code >= 500 {
		t.Errorf("models: %d", code)
	}
	for _, r := range a.seen {
		var text strings.Builder
		text.WriteString(r.URL.String())
		for name, values := range r.Header {
			text.WriteString(name + strings.Join(values, ","))
		}
		if strings.Contains(text.String(), access.KeyPrefix) {
			t.Errorf("the provider got %s", text.String())
		}
	}
	if a.seen[0].Header.Get("X-Api-Key") != "sk-company" {
		t.Error("the provider's credential did not arrive")
	}
	if got := a.tenants(t); len(got) != 1 || got[0] != "ann" {
		t.Errorf("the tenants are %q", got)
	}

	const list, reload = "/furl/v1/sessions", "/furl/v1/reload"
	var id string
	for info, err := range a.store.Sessions(t.Context(), "ann", storage.SessionQuery{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		id = string(info.Session)
	}
	pin := "/furl/v1/sessions/" + id + "/settings"
	for _, tt := range []struct {
		name, secret                 string
		proxy, read, change, operate int
		reason                       string
	}{
		{"all of a client's", annKey, 200, 200, 200, 403, ""},
		{"read", readerKey, 403, 200, 403, 403, `key "reader" lacks the scope proxy: it has read`},
		{"proxy", agentKey, 200, 403, 403, 403, ""},
		{"operate", promKey, 403, 403, 403, 200, "operator key is for"},
		{"expired", oldKey, 401, 401, 401, 401, `the key "old" expired at`},
		{"revoked", goneKey, 401, 401, 401, 401, `the key "gone" was revoked at`},
		{"unknown", "furl_unknown", 401, 401, 401, 401, "requires a client key"},
	} {
		proxy, body := a.do(t, "POST", "/v1/messages", question, "X-Furl-Key", tt.secret)
		read, _ := a.do(t, "GET", list, "", "X-Furl-Key", tt.secret)
		change, _ := a.do(t, "POST", pin, `{"rolling_context":"on"}`, "X-Furl-Key", tt.secret)
		operate, _ := a.do(t, "GET", "/metrics", "", "X-Furl-Key", tt.secret)
		if proxy != tt.proxy || read != tt.read || change != tt.change || operate != tt.operate {
			t.Errorf("%s: proxy %d, read %d, change %d, operate %d", tt.name, proxy, read, change, operate)
		}
		if tt.reason != "" && (!strings.Contains(body, strings.ReplaceAll(tt.reason, `"`, `\"`)) || !strings.Contains(body, `"type":"error"`)) {
			t.Errorf("%s: %s, want %q in the provider's shape", tt.name, body, tt.reason)
		}
	}
	_, metrics := a.do(t, "GET", "/metrics", "", "X-Furl-Key", promKey)
	for _, want := range []string{`furl_client_requests_total{client="ann",result="accepted"}`, `furl_client_requests_total{client="old",result="expired"}`, `furl_client_requests_total{client="gone",result="revoked"}`, `furl_client_requests_total{client="unknown",result="refused"}`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(metrics, annKey) || strings.Contains(metrics, annKey[5:]) {
		t.Error("the metrics have a key")
	}
}

// A configured file without keys lets nobody in, and the page takes named keys.
func TestNamedKeysOnThePage(t *testing.T) {
	if code, _ := newAccessed(t, &gateway.Options{Keys: access.NewKeys(nil)}).do(t, "POST", "/v1/messages", question, "X-Api-Key", "k"); code != 401 {
		t.Errorf("without keys: %d", code)
	}
	ann, annKey := key(t, "ann", "a.b|c", access.Read, time.Time{})
	a := newAccessed(t, &gateway.Options{Keys: access.NewKeys([]access.Key{ann}), TenantSecret: []byte("0123456789abcdef"), Page: testPage{}})
	a.server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := a.server.Client().Post(a.url+"/furl/login", "application/x-www-form-urlencoded", strings.NewReader("key="+annKey+"&to=/"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	cookies := resp.Cookies()
	// A request that is not from the page itself is refused, so this one says that it is.
	req, _ := http.NewRequest("POST", a.url+"/furl/login", strings.NewReader("key="+annKey+"&to=/"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if len(cookies) == 0 {
		if resp, err = a.server.Client().Do(req); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		cookies = resp.Cookies()
	}
	if len(cookies) != 1 {
		t.Fatalf("the login gives %s %v", resp.Status, cookies)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	if code, body := a.do(t, "GET", "/", "", "Cookie", cookie, "Accept", "text/html"); code != 200 {
		t.Errorf("the page: %d %s", code, body)
	}
	if code, _ := a.do(t, "POST", "/furl/sessions/x", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin"); code != 403 {
		t.Errorf("a change with a key that only reads: %d", code)
	}
}

// The header of a trusted proxy identifies a client only if the proxy sent it, and the
// provider never gets it.
func TestTrustedProxy(t *testing.T) {
	options := func(networks ...string) *gateway.Options {
		o := &gateway.Options{TenantSecret: []byte("0123456789abcdef"), Proxy: &gateway.TrustedProxy{Header: "X-Auth-User"}}
		for _, n := range networks {
			o.Proxy.Networks = append(o.Proxy.Networks, netip.MustParsePrefix(n))
		}
		return o
	}
	a := newAccessed(t, options("10.0.0.0/8", "127.0.0.0/8"))
	if code, body := a.do(t, "POST", "/v1/messages", question, "X-Auth-User", "ann@example.com", "X-Api-Key", "sk-company"); code != 200 {
		t.Errorf("from the proxy: %d %s", code, body)
	}
	if got := a.tenants(t); len(got) != 1 || got[0] != "ann@example.com" {
		t.Errorf("the tenants are %q", got)
	}
	if a.seen[0].Header.Get("X-Auth-User") != "" || a.seen[0].Header.Get("X-Api-Key") != "sk-company" {
		t.Errorf("the provider got %v", a.seen[0].Header)
	}
	for name, headers := range map[string][]string{
		"none": {"X-Api-Key", "sk-company"}, "twice": {"X-Auth-User", "ann", "X-Auth-User", "bob"}, "empty": {"X-Auth-User", ""},
		"a hashed tenant": {"X-Auth-User", strings.Repeat("0a", 16)}, "the command line's": {"X-Auth-User", "local"}, "two in one": {"X-Auth-User", "ann, bob"},
	} {
		if code, body := a.do(t, "POST", "/v1/messages", question, headers...); code != 401 && code != 403 {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	other := newAccessed(t, options("10.0.0.0/8"))
	if code, body := other.do(t, "POST", "/v1/messages", question, "X-Auth-User", "ann"); code != 403 || !strings.Contains(body, "gateway.trusted_proxy.networks") {
		t.Errorf("not from the proxy: %d %s", code, body)
	}
	if code, _ := other.do(t, "GET", "/furl/v1/sessions", "", "X-Auth-User", "ann"); code != 403 {
		t.Errorf("the API, not from the proxy: %d", code)
	}
	if len(other.seen) > 0 {
		t.Error("a refused request was sent")
	}
}

// A client certificate can name a client and its tenant.
func TestCertificateIdentity(t *testing.T) {
	a := newAccessed(t, &gateway.Options{TenantSecret: []byte("0123456789abcdef"), ClientIdentity: gateway.IdentityDNS})
	if code, _ := a.do(t, "POST", "/v1/messages", question, "X-Api-Key", "sk-company"); code != 401 {
		t.Errorf("without a certificate: %d", code)
	}
	ca := certstest.NewAuthority(t, "clients")
	server := httptest.NewUnstartedServer(patient{a.gateway})
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool()}
	server.StartTLS()
	t.Cleanup(server.Close)
	a.server, a.url = server, server.URL
	server.Client().Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{ca.Client(t, "Ann", "ann.agents.example")}
	if code, body := a.do(t, "POST", "/v1/messages", question, "X-Api-Key", "sk-company"); code != 200 {
		t.Errorf("with a certificate: %d %s", code, body)
	}
	if got := a.tenants(t); len(got) != 1 || got[0] != "ann.agents.example" {
		t.Errorf("the tenants are %q", got)
	}
}

// No combination of headers makes the gateway panic, or lets a client in without a key.
func FuzzIdentityHeaders(f *testing.F) {
	ann, annKey := key(f, "ann", "", access.Client, time.Time{})
	a := newAccessed(f, &gateway.Options{Keys: access.NewKeys([]access.Key{ann}), TenantSecret: []byte("0123456789abcdef"), Proxy: &gateway.TrustedProxy{Header: "X-Auth-User", Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}})
	f.Add("", "Bearer x.y.z", "", "")
	f.Add("furl_x", "Bearer", "ann", "furl-page=1.YQ.YQ")
	f.Add("a", "bearer  ", "ann\x00", "furl-page=..")
	f.Fuzz(func(t *testing.T, own, authorization, user, cookie string) {
		r := httptest.NewRequest("GET", "/furl/v1/sessions", nil)
		r.Host = "localhost"
		r.Header = http.Header{"X-Furl-Key": {own}, "Authorization": {authorization}, "X-Auth-User": {user}, "Cookie": {cookie}}
		if strings.Contains(own+authorization, annKey) {
			return
		}
		w := httptest.NewRecorder()
		a.gateway.ServeHTTP(w, r)
		if w.Code != 401 && w.Code != 403 {
			t.Errorf("%q %q %q %q: %d", own, authorization, user, cookie, w.Code)
		}
	})
}

// tokens is a TokenVerifier whose tokens are "token." and the tenant.
type tokens struct {
	down    bool
	expires time.Time
	signer  string
}

func (tokens) Issued(s string) bool { return strings.HasPrefix(s, "token.") }

func (tokens) Trusts(signer string) bool { return signer == "" || !removedSigner.Load() }

// removedSigner is set once the issuer has removed the key "k1".
var removedSigner atomic.Bool

func (v tokens) Verify(_ context.Context, s string) (gateway.Identity, error) {
	name := strings.TrimPrefix(s, "token.")
	switch {
	case v.down:
		return gateway.Identity{}, access.ErrUnavailable
	case name == "expired":
		return gateway.Identity{}, errors.New("the token expired")
	}
	return gateway.Identity{Name: name, By: access.ByToken, Tenant: furl.Tenant(name), Scopes: access.Proxy | access.Read, Expires: v.expires, Signer: v.signer}, nil
}

// A token identifies a client by its tenant and scopes, in X-Furl-Key and as a bearer
// token, and never reaches the provider.
func TestTokens(t *testing.T) {
	a := newAccessed(t, &gateway.Options{Tokens: tokens{}, TenantSecret: []byte("0123456789abcdef")})
	for _, at := range [][]string{{"X-Furl-Key", "token.acme", "X-Api-Key", "sk-company"}, {"Authorization", "Bearer token.acme"}} {
		if code, body := a.do(t, "POST", "/v1/messages", question, at...); code != 200 {
			t.Errorf("%v: %d %s", at, code, body)
		}
	}
	for _, r := range a.seen {
		if r.Header.Get("Authorization") != "" || r.Header.Get("X-Furl-Key") != "" {
			t.Errorf("the provider got %v", r.Header)
		}
	}
	if got := a.tenants(t); len(got) != 1 || got[0] != "acme" {
		t.Errorf("the tenants are %q", got)
	}
	if code, body := a.do(t, "POST", "/v1/messages", question, "Authorization", "Bearer token.expired"); code != 401 || !strings.Contains(body, "the token expired") {
		t.Errorf("an expired token: %d %s", code, body)
	}
	if code, _ := a.do(t, "POST", "/furl/v1/sessions/x/restore", "", "X-Furl-Key", "token.acme"); code != 403 {
		t.Errorf("a change without the scope: %d", code)
	}
	if code, _ := a.do(t, "POST", "/v1/messages", question, "X-Api-Key", "sk-company"); code != 401 {
		t.Errorf("without a token: %d", code)
	}
	down := newAccessed(t, &gateway.Options{Tokens: tokens{down: true}})
	if code, _ := down.do(t, "POST", "/v1/messages", question, "X-Furl-Key", "token.acme"); code != 503 || len(down.seen) > 0 {
		t.Errorf("an issuer that is down: %d", code)
	}
}

// login enters a text in the login form, and returns the status, the body and the cookie.
func (a *accessed) login(t testing.TB, key string) (code int, body, cookie string) {
	t.Helper()
	client := *a.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	req, err := http.NewRequest("POST", a.url+"/furl/login", strings.NewReader(url.Values{"key": {key}, "to": {"/"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range resp.Cookies() {
		cookie = c.Name + "=" + c.Value
	}
	return resp.StatusCode, string(text), cookie
}

// A person logs in to the page with a token, for its tenant, with its scopes, and until it
// expires. The login is valid on gateways with the same secret of tenants.
func TestTokenLogin(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	o := gateway.Options{Tokens: tokens{expires: now.Add(time.Hour)}, TenantSecret: []byte("0123456789abcdef"), Page: testPage{}, Now: clock}
	a, again := newAccessed(t, &o), newAccessed(t, &o)
	o.TenantSecret = []byte("another 89abcdef")
	other := newAccessed(t, &o)
	if _, body := a.do(t, "GET", "/", "", "Accept", "text/html"); !strings.Contains(body, "<form") {
		t.Errorf("without a login: %s", body)
	}
	for _, bad := range []string{"", "token.expired", "sk-company", "eyJ.eyJ.x"} {
		if code, body, cookie := a.login(t, bad); code != 401 || cookie != "" || !strings.Contains(body, "token") {
			t.Errorf("a login with %q: %d %s", bad, code, body)
		}
	}
	code, body, cookie := a.login(t, "token.acme")
	if code != 303 || cookie == "" || strings.Contains(cookie, "token.acme") {
		t.Fatalf("a login with a token: %d %s %s", code, body, cookie)
	}
	for _, g := range []*accessed{a, again} {
		if code, body := g.do(t, "GET", "/", "", "Accept", "text/html", "Cookie", cookie); code != 200 || !strings.Contains(body, `tenant="acme" loggedIn=true`) {
			t.Errorf("the page: %d %s", code, body)
		}
	}
	if code, _ := a.do(t, "POST", "/furl/sessions/x", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin"); code != 403 {
		t.Errorf("a change with a token that only reads: %d", code)
	}
	forged := strings.Replace(cookie, base64.RawURLEncoding.EncodeToString([]byte("acme")), base64.RawURLEncoding.EncodeToString([]byte("evil")), 1)
	for name, c := range map[string]string{"another tenant": forged, "a part": strings.Replace(cookie, ".", "", 1)} {
		if code, _ := a.do(t, "GET", "/furl/x", "", "Cookie", c); code != 401 {
			t.Errorf("%s: %d", name, code)
		}
	}
	if code, _ := other.do(t, "GET", "/furl/x", "", "Cookie", cookie); code != 401 {
		t.Errorf("with another secret of tenants: %d", code)
	}
	if code, _ := a.do(t, "GET", "/furl/v1/sessions", "", "Cookie", cookie); code != 401 {
		t.Errorf("the API with a login: %d", code)
	}
	now = now.Add(59 * time.Minute)
	if code, _ := a.do(t, "GET", "/furl/x", "", "Cookie", cookie); code != 200 {
		t.Errorf("before the token expires: %d", code)
	}
	now = now.Add(2 * time.Minute)
	if code, _ := a.do(t, "GET", "/furl/x", "", "Cookie", cookie); code != 401 {
		t.Errorf("after the token expired: %d", code)
	}
	down := newAccessed(t, &gateway.Options{Tokens: tokens{down: true}, Page: testPage{}})
	if code, _, _ := down.login(t, "token.acme"); code != 503 {
		t.Errorf("a login while the issuer is down: %d", code)
	}
}

// With keys and tokens, the form takes both, and a token without tenants opens all sessions.
func TestTokenOrKeyLogin(t *testing.T) {
	ann, annKey := key(t, "ann", "", access.Client, time.Time{})
	a := newAccessed(t, &gateway.Options{Tokens: tokens{}, Keys: access.NewKeys([]access.Key{ann}), Page: testPage{}})
	for _, secret := range []string{annKey, "token.acme"} {
		code, body, cookie := a.login(t, secret)
		if code != 303 {
			t.Fatalf("a login: %d %s", code, body)
		}
		if code, body := a.do(t, "GET", "/", "", "Accept", "text/html", "Cookie", cookie); code != 200 || !strings.Contains(body, `tenant="" loggedIn=true`) {
			t.Errorf("the page: %d %s", code, body)
		}
	}
	if code, body, _ := a.login(t, "sk-company"); code != 401 || !strings.Contains(body, "unknown client key, and not a token of the issuer") {
		t.Errorf("a login with something else: %d %s", code, body)
	}
}

// Through a trusted proxy, the page needs no login. Without the proxy, it says so instead
// of showing a form that nothing can be entered in.
func TestTrustedProxyOnThePage(t *testing.T) {
	proxy := &gateway.TrustedProxy{Header: "X-Auth-User", Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	a := newAccessed(t, &gateway.Options{Proxy: proxy, TenantSecret: []byte("0123456789abcdef"), Page: testPage{}})
	for _, r := range [][]string{{"GET", "/"}, {"GET", "/furl/sessions/x"}, {"POST", "/furl/sessions/x"}} {
		if code, body := a.do(t, r[0], r[1], "", "Accept", "text/html", "X-Auth-User", "ann@example.com", "Sec-Fetch-Site", "same-origin"); code != 200 || !strings.Contains(body, `tenant="ann@example.com" loggedIn=false`) {
			t.Errorf("%s %s: %d %s", r[0], r[1], code, body)
		}
	}
	for _, path := range []string{"/", "/furl/login", "/furl/sessions/x"} {
		if code, body := a.do(t, "GET", path, "", "Accept", "text/html"); code != 401 || !strings.Contains(body, "the header of its proxy") || strings.Contains(body, "<form") {
			t.Errorf("%s without the proxy: %d %s", path, code, body)
		}
	}
	if code, _, cookie := a.login(t, "anything"); code != 401 || cookie != "" {
		t.Errorf("a login with anything: %d %s", code, cookie)
	}
}

// A login with a token ends when the issuer has removed the key that has signed it.
func TestLoginOfARemovedKey(t *testing.T) {
	defer removedSigner.Store(false)
	a := newAccessed(t, &gateway.Options{Tokens: tokens{signer: "k1"}, TenantSecret: []byte("0123456789abcdef"), Page: testPage{}})
	_, _, cookie := a.login(t, "token.acme")
	for _, removed := range []bool{false, true} {
		removedSigner.Store(removed)
		if code, _ := a.do(t, "GET", "/furl/x", "", "Cookie", cookie); (code == 200) == removed {
			t.Errorf("with the key removed %v: %d", removed, code)
		}
	}
}

// The user whom a proxy names counts before another one's login in the same browser.
func TestProxyCountsBeforeLogin(t *testing.T) {
	a := newAccessed(t, &gateway.Options{
		Tokens: tokens{}, TenantSecret: []byte("0123456789abcdef"), Page: testPage{},
		Proxy: &gateway.TrustedProxy{Header: "X-Auth-User", Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	_, _, cookie := a.login(t, "token.acme")
	if _, body := a.do(t, "GET", "/", "", "Accept", "text/html", "Cookie", cookie); !strings.Contains(body, `tenant="acme"`) {
		t.Fatalf("a login: %s", body)
	}
	if _, body := a.do(t, "GET", "/", "", "Accept", "text/html", "Cookie", cookie, "X-Auth-User", "ann"); !strings.Contains(body, `tenant="ann"`) {
		t.Errorf("the proxy's user: %s", body)
	}
}
