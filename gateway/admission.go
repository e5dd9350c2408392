package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/admission"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// Package admission identifies clients by keys and tokens, and has tenants, limits, the
// audit log and logins. This file has the calls of that package. Without any of these the
// gateway has no guard: each request is from the tenant "" and has all scopes.

// ErrOpenToAll is wrapped by the error of CheckListen for an address that other
// machines can reach without a client key.
var ErrOpenToAll = errors.New("other machines could use the gateway without a client key")

// CheckListen returns an error for a listen address beyond the loopback interface
// if clients need not identify themselves: every client that can reach the gateway could
// read every session.
func CheckListen(addr string, o *Options) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", addr, err)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	if o.ClientCertRequired || o.admission().Identifies() {
		return nil
	}
	return fmt.Errorf("listen on %s: %w; set gateway.client_keys_env, client_keys_file or keys_file, or listen on 127.0.0.1", addr, ErrOpenToAll)
}

// admission returns the options of the guard.
func (o *Options) admission() *admission.Options {
	return &admission.Options{
		ClientKeys: o.ClientKeys, OperatorKeys: o.OperatorKeys, Keys: o.Keys, Tokens: o.Tokens,
		Proxy: (*admission.TrustedProxy)(o.Proxy), Certificate: o.ClientIdentity,
		TenantSecret: o.TenantSecret, TenantBy: o.TenantBy,
		Limits: o.Limits, Audit: o.Audit, AuditRequired: o.AuditRequired,
	}
}

// newGuard returns the guard of a gateway, nil if it needs none.
func (g *Gateway) newGuard() (*admission.Guard, error) {
	o := g.o.admission()
	if reflect.ValueOf(o).Elem().IsZero() {
		return nil, nil
	}
	return admission.New(o, &admission.Env{
		State: &g.admissions, Now: g.o.Now, Log: g.log, Unaudited: func() { g.metrics.unaudited.Inc() },
	})
}

type admissionKey struct{}

// admissionOf returns the admission of a request that was admitted, nil without a guard.
// It panics for other requests: they must not get further.
func (g *Gateway) admissionOf(r *http.Request) *admission.Admission {
	if g.guard == nil {
		return nil
	}
	return r.Context().Value(admissionKey{}).(*admission.Admission)
}

// sessionsOf returns the sessions of an admitted request's tenant.
func (g *Gateway) sessionsOf(r *http.Request) *session.Sessions {
	return g.sessions.For(tenantOf(g.admissionOf(r)))
}

// tenantOf returns the tenant of an admission, "" without a guard.
func tenantOf(a *admission.Admission) furl.Tenant {
	if a == nil {
		return ""
	}
	return a.Who.Tenant
}

// admit identifies who sends a request that needs one of the scopes. It returns the
// request with its admission in the context, and without the credentials of furl. It and
// visitor are the only ways to an admission, and count each decision.
func (g *Gateway) admit(r *http.Request, need Scopes) (*http.Request, error) {
	if g.guard == nil {
		g.metrics.clients.WithLabelValues(string(access.ByNothing), "accepted").Inc()
		return r, nil
	}
	a, err := g.guard.Admit(r, need)
	g.metrics.clients.WithLabelValues(a.Labels()).Inc()
	if err != nil {
		return r, statusOf(err)
	}
	r = r.WithContext(context.WithValue(r.Context(), admissionKey{}, a))
	a.Strip(r)
	return r, nil
}

// visitor identifies who sends a request for the page, nil without a guard.
func (g *Gateway) visitor(r *http.Request) (*admission.Admission, error) {
	if g.guard == nil {
		g.metrics.clients.WithLabelValues(string(access.ByNothing), "accepted").Inc()
		return nil, nil
	}
	a, err := g.guard.Visit(withoutProxyLogin(r), visitScope(r))
	g.metrics.clients.WithLabelValues(a.Labels()).Inc()
	return a, statusOf(err)
}

// statusOf returns an error of the guard as one with a status.
func statusOf(err error) error {
	if e, ok := errors.AsType[*admission.Error](err); ok {
		return &statusError{e.Status, e.Err}
	}
	return err
}

// visitScope is the scope that a request for the page needs.
func visitScope(r *http.Request) Scopes {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return access.Read
	}
	return access.Change
}

// serveAdmitted calls h for an admitted request, and reports the result of an access that
// is audited.
func serveAdmitted(a *admission.Admission, w http.ResponseWriter, h func(http.ResponseWriter)) {
	if a == nil || !a.Audited() {
		h(w)
		return
	}
	noted, failed := &statusWriter{ResponseWriter: w}, true
	defer func() { a.Finish(noted.status, failed) }() // also after a panic
	h(noted)
	failed = false
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
		if err := g.checkHost(r); err != nil {
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
	return h.Get(admission.KeyHeader) != "" || slices.ContainsFunc(admission.CredentialHeaders, func(name string) bool { return h.Get(name) != "" })
}

// authorized returns h for clients with one of the scopes, and only under a host name of
// the gateway. It waits until earlier replies are recorded.
func (g *Gateway) authorized(need Scopes, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.checkHost(r); err != nil {
			if g.guard != nil {
				g.guard.Refuse(r, need, err)
			}
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
		serveAdmitted(g.admissionOf(r), w, func(w http.ResponseWriter) { h(w, r) })
	}
}

// begin counts an admitted request to a provider by its tenant, until end is called with
// the bytes of the request and of its response. It returns the refusal of a request
// beyond a limit.
func (g *Gateway) begin(h http.Header, r *http.Request) (end func(bytes int64), refusal *protocol.Refusal) {
	a := g.admissionOf(r)
	if a == nil {
		return func(int64) {}, nil
	}
	end, limit := a.Begin()
	if limit != nil {
		return nil, g.limited(h, limit)
	}
	return end, nil
}

// limited counts a refusal because of a limit, and returns it.
func (g *Gateway) limited(h http.Header, e *access.LimitError) *protocol.Refusal {
	g.metrics.limited.WithLabelValues(e.Limit).Inc()
	h.Set("Retry-After", strconv.Itoa(int(e.Retry.Seconds())))
	return &protocol.Refusal{Status: http.StatusTooManyRequests, Message: "furl: " + e.Error()}
}

// beginSession returns the refusal of a request that would begin a session beyond the
// limit of its tenant. Nothing of the request is recorded yet.
func (c *call) beginSession(ctx context.Context, s *session.Session) error {
	a := c.g.admissionOf(c.r)
	if a == nil || c.began || s.Head() != 0 {
		return nil
	}
	c.began = true // a request that is sent again counts once
	limit := a.BeginSession(func(most int) (n int, err error) {
		for _, err := range c.g.sessions.Store().Sessions(ctx, a.Who.Tenant, storage.SessionQuery{Limit: most}) {
			if err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	})
	if limit != nil {
		return c.g.limited(c.Header(), limit)
	}
	return nil
}

// deniedInterval is the shortest time between two log lines about denied requests.
// So a client that guesses keys does not fill the log.
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
