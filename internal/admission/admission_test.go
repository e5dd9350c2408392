package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/access"
)

// issuer issues tokens that begin with "token-", and counts the questions about each.
type issuer map[string]int

func (i issuer) Issued(credential string) bool {
	i[credential]++
	return strings.HasPrefix(credential, "token-")
}

func (issuer) Trusts(string) bool { return true }

func (i issuer) Verify(_ context.Context, token string) (access.Identity, error) {
	if token == "token-bad" {
		return access.Identity{}, errors.New("invalid token")
	}
	return access.Identity{Name: token, By: access.ByToken, Tenant: "acme", Scopes: access.Client}, nil
}

// newGuard returns a guard with a named key for each name.
func newGuard(t *testing.T, o *Options, names ...string) (g *Guard, secrets []string) {
	t.Helper()
	var keys []access.Key
	for _, name := range names {
		k, secret, err := access.NewKey(name, "", access.Client, time.Now(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		keys, secrets = append(keys, k), append(secrets, secret)
	}
	o.Keys = access.NewKeys(keys)
	g, err := New(o, &Env{State: new(State), Now: time.Now, Log: slog.New(slog.DiscardHandler), Unaudited: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	return g, secrets
}

// A provider gets no named key, no token and no header of the proxy, wherever they are in
// a request, and everything else unchanged. The original request is not modified.
func TestStrip(t *testing.T) {
	proxy := &TrustedProxy{Header: "X-Auth-User", Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	g, secrets := newGuard(t, &Options{ClientKeys: []string{"client"}, Tokens: issuer{}, Proxy: proxy}, "ann", "ann-2")
	ann, second := secrets[0], secrets[1]
	var seven []string
	for i := range 7 {
		seven = append(seven, fmt.Sprintf("other-%d", i))
	}
	for name, c := range map[string]struct {
		sent, want http.Header
		query      string // sent
		wantQuery  string
	}{
		"a key for the provider and another": {http.Header{"X-Api-Key": {"sk"}, "Authorization": {"Bearer " + ann}}, http.Header{"X-Api-Key": {"sk"}}, "", ""},
		"every header":                       {http.Header{"X-Api-Key": {ann}, "Authorization": {"bearer  " + second}, "Api-Key": {ann, "az"}, "X-Goog-Api-Key": {" " + ann + " "}}, http.Header{"Api-Key": {"az"}}, "", ""},
		"tokens":                             {http.Header{"Authorization": {"Bearer token-ann"}, "Api-Key": {"token-bad"}}, http.Header{}, "a=1&key=token-ann&b=2", "a=1&b=2"},
		"a space before it in the query":     {http.Header{"X-Api-Key": {"sk"}}, http.Header{"X-Api-Key": {"sk"}}, "key=%20" + ann + "&key=g", "key=g"},
		"eight credentials":                  {http.Header{"X-Furl-Key": {ann}, "Api-Key": append(slices.Clone(seven), second)}, http.Header{"X-Furl-Key": {ann}, "Api-Key": seven}, "", ""},
		"a client key without a name":        {http.Header{"X-Api-Key": {"client"}}, http.Header{"X-Api-Key": {"client"}}, "b=%41&key=x&a=;", "b=%41&key=x&a=;"},
		"the user of a proxy":                {http.Header{"X-Auth-User": {"bob"}, "X-Api-Key": {"sk"}}, http.Header{"X-Api-Key": {"sk"}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/v1/messages?"+c.query, nil) // from 192.0.2.1
			r.Header = c.sent.Clone()
			out := r.WithContext(t.Context())
			a, err := g.Admit(r, access.Proxy)
			if err != nil {
				t.Fatal(err)
			}
			a.Strip(out)
			if !reflect.DeepEqual(out.Header, c.want) || out.URL.RawQuery != c.wantQuery {
				t.Errorf("the provider gets %v ?%s, want %v ?%s", out.Header, out.URL.RawQuery, c.want, c.wantQuery)
			}
			if !reflect.DeepEqual(r.Header, c.sent) || r.URL.RawQuery != c.query {
				t.Errorf("the request has become %v ?%s", r.Header, r.URL.RawQuery)
			}
		})
	}
}

// A request with more credentials than are looked up is refused, whatever else identifies
// the client: a key of furl among them could reach the provider.
func TestTooManyCredentials(t *testing.T) {
	g, secrets := newGuard(t, &Options{OperatorKeys: []string{"operator"}}, "ann")
	r := httptest.NewRequest(http.MethodPost, "/v1/messages?key=operator", nil)
	r.Header.Set("X-Furl-Key", secrets[0])
	for i := range 8 {
		r.Header.Add("Api-Key", fmt.Sprintf("other-%d", i))
	}
	_, err := g.Admit(r, access.Proxy)
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusUnauthorized || !strings.Contains(err.Error(), "too many credentials") {
		t.Errorf("nine credentials: %v", err)
	}
	r.Header["Api-Key"] = r.Header["Api-Key"][:7]
	if _, err = g.Admit(r, access.Proxy); err == nil || !strings.Contains(err.Error(), "the operator key is for") {
		t.Errorf("eight, one of them the operator's: %v", err)
	}
}

// Each credential of a request is looked up once, for the decision and for what the
// provider gets, however often the request has it.
func TestLookedUpOnce(t *testing.T) {
	asked := issuer{}
	g, secrets := newGuard(t, &Options{Tokens: asked, TenantSecret: []byte("0123456789abcdef")}, "ann")
	r := httptest.NewRequest(http.MethodPost, "/v1/messages?key=g", nil)
	r.Header = http.Header{"X-Api-Key": {"sk", secrets[0]}, "Authorization": {"Bearer sk"}, "Api-Key": {"token-ann"}}
	a, err := g.Admit(r, access.Proxy)
	if err != nil || a.Who.Name != "ann" || a.Who.Tenant != "ann" {
		t.Fatalf("%+v, %v", a.Who, err)
	}
	a.Strip(r)
	if want := (issuer{"sk": 1, "token-ann": 1, "g": 1}); !reflect.DeepEqual(asked, want) {
		t.Errorf("the issuer was asked %v, want %v", asked, want)
	}
	if want := (http.Header{"X-Api-Key": {"sk"}, "Authorization": {"Bearer sk"}}); !reflect.DeepEqual(r.Header, want) {
		t.Errorf("the provider gets %v, want %v", r.Header, want)
	}
}

// A guard without options admits every request, with any credential, as the tenant "". So
// does a gateway without a guard.
func TestNoOptions(t *testing.T) {
	g, err := New(new(Options), &Env{State: new(State), Now: time.Now, Log: slog.New(slog.DiscardHandler), Unaudited: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	if g.Required() || g.NeedsLogin() || g.NeedsKey() || g.HasLogin() {
		t.Error("something is required")
	}
	for _, need := range []access.Scopes{access.Proxy, access.Read, access.Change, access.Operate, access.Read | access.Operate} {
		for _, header := range []http.Header{{}, {"X-Furl-Key": {"x"}, "X-Api-Key": {"a", "b"}}, {"Authorization": {"Bearer a.b.c"}, "Cookie": {LoginCookie + "=1.a.b"}}} {
			r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/v1/messages"}, Header: header}
			for name, admit := range map[string]func(*http.Request, access.Scopes) (*Admission, error){"Admit": g.Admit, "Visit": g.Visit} {
				a, err := admit(r, need)
				client, result := a.Labels()
				if err != nil || a.Who.Tenant != "" || !a.Operates() || client != "anonymous" || result != "accepted" || a.Audited() || a.LoggedIn {
					t.Errorf("%s for %s with %v: %+v, %v", name, need, header, a, err)
				}
			}
		}
	}
}
