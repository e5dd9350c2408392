package oidc_test

import (
	"crypto/rsa"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/dev/oidctest"
	"github.com/furlhq/furl/internal/oidc"
)

// Only a token of the issuer, for the audience, within its time, with a signature of one
// of the issuer's keys identifies a client.
func TestVerify(t *testing.T) {
	i, first, forged := oidctest.New(t), oidctest.NewKey(t), oidctest.NewKey(t)
	i.Keys["1"] = first
	now := time.Now()
	v := oidc.New(&oidc.Options{Issuer: i.URL, Audience: "furl", TenantClaim: "org", ScopesClaim: "groups", Scopes: map[string]access.Scopes{"agents": access.Client, "ops": access.Operate}, Now: func() time.Time { return now }})
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{"iss": i.URL, "aud": "furl", "sub": "auth0|1", "org": "acme", "groups": []string{"agents", "x"}, "exp": now.Add(time.Hour).Unix(), "iat": now.Unix()}
		maps.Copy(c, change)
		return c
	}
	token := func(change map[string]any) string { return oidctest.Sign(t, first, "1", "RS256", claims(change)) }
	who, err := v.Verify(t.Context(), token(nil))
	if want := (access.Identity{Name: "auth0|1", By: access.ByToken, Tenant: "acme", Scopes: access.Client, Expires: time.Unix(now.Add(time.Hour).Unix(), 0), Signer: who.Signer}); err != nil || who != want {
		t.Fatalf("%+v, %v, want %+v", who, err, want)
	}
	if who, err := v.Verify(t.Context(), token(map[string]any{"groups": "ops other"})); err != nil || who.Scopes != access.Operate {
		t.Errorf("groups as text: %+v, %v", who, err)
	}
	if who, err := v.Verify(t.Context(), token(map[string]any{"groups": 7})); err != nil || who.Scopes != 0 {
		t.Errorf("groups of another type: %+v, %v", who, err)
	}
	none := oidctest.B64([]byte(`{"alg":"none"}`)) + "." + strings.Split(token(nil), ".")[1] + "."
	for name, bad := range map[string]string{
		"another audience": token(map[string]any{"aud": "other"}), "expired": token(map[string]any{"exp": now.Add(-time.Minute).Unix()}), "another issuer": token(map[string]any{"iss": "https://other"}),
		"forged": oidctest.Sign(t, forged, "1", "RS256", claims(nil)), "no signature": none, "another algorithm": oidctest.Sign(t, first, "1", "HS256", claims(nil)),
		"no tenant": token(map[string]any{"org": nil}), "a list as tenant": token(map[string]any{"org": []string{"acme"}}), "a hashed tenant": token(map[string]any{"org": strings.Repeat("0a", 16)}), "the command line's tenant": token(map[string]any{"org": "local"}),
		"not a token": "a.b.c", "no time": token(map[string]any{"exp": nil}),
	} {
		if who, err := v.Verify(t.Context(), bad); err == nil {
			t.Errorf("%s: %+v", name, who)
		} else if strings.Contains(err.Error(), bad) {
			t.Errorf("%s: the error has the token: %v", name, err)
		}
	}
	if !v.Issued(token(nil)) || v.Issued(token(map[string]any{"iss": "https://other"})) || v.Issued("a.b.c") || v.Issued("sk-key") {
		t.Error("tokens of the issuer are not told from others")
	}
}

// A rotated key is accepted, and known keys are used while the issuer is down. Tokens
// with invented keys do not flood it.
func TestIssuerIsDown(t *testing.T) {
	i, first, second := oidctest.New(t), oidctest.NewKey(t), oidctest.NewKey(t)
	i.Keys["1"] = first
	i.Down = true
	now := time.Now()
	v := oidc.New(&oidc.Options{Issuer: i.URL, Audience: "furl", Now: func() time.Time { return now }})
	token := func(k *rsa.PrivateKey, id string) string {
		return oidctest.Sign(t, k, id, "RS256", map[string]any{"iss": i.URL, "aud": "furl", "sub": "ann", "exp": now.Add(time.Hour).Unix()})
	}
	if _, err := v.Verify(t.Context(), token(first, "1")); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("never reached: %v", err)
	}
	i.Set(func() { i.Down = false })
	now = now.Add(10 * time.Second)
	if _, err := v.Verify(t.Context(), token(first, "1")); err != nil {
		t.Fatal(err)
	}
	i.Set(func() { i.Down = true })
	now = now.Add(10 * time.Second)
	if _, err := v.Verify(t.Context(), token(first, "1")); err != nil {
		t.Errorf("a known key while the issuer is down: %v", err)
	}
	if _, err := v.Verify(t.Context(), token(second, "2")); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("an unknown key while the issuer is down: %v", err)
	}
	i.Set(func() { i.Down = false; i.Keys = map[string]*rsa.PrivateKey{"2": second} })
	now = now.Add(10 * time.Second)
	if _, err := v.Verify(t.Context(), token(second, "2")); err != nil {
		t.Errorf("a rotated key: %v", err)
	}
	i.Set(func() { i.Asked = 0 })
	for range 20 {
		if _, err := v.Verify(t.Context(), token(first, "invented")); err == nil {
			t.Fatal("an invented key is accepted")
		}
	}
	if i.Asked > 1 {
		t.Errorf("20 tokens with invented keys asked the issuer %d times", i.Asked)
	}
	// Neither do they while it fails.
	i.Set(func() { i.Down, i.Asked = true, 0 })
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		if _, err := v.Verify(t.Context(), token(first, "invented")); err == nil {
			t.Fatal("an invented key is accepted")
		}
	}
	if i.Asked > 3 {
		t.Errorf("100 tokens in 10 seconds asked the failing issuer %d times", i.Asked)
	}
}

