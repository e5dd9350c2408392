package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

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
	allowed, err := g.guard.checkOrigin(r)
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
	next(w, withoutOrigin(r))
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

// withoutOrigin returns the request without its Origin header. A provider would
// check the origin against its own list, but furl has checked it already.
// Anthropic refuses pages that do not send a special header, Ollama all but local
// ones.
func withoutOrigin(r *http.Request) *http.Request {
	if len(r.Header.Values("Origin")) == 0 {
		return r
	}
	out := *r
	out.Header = r.Header.Clone()
	out.Header.Del("Origin")
	return &out
}

// checkOrigin returns the configured origin of a request. It returns "" for
// requests that no page sent and for pages of the gateway itself, and an error
// for pages that may not send requests.
func (g *guard) checkOrigin(r *http.Request) (allowed string, err error) {
	origins, sites := r.Header.Values("Origin"), r.Header.Values("Sec-Fetch-Site")
	if len(origins) == 0 && len(sites) == 0 {
		return "", nil
	}
	if len(origins) > 1 || len(sites) > 1 {
		return "", errors.New("requests with more than one Origin or Sec-Fetch-Site header are refused")
	}
	for _, o := range origins {
		switch {
		case slices.ContainsFunc(g.origins, func(pattern string) bool { return origin.Match(pattern, o) }):
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
	if host := hostOf(r); (!g.clientKeys || g.ambient()) && !g.isOwnHost(host) {
		return "", fmt.Errorf("requests from pages under the host name %.100q are refused; to allow them, add the name to gateway.hosts in the configuration", host)
	}
	return allowed, nil
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
