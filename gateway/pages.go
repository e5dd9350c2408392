package gateway

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/admission"
	"github.com/furlhq/furl/internal/origin"
	"github.com/furlhq/furl/protocol"
)

// A browser lets any web page send requests to this machine, and identifies the
// page in Origin and Sec-Fetch-Site. Clients that are not browsers send neither.
// A page of another site is refused on every path unless its origin is configured,
// even with a credential, because it can invent one.

// admitPage calls next for a request unless it comes from a web page that may not
// send it. Pages of configured origins get CORS headers.
func (g *Gateway) admitPage(w http.ResponseWriter, r *http.Request, next func(http.ResponseWriter, *http.Request)) {
	allowed, err := g.checkOrigin(r)
	if err != nil {
		g.refusePage(w, r, err)
		return
	}
	if allowed != "" {
		cors := &corsWriter{ResponseWriter: w, origin: allowed}
		cors.allow()
		w = cors
		if method := r.Header.Get("Access-Control-Request-Method"); r.Method == http.MethodOptions && method != "" {
			preflight(w, method, r.Header.Values("Access-Control-Request-Headers"))
			return
		}
	}
	next(w, withoutBrowser(r))
}

// refusePage writes a refusal in the error format of the requested API.
func (g *Gateway) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	n := &statusWriter{ResponseWriter: w}
	if ownPath(r.URL.Path) {
		apiError(n, http.StatusForbidden, err.Error())
	} else {
		g.refuse(n, g.destination(r).route, &protocol.Refusal{Status: http.StatusForbidden, Message: "furl: " + err.Error()})
	}
	g.logDenied(r, n.status, "furl")
}

// ownPath reports whether furl itself serves a path.
func ownPath(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/metrics" || strings.HasPrefix(path, apiPrefix+"/") || pagePath(path)
}

// withoutBrowser returns the request without what a browser adds and no provider should
// get. A provider would check the Origin header against its own list, but furl has
// checked it already: Anthropic refuses pages that do not send a special header, Ollama
// all but local ones. And the cookie of a login is not for providers, also if it is that
// of another gateway on this host. Other cookies stay unchanged.
func withoutBrowser(r *http.Request) *http.Request {
	origin := len(r.Header.Values("Origin")) > 0
	login := slices.ContainsFunc(r.Header["Cookie"], func(line string) bool { return strings.Contains(line, admission.LoginCookie) })
	if !origin && !login {
		return r
	}
	out := *r
	out.Header = maps.Clone(r.Header)
	out.Header.Del("Origin")
	if !login {
		return &out
	}
	var lines []string
	for _, line := range r.Header["Cookie"] {
		var kept []string
		for pair := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.TrimSpace(name) != admission.LoginCookie {
				kept = append(kept, pair)
			}
		}
		if len(kept) > 0 {
			lines = append(lines, strings.TrimSpace(strings.Join(kept, ";")))
		}
	}
	out.Header.Del("Cookie")
	if len(lines) > 0 {
		out.Header["Cookie"] = lines
	}
	return &out
}

// checkOrigin returns the configured origin of a request. It returns "" for
// requests that no page sent and for pages of the gateway itself, and an error
// for pages that may not send requests.
func (g *Gateway) checkOrigin(r *http.Request) (allowed string, err error) {
	origins, sites := r.Header.Values("Origin"), r.Header.Values("Sec-Fetch-Site")
	if len(origins) == 0 && len(sites) == 0 {
		return "", nil
	}
	if len(origins) > 1 || len(sites) > 1 {
		return "", errors.New("requests with more than one Origin or Sec-Fetch-Site header are refused")
	}
	for _, o := range origins {
		switch {
		case slices.ContainsFunc(g.o.Origins, func(pattern string) bool { return origin.Match(pattern, o) }):
			allowed = o
		case o == "null":
			return "", errors.New("requests from pages without an origin (Origin: null) are refused")
		case !ownOrigin(r, o):
			return "", fmt.Errorf("requests from pages of %.100q are refused; to allow them, add the origin to gateway.origins in the configuration", o)
		}
	}
	for _, site := range sites {
		if allowed == "" && site != "same-origin" && site != "none" {
			return "", fmt.Errorf("requests from pages of other sites are refused (Sec-Fetch-Site: %.20q)", site)
		}
	}
	// A page whose host name resolves to this machine looks like one of the
	// gateway's (DNS rebinding). If client keys are required, it has none.
	if host := hostOf(r); (g.guard == nil || !g.guard.NeedsKey()) && !g.isOwnHost(host) {
		return "", fmt.Errorf("requests from pages under the host name %.100q are refused; to allow them, add the name to gateway.hosts in the configuration", host)
	}
	return allowed, nil
}

// checkHost returns an error for a request whose host is not one of the
// gateway's. A web page whose host name resolves to this machine would send
// such a request (DNS rebinding).
func (g *Gateway) checkHost(r *http.Request) error {
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

func (g *Gateway) isOwnHost(host string) bool {
	if host == "localhost" || slices.ContainsFunc(g.o.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	// DNS rebinding needs a name; an IP address is safe.
	_, err := netip.ParseAddr(host)
	return err == nil
}

// ownOrigin reports whether an origin is the host that the request addresses. The
// scheme may differ where a proxy in front terminates TLS.
func ownOrigin(r *http.Request, o string) bool {
	u, err := url.Parse(o)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// preflight answers a CORS preflight request of a configured origin. It allows any
// method and header, because the request itself is checked like any other.
func preflight(w http.ResponseWriter, method string, headers []string) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", method)
	if len(headers) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(headers, ", "))
	}
	h.Set("Access-Control-Max-Age", "600")
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	w.WriteHeader(http.StatusNoContent)
}

// corsWriter sets the CORS headers that let pages of an origin read a response,
// and removes those of the provider.
type corsWriter struct {
	http.ResponseWriter
	origin string
}

// WriteHeader replaces the CORS headers of the provider's response.
func (c *corsWriter) WriteHeader(status int) {
	c.allow()
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap supports http.ResponseController.
func (c *corsWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *corsWriter) allow() {
	h := c.Header()
	h.Del("Access-Control-Allow-Credentials")
	h.Set("Access-Control-Allow-Origin", c.origin)
	h.Set("Access-Control-Expose-Headers", "*")
	if !slices.Contains(h.Values("Vary"), "Origin") {
		h.Add("Vary", "Origin")
	}
}
