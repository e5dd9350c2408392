// Package oidctest is an issuer of OpenID Connect for tests.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Issuer is an OpenID Connect issuer. Its fields are changed by Set.
type Issuer struct {
	*httptest.Server
	Keys  map[string]*rsa.PrivateKey
	Asked int  // how often for keys, and while it is down for anything
	Down  bool // it responds with 503
	// Name is the issuer in its configuration. If empty, its address.
	Name string
	// Ahead is added to the time of its responses.
	Ahead time.Duration

	mu sync.Mutex
}

// New returns an issuer without keys, which is closed at the end of the test.
func New(t testing.TB) *Issuer {
	i := &Issuer{Keys: make(map[string]*rsa.PrivateKey)}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out any
	w.Header().Set("Date", time.Now().Add(i.Ahead).UTC().Format(http.TimeFormat))
	switch {
	case i.Down:
		i.Asked++
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/.well-known/openid-configuration":
		name := i.Name
		if name == "" {
			name = i.URL
		}
		out = map[string]any{"issuer": name, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/a", "token_endpoint": i.URL + "/t", "id_token_signing_alg_values_supported": []string{"RS256"}}
	default:
		i.Asked++
		keys := []any{}
		for id, k := range i.Keys {
			keys = append(keys, map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": id, "n": B64(k.N.Bytes()), "e": B64(big.NewInt(int64(k.E)).Bytes())})
		}
		out = map[string]any{"keys": keys}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// Set changes the issuer while it runs.
func (i *Issuer) Set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// B64 encodes bytes as in a token.
func B64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// NewKey returns a key that signs tokens.
func NewKey(t testing.TB) *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Sign returns a token with claims. id and alg are in its header.
func Sign(t testing.TB, k *rsa.PrivateKey, id, alg string, claims map[string]any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	head := B64([]byte(`{"alg":"`+alg+`","kid":"`+id+`"}`)) + "." + B64(payload)
	sum := sha256.Sum256([]byte(head))
	sig, err := rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return head + "." + B64(sig)
}
