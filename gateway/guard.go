package gateway

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// ErrOpenToAll is returned for an address that others can reach without any
// key that clients must show.
var ErrOpenToAll = errors.New("beyond this machine the gateway needs keys that clients must show")

// CheckListen refuses to serve beyond the loopback interface without client
// keys: whoever can reach the gateway could read every session.
func CheckListen(addr string, keys []string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", addr, err)
	}
	if len(keys) > 0 || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen on %s: %w; set gateway.client_keys_env or client_keys_file, or listen on 127.0.0.1", addr, ErrOpenToAll)
}

// guard decides who may ask what.
type guard struct {
	keys   [][sha256.Size]byte // of the clients; none: anybody on this machine
	secret []byte              // keys the tenants' hashes
	single bool                // everybody is the one tenant ""
	hosts  []string            // names under which the gateway may be addressed
	// origins are the web pages that may send requests, as origin.Match
	// compares them.
	origins []string
}

func newGuard(o *Options) *guard {
	g := &guard{secret: slices.Clone(o.TenantSecret), single: len(o.TenantSecret) == 0, hosts: slices.Clone(o.Hosts), origins: slices.Clone(o.Origins)}
	for _, k := range o.ClientKeys {
		g.keys = append(g.keys, sha256.Sum256([]byte(k)))
	}
	return g
}

// clientKeyHeader carries the gateway's own key, so that the provider's
// credential can stay where the provider wants it.
const clientKeyHeader = "X-Furl-Key"

// admit checks the client's key. The key is the gateway's business: where it
// came in a header of furl's it is taken out of what goes on.
func (g *guard) admit(h http.Header) bool {
	if len(g.keys) == 0 {
		return true
	}
	shown := h.Get(clientKeyHeader)
	if shown == "" {
		shown = credential(h)
	}
	sum := sha256.Sum256([]byte(shown))
	ok := 0
	for i := range g.keys {
		ok |= subtle.ConstantTimeCompare(sum[:], g.keys[i][:])
	}
	return ok == 1
}

// tenant is a keyed hash of the credential, or of the gateway's own key where
// the provider asks for none. The credential itself goes to the upstream and
// nowhere else.
func (g *guard) tenant(h http.Header) furl.Tenant {
	if g.single {
		return ""
	}
	mac := hmac.New(sha256.New, g.secret)
	mac.Write([]byte(cmp.Or(credential(h), h.Get(clientKeyHeader))))
	return furl.Tenant(hex.EncodeToString(mac.Sum(nil)[:16]))
}

// credential is what a client shows to its provider.
func credential(h http.Header) string {
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(token)
	}
	if other := h.Get("Authorization"); other != "" {
		return other
	}
	return h.Get("Api-Key") // Azure's
}

// named refuses a request under a name that is not the gateway's, which a web
// page whose own name was pointed at this machine would use (DNS rebinding).
func (g *guard) named(r *http.Request) error {
	if host := hostOf(r); !g.known(host) {
		return fmt.Errorf("the host name %.100q is not one of this gateway's; to allow it, add it to gateway.hosts in the configuration", host)
	}
	return nil
}

// hostOf is the name by which a request addresses the gateway.
func hostOf(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.Trim(host, "[]")
}

func (g *guard) known(host string) bool {
	if host == "localhost" || slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	// An address is no name that anybody could point elsewhere.
	_, err := netip.ParseAddr(host)
	return err == nil
}
