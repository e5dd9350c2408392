package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
)

// ErrOpenToAll is wrapped by the error of CheckListen for an address that other
// machines can reach without a client key.
var ErrOpenToAll = errors.New("other machines could use the gateway without a client key")

// CheckListen returns an error for a listen address beyond the loopback interface
// if clients need not identify themselves: anybody who can reach the gateway could
// read every session.
func CheckListen(addr string, o *Options) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", addr, err)
	}
	if o.identifies() || o.ClientCertRequired || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen on %s: %w; set gateway.client_keys_env, client_keys_file or keys_file, or listen on 127.0.0.1", addr, ErrOpenToAll)
}

// guard authorizes requests.
type guard struct {
	keys         *access.Keys // of clients and operators
	clientKeys   bool         // clients may have a key
	operators    bool         // there are keys for operators
	required     bool         // clients must identify themselves
	tokens       TokenVerifier
	proxy        *TrustedProxy
	certName     string     // the part of a certificate that names a client; "": none
	tenantSecret []byte     // HMAC key of tenant names
	tenantBy     TenantBy   // identifies the tenant; "": all clients are the tenant ""
	hosts        []string   // host names of the gateway
	loginKeys    []loginKey // of the cookies of the page, one for each client key
	origins      []string   // of the web pages that may send requests, as patterns of origin.Match
	now          func() time.Time
}

func newGuard(o *Options) *guard {
	g := &guard{
		keys: newKeys(o), clientKeys: len(o.ClientKeys) > 0 || o.Keys != nil, required: o.identifies(),
		tokens: o.Tokens, proxy: o.Proxy, certName: o.ClientIdentity, now: o.Now,
		tenantSecret: slices.Clone(o.TenantSecret), tenantBy: o.TenantBy, hosts: slices.Clone(o.Hosts), origins: slices.Clone(o.Origins),
	}
	g.operators = slices.ContainsFunc(g.keys.All(), func(k access.Key) bool { return k.Scopes.Has(access.Operate) && k.By != access.ByClientKey })
	g.loginKeys = newLoginKeys(g)
	return g
}

// ambient reports whether something that is not in the request's own headers can
// identify a client, so that a browser sends it unasked.
func (g *guard) ambient() bool { return g.proxy != nil || g.certName != "" }

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

// admit identifies who sends a request that needs one of the scopes. It returns the
// request with the identity in its context, and without the credentials of furl. It is
// the only way to an identity, and counts each decision.
func (g *Gateway) admit(r *http.Request, need Scopes) (*http.Request, error) {
	who, err := g.guard.admit(r, need)
	g.metrics.admitted(&who, err)
	entry, failure := g.audited(r, &who, need, err)
	if err == nil {
		err = failure
	}
	if err != nil {
		return r, err
	}
	r = g.guard.withoutIdentity(r)
	return r.WithContext(context.WithValue(r.Context(), admittedKey{}, admitted{who, entry})), nil
}

// authorizeRequest returns a request to a provider that may be sent, without the
// credentials of furl. If ok is false, it has written the refusal. Pages of other sites
// were refused before (pages.go). But a browser does not mark a GET request of a page
// to its own site, whose name may resolve to this machine (DNS rebinding). So a request
// without a credential must use a host name of the gateway.
func (g *Gateway) authorizeRequest(w http.ResponseWriter, r *http.Request, rt *route) (_ *http.Request, ok bool) {
	out, err := g.admit(r, access.Proxy)
	if err != nil {
		g.refuse(w, rt, refusalOf(err))
		return r, false
	}
	if !hasCredential(r.Header) {
		if err := g.guard.checkHost(r); err != nil {
			g.refuse(w, rt, &protocol.Refusal{Status: http.StatusForbidden, Message: "furl: request without a credential: " + err.Error()})
			return r, false
		}
	}
	if rt.up != nil {
		if err := rt.up.CheckCredentials(out.URL, out.Header); err != nil {
			g.refuse(w, rt, &protocol.Refusal{Status: http.StatusUnauthorized, Message: "furl: " + err.Error() + "; the request was not sent" + g.up.cure(rt.up)})
			return r, false
		}
	}
	if strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") {
		g.refuse(w, rt, signedForAWS)
		return r, false
	}
	return out, true
}

// signedForAWS is the refusal of requests with a signature instead of a key. The
// signature covers the host name and the body.
var signedForAWS = &protocol.Refusal{
	Status:  http.StatusBadRequest,
	Message: "furl: a request signed for AWS (SigV4) cannot be forwarded, because the signature is only valid for this host name and body, and the request was not sent; use an API key instead: AWS_BEARER_TOKEN_BEDROCK, or ANTHROPIC_AWS_API_KEY for Claude Platform on AWS",
}

// hasCredential reports whether a request has a credential.
func hasCredential(h http.Header) bool {
	return h.Get(clientKeyHeader) != "" || slices.ContainsFunc(credentialHeaders, func(name string) bool { return h.Get(name) != "" })
}

// authorized returns h for clients with one of the scopes, and only under a host name of
// the gateway. It waits until earlier replies are recorded.
func (g *Gateway) authorized(need Scopes, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.guard.checkHost(r); err != nil {
			_, _ = g.audited(r, &Identity{}, need, err) // refused in any case
			apiError(w, http.StatusForbidden, err.Error())
			g.logDenied(r, http.StatusForbidden, "furl")
			return
		}
		r, err := g.admit(r, need)
		if err != nil {
			apiError(w, apiStatus(err), err.Error())
			g.logDenied(r, apiStatus(err), "furl")
			return
		}
		g.waitBriefly(r.Context())
		g.serveAudited(admittedOf(r.Context()).entry, w, func(w http.ResponseWriter) { h(w, r) })
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
