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
	// An address is not a name that anybody could point elsewhere.
	_, err := netip.ParseAddr(host)
	return err == nil
}

// admitted reports whether a request to a provider may go on, and answers it if
// not. Pages of other sites were refused before (pages.go). But a browser does
// not mark a GET request of a page to its own site, whose name may have been
// pointed at this machine (DNS rebinding). So a request without a credential
// must use a name of the gateway.
func (g *Gateway) admitted(w http.ResponseWriter, r *http.Request, rt *route) bool {
	if err := g.guard.admit(r); err != nil {
		g.refuse(w, rt, refusalOf(err))
		return false
	}
	if !shows(r.Header) {
		if err := g.guard.named(r); err != nil {
			g.refuse(w, rt, &protocol.Refusal{Status: http.StatusForbidden, Message: "furl: without a key, " + err.Error()})
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

// shows reports whether a request carries a credential.
func shows(h http.Header) bool {
	for _, name := range []string{"Authorization", "X-Api-Key", clientKeyHeader, "Api-Key", "X-Goog-Api-Key"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return false
}

// local serves furl's API to its clients, and only under a name of the
// gateway's. It waits until earlier answers are recorded.
func (g *Gateway) local(h http.HandlerFunc) http.HandlerFunc { return g.own(h, (*guard).admit) }

// operated is local for what concerns all tenants.
func (g *Gateway) operated(h http.HandlerFunc) http.HandlerFunc { return g.own(h, (*guard).operate) }

func (g *Gateway) own(h http.HandlerFunc, allow func(*guard, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.guard.named(r); err != nil {
			apiError(w, http.StatusForbidden, err.Error())
			g.denied(r, http.StatusForbidden, "furl")
			return
		}
		if err := allow(g.guard, r); err != nil {
			apiError(w, apiStatus(err), err.Error())
			g.denied(r, apiStatus(err), "furl")
			return
		}
		g.wait(r.Context())
		h(w, r)
	}
}

// deniedEvery is how often the log says that somebody was denied: whoever tries
// keys is not to fill it.
const deniedEvery = time.Second

// denials are those that the log has not been told of.
type denials struct {
	mu     sync.Mutex
	next   time.Time
	unsaid int
}

// denied tells the log that a request which is none to a model was answered with
// 401 or 403, so that whoever runs the gateway sees why a client fails; by says
// whose answer it was. Requests to models are told of by call.end.
func (g *Gateway) denied(r *http.Request, status int, by string) {
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return
	}
	d := &g.denials
	d.mu.Lock()
	defer d.mu.Unlock()
	now := g.o.Now()
	if stillWaits(now, d.next, deniedEvery) {
		d.unsaid++
		return
	}
	attrs := []any{"path", upstream.Path(r.URL), "status", status, "by", by}
	if d.unsaid > 0 {
		attrs = append(attrs, "others", d.unsaid)
	}
	d.next, d.unsaid = now.Add(deniedEvery), 0
	g.log.Info("denied", attrs...)
}
