package oidc_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/oidc"
)

// issuer is an OpenID Connect issuer.
type issuer struct {
	*httptest.Server
	mu    sync.Mutex
	keys  map[string]*rsa.PrivateKey
	asked int // for keys
	down  bool
}

func newIssuer(t testing.TB) *issuer {
	i := &issuer{keys: make(map[string]*rsa.PrivateKey)}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out any
	switch {
	case i.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/.well-known/openid-configuration":
		out = map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/a", "token_endpoint": i.URL + "/t", "id_token_signing_alg_values_supported": []string{"RS256"}}
	default:
		i.asked++
		keys := []any{}
		for id, k := range i.keys {
			keys = append(keys, map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": id, "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())})
		}
		out = map[string]any{"keys": keys}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (i *issuer) set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func newKey(t testing.TB) *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sign returns a token.
func sign(t testing.TB, k *rsa.PrivateKey, id, alg string, claims map[string]any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	head := b64([]byte(`{"alg":"`+alg+`","kid":"`+id+`"}`)) + "." + b64(payload)
	sum := sha256.Sum256([]byte(head))
	sig, err := rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return head + "." + b64(sig)
}

// Only a token of the issuer, for the audience, within its time, with a signature of one
// of the issuer's keys identifies a client.
func TestVerify(t *testing.T) {
	i, first, forged := newIssuer(t), newKey(t), newKey(t)
	i.keys["1"] = first
	now := time.Now()
	v := oidc.New(&oidc.Options{Issuer: i.URL, Audience: "furl", TenantClaim: "org", ScopesClaim: "groups", Scopes: map[string]access.Scopes{"agents": access.Client, "ops": access.Operate}, Now: func() time.Time { return now }})
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{"iss": i.URL, "aud": "furl", "sub": "auth0|1", "org": "acme", "groups": []string{"agents", "x"}, "exp": now.Add(time.Hour).Unix(), "iat": now.Unix()}
		maps.Copy(c, change)
		return c
	}
	token := func(change map[string]any) string { return sign(t, first, "1", "RS256", claims(change)) }
	who, err := v.Verify(t.Context(), token(nil))
	if want := (access.Identity{Name: "auth0|1", By: access.ByToken, Tenant: "acme", Scopes: access.Client}); err != nil || who != want {
		t.Fatalf("%+v, %v, want %+v", who, err, want)
	}
	if who, err := v.Verify(t.Context(), token(map[string]any{"groups": "ops other"})); err != nil || who.Scopes != access.Operate {
		t.Errorf("groups as text: %+v, %v", who, err)
	}
	if who, err := v.Verify(t.Context(), token(map[string]any{"groups": 7})); err != nil || who.Scopes != 0 {
		t.Errorf("groups of another type: %+v, %v", who, err)
	}
	none := b64([]byte(`{"alg":"none"}`)) + "." + strings.Split(token(nil), ".")[1] + "."
	for name, bad := range map[string]string{
		"another audience": token(map[string]any{"aud": "other"}), "expired": token(map[string]any{"exp": now.Add(-time.Minute).Unix()}), "another issuer": token(map[string]any{"iss": "https://other"}),
		"forged": sign(t, forged, "1", "RS256", claims(nil)), "no signature": none, "another algorithm": sign(t, first, "1", "HS256", claims(nil)),
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
	i, first, second := newIssuer(t), newKey(t), newKey(t)
	i.keys["1"] = first
	i.down = true
	now := time.Now()
	v := oidc.New(&oidc.Options{Issuer: i.URL, Audience: "furl", Now: func() time.Time { return now }})
	token := func(k *rsa.PrivateKey, id string) string {
		return sign(t, k, id, "RS256", map[string]any{"iss": i.URL, "aud": "furl", "sub": "ann", "exp": now.Add(time.Hour).Unix()})
	}
	if _, err := v.Verify(t.Context(), token(first, "1")); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("never reached: %v", err)
	}
	i.set(func() { i.down = false })
	now = now.Add(10 * time.Second)
	if _, err := v.Verify(t.Context(), token(first, "1")); err != nil {
		t.Fatal(err)
	}
	i.set(func() { i.down = true })
	now = now.Add(10 * time.Second)
	if _, err := v.Verify(t.Context(), token(first, "1")); err != nil {
		t.Errorf("a known key while the issuer is down: %v", err)
	}
	if _, err := v.Verify(t.Context(), token(second, "2")); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("an unknown key while the issuer is down: %v", err)
	}
	i.set(func() { i.down = false; i.keys = map[string]*rsa.PrivateKey{"2": second} })
	now = now.Add(10 * time.Second)
	if _, err := v.Verify(t.Context(), token(second, "2")); err != nil {
		t.Errorf("a rotated key: %v", err)
	}
	i.set(func() { i.asked = 0 })
	for range 20 {
		if _, err := v.Verify(t.Context(), token(first, "invented")); err == nil {
			t.Fatal("an invented key is accepted")
		}
	}
	if i.asked > 1 {
		t.Errorf("20 tokens with invented keys asked the issuer %d times", i.asked)
	}
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