// A key that the issuer has removed is forgotten within ten minutes, and so is a login with
// a token that it has signed. Known keys survive a reload while the issuer is down. A login
// ends when the issuer, the audience or the tenant's claim are others.
func TestRemovedKeys(t *testing.T) {
	i, first, second := oidctest.New(t), oidctest.NewKey(t), oidctest.NewKey(t)
	i.Keys["1"], i.Keys["2"] = first, second
	now := time.Now()
	o := oidc.Options{Issuer: i.URL, Audience: "furl", Now: func() time.Time { return now }}
	v := oidc.New(&o)
	token := func(k *rsa.PrivateKey, id string) string {
		return oidctest.Sign(t, k, id, "RS256", map[string]any{"iss": i.URL, "aud": "furl", "sub": "ann", "exp": now.Add(time.Hour).Unix()})
	}
	logins := make(map[string]string)
	for id, k := range map[string]*rsa.PrivateKey{"1": first, "2": second} {
		who, err := v.Verify(t.Context(), token(k, id))
		if err != nil || !v.Trusts(who.Signer) {
			t.Fatalf("%+v, %v", who, err)
		}
		logins[id] = who.Signer
	}
	if logins["1"] == logins["2"] || v.Trusts("") || v.Trusts(logins["1"]+"x") {
		t.Errorf("the logins are %v", logins)
	}
	i.Set(func() { i.Down = true })
	now = now.Add(8 * time.Minute)
	o.Previous = v
	reloaded := oidc.New(&o)
	if _, err := reloaded.Verify(t.Context(), token(first, "1")); err != nil || !reloaded.Trusts(logins["1"]) {
		t.Errorf("after a reload while the issuer is down: %v", err)
	}
	i.Set(func() { i.Down = false; delete(i.Keys, "1") })
	now = now.Add(2 * time.Minute)
	if _, err := reloaded.Verify(t.Context(), token(first, "1")); err == nil || errors.Is(err, access.ErrUnavailable) {
		t.Errorf("ten minutes after the key was removed: %v", err)
	}
	if reloaded.Trusts(logins["1"]) || !reloaded.Trusts(logins["2"]) {
		t.Error("a login with the removed key goes on, or another one has ended")
	}
	for name, change := range map[string]func(*oidc.Options){
		"audience": func(o *oidc.Options) { o.Audience = "other" }, "claim": func(o *oidc.Options) { o.TenantClaim = "org" },
		"issuer": func(o *oidc.Options) { o.Issuer = oidctest.New(t).URL },
	} {
		other := o
		other.Previous = reloaded
		change(&other)
		if oidc.New(&other).Trusts(logins["2"]) {
			t.Errorf("a login goes on with another %s", name)
		}
	}
}

// A token above the largest size is the issuer's too, so it is not for a provider.
func TestLargeToken(t *testing.T) {
	i, k := oidctest.New(t), oidctest.NewKey(t)
	i.Keys["1"] = k
	v := oidc.New(&oidc.Options{Issuer: i.URL, Audience: "furl"})
	large := oidctest.Sign(t, k, "1", "RS256", map[string]any{"iss": i.URL, "aud": "furl", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "groups": strings.Repeat("group ", 4000)})
	if !v.Issued(large) {
		t.Error("a large token would be sent to a provider")
	}
	if _, err := v.Verify(t.Context(), large); err == nil || !strings.Contains(err.Error(), "bytes, at most 16384") {
		t.Errorf("%v", err)
	}
}

// Check tells an issuer that works from one that is down, has another name, or has no
// keys, and returns the issuer's time.
func TestCheck(t *testing.T) {
	i := oidctest.New(t)
	check := func() (oidc.Health, error) {
		return oidc.Check(t.Context(), i.URL, i.Client())
	}
	fails := func(want string) {
		t.Helper()
		if _, err := check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	fails("has no keys that sign tokens")
	i.Set(func() { i.Keys["1"] = oidctest.NewKey(t); i.Ahead = time.Hour })
	if h, err := check(); err != nil || h.Keys != 1 || time.Until(h.Date) < 50*time.Minute {
		t.Errorf("%+v, %v", h, err)
	}
	i.Set(func() { i.Name = "https://other" })
	fails(`names the issuer https://other`)
	i.Set(func() { i.Down = true })
	fails("responds with 503")
	i.Close()
	fails("connect")
}

func FuzzIssued(f *testing.F) {
	v := oidc.New(&oidc.Options{Issuer: "https://issuer", Audience: "furl"})
	f.Add("a.eyJpc3MiOiJodHRwczovL2lzc3VlciJ9.c")
	f.Add("...")
	f.Fuzz(func(t *testing.T, s string) {
		if v.Issued(s) && strings.Count(s, ".") != 2 {
			t.Errorf("%q", s)
		}
	})
}
