package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
)

// ErrOpenToAll is wrapped by the error of CheckListen for an address that other
// machines can reach without a client key.
var ErrOpenToAll = errors.New("other machines could use the gateway without a client key")

// CheckListen returns an error for a listen address beyond the loopback interface
// if no client keys are configured: anybody who can reach the gateway could read
// every session.
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

// guard authorizes requests.
type guard struct {
	keys         keyDigests // client keys; empty: no key is required
	operators    keyDigests // operator keys, for operations that concern all tenants
	tenantSecret []byte     // HMAC key of tenant names
	tenantBy     TenantBy   // identifies the tenant; "": all clients are the tenant ""
	hosts        []string   // host names of the gateway
	loginKeys    [][]byte   // of the cookies of the page, one for each client key
	origins      []string   // of the web pages that may send requests, as patterns of origin.Match
}

func newGuard(o *Options) *guard {
	g := &guard{
		keys: newKeyDigests(o.ClientKeys), operators: newKeyDigests(o.OperatorKeys),
		tenantSecret: slices.Clone(o.TenantSecret), tenantBy: o.TenantBy, hosts: slices.Clone(o.Hosts), origins: slices.Clone(o.Origins),
	}
	g.loginKeys = newLoginKeys(g)
	return g
}

// checkHost returns an error for a request whose host is not one of the
// gateway's. A web page whose host name resolves to this machine would send
// such a request (DNS rebinding).
func (g *guard) checkHost(r *http.Request) error {
	if host := hostOf(r); !g.isOwnHost(host) {
		return fmt.Errorf("unknown host name %.100q: to allow it, add it to gateway.hosts in the configuration", host)
	}
	return nil
}

// hostOf returns the host of a request without its port.
func hostOf(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.Trim(host, "[]")
}

func (g *guard) isOwnHost(host string) bool {
	if host == "localhost" || slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	// DNS rebinding needs a name; an IP address is safe.
	_, err := netip.ParseAddr(host)
	return err == nil
}

// authorizeRequest reports whether a request to a provider may be sent, and
// writes the refusal if not. Pages of other sites were refused before
// (pages.go). But a browser does not mark a GET request of a page to its own
// site, whose name may resolve to this machine (DNS rebinding). So a request
// without a credential must use a host name of the gateway.
func (g *Gateway) authorizeRequest(w http.ResponseWriter, r *http.Request, rt *route) bool {
	if err := g.guard.authorizeClient(r); err != nil {
		g.refuse(w, rt, refusalOf(err))
		return false
	}
	if !hasCredential(r.Header) {
		if err := g.guard.checkHost(r); err != nil {
			g.refuse(w, rt, &protocol.Refusal{Status: http.StatusForbidden, Message: "furl: request without a credential: " + err.Error()})
			return false
		}
	}
	if rt.up != nil {
		if err := rt.up.CheckCredentials(r.URL, r.Header); err != nil {
			g.refuse(w, rt, &protocol.Refusal{Status: http.StatusUnauthorized, Message: "furl: " + err.Error() + "; the request was not sent"})
			return false
		}
	}
	return true
}

// hasCredential reports whether a request has a credential.
func hasCredential(h http.Header) bool {
	for _, name := range []string{"Authorization", "X-Api-Key", clientKeyHeader, "Api-Key", "X-Goog-Api-Key"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return false
}

// forClients returns h for clients only, and only under a host name of the gateway.
// It waits until earlier replies are recorded.
func (g *Gateway) forClients(h http.HandlerFunc) http.HandlerFunc {
	return g.authorized(h, (*guard).authorizeClient)
}

// forOperators is forClients for operations that concern all tenants.
func (g *Gateway) forOperators(h http.HandlerFunc) http.HandlerFunc {
	return g.authorized(h, (*guard).authorizeOperator)
}

// authorized returns h for the requests that allow accepts.
func (g *Gateway) authorized(h http.HandlerFunc, allow func(*guard, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.guard.checkHost(r); err != nil {
			apiError(w, http.StatusForbidden, err.Error())
			g.logDenied(r, http.StatusForbidden, "furl")
			return
		}
		if err := allow(g.guard, r); err != nil {
			apiError(w, apiStatus(err), err.Error())
			g.logDenied(r, apiStatus(err), "furl")
			return
		}
		g.waitBriefly(r.Context())
		h(w, r)
	}
}

// deniedInterval is the shortest time between two log lines about denied requests.
// It keeps somebody who guesses keys from filling the log.
const deniedInterval = time.Second

// denials limits the log lines about denied requests.
type denials struct {
	mu         sync.Mutex
	next       time.Time
	suppressed int
}

// logDenied logs a response with status 401 or 403, so that the operator sees why a
// client fails; by is who sent it, "furl" or "provider". Requests to models are
// logged by call.end instead.
func (g *Gateway) logDenied(r *http.Request, status int, by string) {
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return
	}
	d := &g.denials
	d.mu.Lock()
	defer d.mu.Unlock()
	now := g.o.Now()
	if stillWaiting(now, d.next, deniedInterval) {
		d.suppressed++
		return
	}
	attrs := []any{"path", upstream.Path(r.URL), "status", status, "by", by}
	if d.suppressed > 0 {
		attrs = append(attrs, "others", d.suppressed)
	}
	d.next, d.suppressed = now.Add(deniedInterval), 0
	g.log.Info("request denied", attrs...)
}
