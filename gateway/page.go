package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/admission"
	"github.com/furlhq/furl/internal/quota"
	"github.com/furlhq/furl/session"
)

// Page is the web page that a Gateway serves to browsers. Package internal/web
// implements it. The gateway authorizes requests before it calls a Page, and sets
// headers that keep other sites from framing the page and from reading it; a Page
// may replace them. Requests under /furl/v1 are furl's API and never reach a Page.
//
// A GET request must not change anything, because pages of other sites may link to
// it. POST requests come from the page itself or from a program.
type Page interface {
	// ServePage serves GET / for browsers, and GET, HEAD and POST requests under
	// /furl/, with the sessions of the request's tenant. The context of a request
	// for text/event-stream ends when the gateway stops.
	ServePage(w http.ResponseWriter, r *http.Request, v Visit)
	// ServeAsset serves GET /furl/assets/…: files of the page without content of
	// users. They need no authorization.
	ServeAsset(w http.ResponseWriter, r *http.Request)
	// ServeLogin writes the login form with an HTTP status. The form sends the
	// fields key and to, and those of LoginFieldsOf, to POST /furl/login. to is the
	// path to continue at, and message why an earlier login was refused, or "".
	ServeLogin(w http.ResponseWriter, r *http.Request, status int, to, message string)
	// ServeError writes an error page, such as 403 for an unknown host name.
	ServeError(w http.ResponseWriter, r *http.Request, status int, message string)
}

// Visit is what a Page may use for a request.
type Visit struct {
	// Sessions are the sessions of the request's tenant.
	Sessions *session.Sessions
	// Compactor writes summaries that a person requests, nil if there is no provider.
	Compactor Compactor
	// State returns what a visitor should know of the gateway, for a session or, if it is
	// nil, for all. If the function is nil, there is nothing.
	State func(ctx context.Context, s *session.Session) []StateLine
	// LoggedIn reports that the browser has logged in with a key, so that POST
	// /furl/logout has an effect.
	LoggedIn bool
}

// StateLine is a line about the gateway's state.
type StateLine struct {
	Text string
	// Warn is set if the visitor may have to do something.
	Warn bool
}

// stateFor returns Visit.State for a tenant.
func (g *Gateway) stateFor(t furl.Tenant) func(context.Context, *session.Session) []StateLine {
	return func(ctx context.Context, s *session.Session) (lines []StateLine) {
		for _, u := range g.spendingNear(ctx, t, s) {
			lines = append(lines, StateLine{"Spending limit: " + u.String(), true})
		}
		now := g.o.Now()
		if s != nil {
			if p := s.Meta().Plan; p != nil {
				lines = append(lines, planLine("", p.Windows, now)...)
			}
			return lines
		}
		for _, a := range g.plansOf(&t) {
			lines = append(lines, planLine(a.Provider+" ", a.Windows, now)...)
		}
		return lines
	}
}

// planLine describes the windows of a plan that have not been reset.
func planLine(prefix string, windows []quota.Window, now time.Time) (lines []StateLine) {
	for i := range windows {
		if w := &windows[i]; w.Minutes > 0 && w.Resets.After(now) {
			f, ok := quota.ForecastOf(w, now)
			lines = append(lines, StateLine{prefix + quota.Words(w, now), w.Used >= 0.8 || ok && f.BeforeReset})
		}
	}
	return lines
}

// pageBody is the largest body of a request to the page, in bytes. An edited summary
// of 1 MiB is up to three times as large in a form.
const pageBody = 4 << 20

// pagePath reports whether a path belongs to the page, apart from the root.
func pagePath(path string) bool {
	return (path == "/furl" || strings.HasPrefix(path, "/furl/")) && path != apiPrefix && !strings.HasPrefix(path, apiPrefix+"/")
}

// forPage reports whether a request is for the page.
func (g *Gateway) forPage(r *http.Request) bool {
	if g.o.Page == nil {
		return false
	}
	clean, ok := cleanPath(r)
	return ok && (pagePath(clean.URL.Path) || clean.URL.Path == "/" && browses(r))
}

// browses reports whether a browser requests an HTML document. Its credential would
// be one for the provider, unless it is that of a proxy in front of the gateway.
func browses(r *http.Request) bool {
	h := withoutProxyLogin(r).Header.Clone()
	h.Del(admission.KeyHeader)
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && acceptsHTML(r) && !hasCredential(h)
}

func acceptsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// pageRoutes registers the handlers of the page.
func (g *Gateway) pageRoutes() {
	g.mux.HandleFunc("/furl", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusSeeOther) })
	g.mux.HandleFunc("/furl/", g.forVisitors(g.visit))
	g.mux.HandleFunc("GET /furl/login", g.forVisitors(g.loginForm))
	g.mux.HandleFunc("POST /furl/login", g.forVisitors(g.login))
	g.mux.HandleFunc("POST /furl/logout", g.forVisitors(g.logout))
	g.mux.HandleFunc("GET /furl/assets/", g.asset)
	g.mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		if g.o.Page == nil || hasCredential(r.Header) {
			g.provider(w, r)
			return
		}
		http.NotFound(w, r) // browsers request it unasked; the page names another icon
	})
}

// noPage responds to a request for the page, which is turned off.
func noPage(w http.ResponseWriter) {
	apiError(w, http.StatusNotFound, "the page is turned off (gateway.page)")
}

