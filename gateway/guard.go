package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
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
	keys      secrets  // of the clients; none: anybody on this machine
	operators secrets  // for what concerns all tenants
	secret    []byte   // keys the tenants' hashes
	by        TenantBy // what tells the tenant; "": everybody is the one tenant ""
	hosts     []string // names under which the gateway may be addressed
	// origins are the web pages that may send requests, as origin.Match
	// compares them.
	origins []string
}

func newGuard(o *Options) *guard {
	return &guard{
		keys: digestsOf(o.ClientKeys), operators: digestsOf(o.OperatorKeys),
		secret: slices.Clone(o.TenantSecret), by: o.TenantBy, hosts: slices.Clone(o.Hosts), origins: slices.Clone(o.Origins),
	}
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
