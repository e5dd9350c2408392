package gateway

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/admission"
)

// loginBody is the largest body of a login form, in bytes.
const loginBody = 64 << 10

// needsLogin reports whether visitors of the page must identify themselves.
func (g *Gateway) needsLogin() bool { return g.guard != nil && g.guard.NeedsLogin() }

// loginForm serves GET /furl/login.
func (g *Gateway) loginForm(w http.ResponseWriter, r *http.Request) {
	to := localTarget(r.URL.Query().Get("to"))
	if g.guard == nil {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	err := statusOf(g.guard.CheckVisit(withoutProxyLogin(r), access.Read))
	switch {
	case err == nil:
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	case !g.guard.HasLogin():
		g.pageError(w, r, apiStatus(err), err.Error())
		return
	}
	g.o.Page.ServeLogin(w, g.withLoginFields(r), http.StatusOK, to, "")
}

// login serves POST /furl/login.
func (g *Gateway) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, loginBody)
	if err := r.ParseForm(); err != nil {
		g.pageError(w, r, http.StatusBadRequest, "invalid form")
		return
	}
	to := localTarget(r.PostForm.Get("to"))
	if !g.needsLogin() {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	value, age, err := g.guard.Login(r, strings.TrimSpace(r.PostForm.Get("key")), strings.TrimSpace(r.PostForm.Get("credential")))
	if err != nil {
		err = statusOf(err)
		status := apiStatus(err)
		g.logDenied(r, status, "furl")
		g.o.Page.ServeLogin(w, g.withLoginFields(r), status, to, err.Error())
		return
	}
	g.setLogin(w, r, value, age)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// logout serves POST /furl/logout. It deletes the cookie in this browser.
func (g *Gateway) logout(w http.ResponseWriter, r *http.Request) {
	g.setLogin(w, r, "", -time.Second)
	to := "/"
	if g.needsLogin() {
		to = "/furl/login"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// setLogin sets the cookie of a login, or with a negative age deletes it.
func (g *Gateway) setLogin(w http.ResponseWriter, r *http.Request, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: admission.LoginCookie, Value: value, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	})
}

// turnAway responds to a visitor who is not identified: with the login form, or with an
// error for a wrong key and for requests that are not for a document.
func (g *Gateway) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	form := "/furl/login?" + url.Values{"to": {returnTo(r)}}.Encode()
	mode, site := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Header.Get(admission.KeyHeader) != "" || !g.guard.HasLogin():
		g.pageError(w, r, apiStatus(err), err.Error())
	case r.Header.Get("Hx-Request") != "": // htmx opens this address in place of the response
		w.Header().Set("Hx-Redirect", form)
		g.pageError(w, r, http.StatusUnauthorized, "log in again")
	case !acceptsHTML(r) || mode != "" && mode != "navigate":
		g.pageError(w, r, apiStatus(err), err.Error())
	case site == "cross-site" || site == "same-site":
		askAgain(w, form)
	default:
		http.Redirect(w, r, form, http.StatusSeeOther)
	}
}

// askAgain writes a document that opens the login form. A browser that follows a link of
// another site does not send the cookie, also not after a redirect; from this
// document it does, and does not show the form if somebody has logged in.
func askAgain(w http.ResponseWriter, form string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=%[1]s"><title>furl</title><p><a href="%[1]s">Continue</a></p></html>`, html.EscapeString(form))
}

// returnTo returns the path at which to continue after a login: that of the document
// from which the request came, unless it is for a document itself.
func returnTo(r *http.Request) string {
	from := r.Header.Get("Hx-Current-Url")
	if from == "" && r.Method == http.MethodPost {
		from = r.Header.Get("Referer")
	}
	if from == "" && r.Method != http.MethodPost {
		return localTarget(r.URL.RequestURI())
	}
	u, err := url.Parse(from)
	if err != nil || !strings.EqualFold(u.Host, r.Host) {
		return "/"
	}
	return localTarget(u.RequestURI())
}

// withoutProxyLogin returns a request for the page without what looks like a
// credential for a provider and is none: the password of a proxy in front of the
// gateway, which browsers repeat, and the query parameter key.
func withoutProxyLogin(r *http.Request) *http.Request {
	out := *r
	if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); scheme != "" && !strings.EqualFold(scheme, "bearer") {
		out.Header = r.Header.Clone()
		out.Header.Del("Authorization")
	}
	if r.URL.RawQuery != "" {
		u := *r.URL
		u.RawQuery = ""
		out.URL = &u
	}
	return &out
}
