package admission

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/access"
)

// Somebody who reads the file of named keys, which has their hashes, cannot make the cookie
// of a login from it. The cookie of a gateway is valid on others with its tenants.key, or
// without one until it restarts.
func TestCookieIsNotMadeFromTheKeyFile(t *testing.T) {
	now := time.Now()
	ann, secret, err := access.NewKey("ann", "", access.Client, now, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenants := range [][]byte{nil, []byte("0123456789abcdef")} {
		guard := func() *Guard {
			g, err := New(&Options{Keys: access.NewKeys([]access.Key{ann}), TenantSecret: tenants}, &Env{State: &State{}, Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		g := guard()
		who, key, err := g.identifyLogin(t.Context(), secret, "")
		if err != nil {
			t.Fatal(err)
		}
		cookie, _ := g.newLogin(key, &who)
		if _, ok := g.checkLogin(cookie); !ok {
			t.Fatal("a cookie of the gateway is refused")
		}
		for _, known := range [][]byte{ann.Hash[:], append([]byte("key\x00"), ann.Hash[:]...)} {
			mac := hmac.New(sha256.New, known)
			fmt.Fprintf(mac, "furl page login\x00%s\x00%s", g.o.TenantBy, "")
			forged, _ := g.newLogin(loginKey{hash: mac.Sum(nil), key: &ann}, &who)
			if _, ok := g.checkLogin(forged); ok {
				t.Error("a cookie made from the hash of a key is valid")
			}
		}
		was := processSecret
		processSecret = func() []byte { return []byte("another process") }
		if _, ok := guard().checkLogin(cookie); ok != (tenants != nil) {
			t.Errorf("after a restart the cookie is valid: %v, with tenants.key: %v", ok, tenants != nil)
		}
		processSecret = was
	}
}