// forVisitors returns h for requests that may reach the page: under a host name of the
// gateway, and not from a page of another site.
func (g *Gateway) forVisitors(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if g.o.Page == nil {
			noPage(w)
			return
		}
		guardPage(w.Header())
		w.Header().Set("Cache-Control", "no-store")
		err := g.checkHost(r)
		if err == nil {
			err = g.checkVisit(r)
		}
		if err != nil {
			g.pageError(w, r, http.StatusForbidden, err.Error())
			return
		}
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodPost:
		default:
			w.Header().Set("Allow", "GET, HEAD, POST")
			g.pageError(w, r, http.StatusMethodNotAllowed, "method not allowed")
			return
		}
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			ctx, end := g.untilDrained(r.Context())
			defer end()
			r = r.WithContext(ctx)
		}
		r.Body = http.MaxBytesReader(w, r.Body, pageBody)
		h(w, r)
	}
}

// guardPage sets the headers that keep other sites from framing, opening and reading
// a page, and scripts of other sites from running in it. A stricter Referrer-Policy
// would remove the origin from the page's own POST requests.
func guardPage(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// asset serves a file of the page. It is served under any host name, so that the page
// about an unknown host name looks as it should.
func (g *Gateway) asset(w http.ResponseWriter, r *http.Request) {
	if g.o.Page == nil {
		noPage(w)
		return
	}
	guardPage(w.Header())
	if err := g.checkVisit(r); err != nil {
		g.pageError(w, r, http.StatusForbidden, err.Error())
		return
	}
	g.o.Page.ServeAsset(w, r)
}

// visit serves a request for the page by a visitor who has been identified.
func (g *Gateway) visit(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/furl/" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	a, err := g.visitor(r)
	if err != nil {
		g.turnAway(w, r, err)
		return
	}
	g.waitBriefly(r.Context())
	v := Visit{Sessions: g.sessions.For(tenantOf(a)), Compactor: g.compactorFor(), State: g.stateFor(tenantOf(a)), LoggedIn: a != nil && a.LoggedIn}
	serveAdmitted(a, w, func(w http.ResponseWriter) { g.o.Page.ServePage(w, r, v) })
}

// pageError writes an error of the page: an HTML document for browsers, JSON for other
// clients.
func (g *Gateway) pageError(w http.ResponseWriter, r *http.Request, status int, message string) {
	g.logDenied(r, status, "furl")
	if acceptsHTML(r) {
		g.o.Page.ServeError(w, r, status, message)
		return
	}
	apiError(w, status, message)
}

// checkVisit returns an error for a request to the page that a page of another site
// has sent. Only the page itself may change something; a program may, if it proves
// with a key that it is none, or if no key is required. Pages of gateway.origins are
// other sites here. They may link to the page: a browser shows what it is linked to
// only to its user.
func (g *Gateway) checkVisit(r *http.Request) error {
	origins, sites := r.Header.Values("Origin"), r.Header.Values("Sec-Fetch-Site")
	if len(origins) > 1 || len(sites) > 1 {
		return errors.New("requests with more than one Origin or Sec-Fetch-Site header are refused")
	}
	own := false
	for _, o := range origins {
		if !ownOrigin(r, o) {
			return errors.New("requests from other sites are refused")
		}
		own = true
	}
	for _, site := range sites {
		switch {
		case site == "same-origin":
			own = true
		case site != "none" && !followsLink(r):
			return errors.New("requests from other sites are refused")
		}
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	if safe || own || !g.needsLogin() || r.Header.Get(admission.KeyHeader) != "" {
		return nil
	}
	return errors.New("requests that change something must come from the page itself, or have a client key in " + admission.KeyHeader)
}

// followsLink reports whether a browser opens a link in a tab of its own.
func followsLink(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && len(r.Header.Values("Origin")) == 0 &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// localTarget returns the path of the page that a form or a link names to continue at,
// or "/" if it is not one: the browser must not be sent to another site.
func localTarget(to string) string {
	if len(to) > 2048 || strings.ContainsFunc(to, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }) {
		return "/" // browsers remove some of these, and read a backslash as a slash
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Path != "/" && !pagePath(u.Path) {
		return "/"
	}
	if strings.HasPrefix(to, "//") || !strings.HasPrefix(to, "/") {
		return "/"
	}
	return u.RequestURI()
}

type loginFieldsKey struct{}

// LoginFields are the fields of a login form.
type LoginFields struct {
	// Key and Token report that the field key is a client key, a token, or either. If
	// both are false, the field is the API key of the provider, which identifies the
	// tenant.
	Key, Token bool
	// Credential reports that the form has a field credential too, for the
	// provider's API key.
	Credential bool
}

// LoginFieldsOf returns the fields of the form that Page.ServeLogin writes for r.
func LoginFieldsOf(r *http.Request) LoginFields {
	fields, _ := r.Context().Value(loginFieldsKey{}).(LoginFields)
	return fields
}

// withLoginFields returns the request for ServeLogin. It has no values of the form,
// because these are keys.
func (g *Gateway) withLoginFields(r *http.Request) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), loginFieldsKey{}, LoginFields(g.guard.LoginFields())))
	r.Form, r.PostForm, r.Body = nil, nil, http.NoBody
	return r
}
