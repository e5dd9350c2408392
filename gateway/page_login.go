package gateway

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
)

// A browser cannot send a client key or a token in a header, so a person logs in with it
// once and gets a cookie. The cookie has the time until which it is valid, the tenant, and
// a hash of both that is keyed by the client key. So it is valid on every gateway with
// the same configuration, also after a restart, and until the client key is removed.
// That of a token also has the name and the scopes, is keyed by the secret of the tenants,
// and ends with the token. It counts for the page only, because other sites can make a
// browser send it.

const (
	loginCookie = "furl-page"
	// loginFor is how long a login is valid.
	loginFor = 12 * time.Hour
	// loginBody is the largest body of a login form, in bytes.
	loginBody = 64 << 10
	// maxLoginCookies is the largest number of cookies of this name that are tried.
	maxLoginCookies = 4
)

// visitor is who sends a request for the page.
type visitor struct {
	Identity
	loggedIn bool // by the login form
}

// needsLogin reports whether visitors of the page must identify themselves.
func (g *guard) needsLogin() bool { return g.required || g.tenantBy != "" }

// loginFields returns the fields that identify a visitor.
func (g *guard) loginFields() LoginFields {
	return LoginFields{Key: g.clientKeys, Token: g.tokens != nil, Credential: g.clientKeys && g.usesCredential()}
}

// hasLogin reports whether a visitor can log in with something that a form can send. Else
// only a proxy or a certificate identifies clients.
func (g *guard) hasLogin() bool { return g.clientKeys || g.tokens != nil || g.usesCredential() }

// usesCredential reports whether the provider's credential is a part of what
// identifies a tenant.
func (g *guard) usesCredential() bool {
	return g.tenantBy == TenantByCredential || g.tenantBy == TenantByBoth
}

// visitor returns who sends a request for the page that needs a scope: by its
// X-Furl-Key, else by the cookie of a login, else by what else identifies a client.
func (g *guard) visitor(r *http.Request, need Scopes) (visitor, error) {
	if r.Header.Get(clientKeyHeader) == "" {
		for i, c := range r.CookiesNamed(loginCookie) {
			if i == maxLoginCookies || !g.needsLogin() {
				break
			}
			who, ok := g.checkLogin(c.Value)
			if !ok {
				continue
			}
			if who.Scopes&need == 0 {
				return visitor{who, true}, forbidden("%s lacks the scope %s: it has %s", describeClient(&who), need, who.Scopes)
			}
			return visitor{who, true}, nil
		}
	}
	who, err := g.admit(withoutProxyLogin(r), need)
	return visitor{Identity: who}, err
}

// visitScope is the scope that a request for the page needs.
func visitScope(r *http.Request) Scopes {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return access.Read
	}
	return access.Change
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

// loginKey is a key of the hash in the cookie, and the client key that it belongs to.
type loginKey struct {
	hash  []byte
	key   *access.Key // nil: a token, or the provider's credential identifies the tenant
	token bool
}

// processSecret is the key for logins with tokens if there is no tenants.key. Such logins
// end when the process does.
var processSecret = sync.OnceValue(func() []byte { return []byte(rand.Text()) })

// newLoginKeys returns the keys of the hash in the cookie: one for each client key, one for
// tokens, or without these one for all tenants. Changing what identifies a tenant ends all
// logins.
func newLoginKeys(g *guard) (keys []loginKey) {
	derive := func(secret []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "furl page login\x00%s\x00%s", g.tenantBy, g.tenantSecret)
		return mac.Sum(nil)
	}
	all := g.keys.All()
	for i := range all {
		if k := &all[i]; k.Scopes&(access.Read|access.Change) != 0 {
			keys = append(keys, loginKey{hash: derive(k.Hash[:]), key: k})
		}
	}
	switch {
	case g.tokens != nil && len(g.tenantSecret) > 0:
		keys = append(keys, loginKey{hash: derive(slices.Concat([]byte("token\x00"), g.tenantSecret)), token: true})
	case g.tokens != nil:
		keys = append(keys, loginKey{hash: derive(processSecret()), token: true})
	case !g.clientKeys && g.usesCredential():
		keys = append(keys, loginKey{hash: derive(g.tenantSecret)})
	}
	return keys
}

// newLogin returns the value of the cookie for a login with one of the login keys, and how
// long it is valid.
func (g *guard) newLogin(key loginKey, who *Identity) (value string, age time.Duration) {
	age = loginFor
	if left := who.Expires.Sub(g.now()); !who.Expires.IsZero() && left < age {
		age = left
	}
	encode := base64.RawURLEncoding.EncodeToString
	claims := strconv.FormatInt(g.now().Add(age).Unix(), 10) + "." + encode([]byte(who.Tenant))
	if key.token {
		claims += "." + encode([]byte(who.Name)) + "." + strconv.Itoa(int(who.Scopes))
	}
	return claims + "." + encode(loginHash(key.hash, claims)), age
}

// checkLogin returns who has the cookie of a login, and whether it is valid.
func (g *guard) checkLogin(value string) (who Identity, ok bool) {
	claims, hash, _ := cutLast(value, ".")
	got, err := base64.RawURLEncoding.Strict().DecodeString(hash)
	if err != nil {
		return who, false
	}
	i := slices.IndexFunc(g.loginKeys, func(k loginKey) bool { return hmac.Equal(got, loginHash(k.hash, claims)) })
	if i < 0 {
		return who, false
	}
	// The gateway has written what follows.
	key, parts := g.loginKeys[i], strings.Split(claims, ".")
	who, ok = Identity{By: access.ByNothing, Scopes: access.Client}, true
	switch {
	case key.key != nil:
		who, ok = key.key.Identity(), key.key.Usable(g.now()) == nil
	case key.token && len(parts) == 4:
		name, err := base64.RawURLEncoding.DecodeString(parts[2])
		scopes, scopesErr := strconv.ParseUint(parts[3], 10, 8)
		who, ok = Identity{Name: string(name), By: access.ByToken, Scopes: Scopes(scopes)}, err == nil && scopesErr == nil
	case key.token:
		return who, false
	}
	if len(parts) < 2 {
		return who, false
	}
	tenant, err := base64.RawURLEncoding.DecodeString(parts[1])
	who.Tenant = furl.Tenant(tenant)
	unix, unixErr := strconv.ParseInt(parts[0], 10, 64)
	return who, ok && err == nil && unixErr == nil && g.now().Unix() < unix
}

func loginHash(key []byte, claims string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(claims))
	return mac.Sum(nil)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// identifyLogin returns who has entered something in the login form, and the login key.
func (g *guard) identifyLogin(ctx context.Context, secret, credential string) (who Identity, key loginKey, err error) {
	if g.isToken(secret) {
		return g.tokenLogin(ctx, secret)
	}
	fields := g.loginFields()
	if !fields.Key && !fields.Token {
		secret, credential = "", secret
	}
	found := g.keys.Find(secret)
	for _, k := range []*access.Key{found, g.keys.Find(credential)} {
		if k != nil && k.Scopes == access.Operate {
			return who, key, forbidden("the operator key is for metrics, status and reload only: use a client key")
		}
	}
	who = Identity{By: access.ByNothing}
	switch {
	case found != nil:
		if err := found.Usable(g.now()); err != nil {
			return who, key, &statusError{http.StatusUnauthorized, err}
		}
		who = found.Identity()
		who.Tenant = furl.Tenant(cmp.Or(found.Tenant, found.Name))
	case fields.Key && secret == "":
		return who, key, unauthorized("no client key: enter the key that your agent sends")
	case fields.Key && fields.Token:
		return who, key, unauthorized("unknown client key, and not a token of the issuer")
	case fields.Key:
		return who, key, unauthorized("unknown client key")
	case fields.Token:
		return who, key, unauthorized("not a token of the issuer for this gateway")
	case !g.hasLogin():
		return who, key, unauthorized("this gateway requires %s", g.howToIdentify())
	}
	i := slices.IndexFunc(g.loginKeys, func(k loginKey) bool { return k.key == found && !k.token })
	if i < 0 {
		return who, key, forbidden("%s lacks the scope read", describeClient(&who))
	}
	shown := &http.Request{Header: http.Header{}, URL: new(url.URL)}
	if credential != "" {
		shown.Header.Set("X-Api-Key", credential)
	}
	who.Tenant, err = g.tenant(shown, &who, secret)
	return who, g.loginKeys[i], err
}

// tokenLogin is identifyLogin for a token.
func (g *guard) tokenLogin(ctx context.Context, token string) (who Identity, key loginKey, err error) {
	if who, err = g.verifyToken(ctx, token); err != nil {
		return who, key, err
	}
	if who.Scopes&(access.Read|access.Change) == 0 {
		return who, key, forbidden("%s lacks the scope read", describeClient(&who))
	}
	if g.tenantBy == "" {
		who.Tenant = ""
	}
	return who, g.loginKeys[slices.IndexFunc(g.loginKeys, func(k loginKey) bool { return k.token })], nil
}

// loginForm serves GET /furl/login.
func (g *Gateway) loginForm(w http.ResponseWriter, r *http.Request) {
	to := localTarget(r.URL.Query().Get("to"))
	_, err := g.guard.visitor(r, access.Read)
	switch {
	case err == nil:
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	case !g.guard.hasLogin():
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
	if !g.guard.needsLogin() {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	who, key, err := g.guard.identifyLogin(r.Context(), strings.TrimSpace(r.PostForm.Get("key")), strings.TrimSpace(r.PostForm.Get("credential")))
	if _, failure := g.audited(r, &who, access.Read, err); err == nil {
		err = failure
	}
	if err != nil {
		status := apiStatus(err)
		g.logDenied(r, status, "furl")
		g.o.Page.ServeLogin(w, g.withLoginFields(r), status, to, err.Error())
		return
	}
	value, age := g.guard.newLogin(key, &who)
	g.setLogin(w, r, value, age)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// logout serves POST /furl/logout. It deletes the cookie in this browser.
func (g *Gateway) logout(w http.ResponseWriter, r *http.Request) {
	g.setLogin(w, r, "", -time.Second)
	to := "/"
	if g.guard.needsLogin() {
		to = "/furl/login"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// setLogin sets the cookie of a login, or with a negative age deletes it.
func (g *Gateway) setLogin(w http.ResponseWriter, r *http.Request, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: loginCookie, Value: value, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	})
}

// turnAway responds to a visitor who is not identified: with the login form, or with an
// error for a wrong key and for requests that are not for a document.
func (g *Gateway) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	form := "/furl/login?" + url.Values{"to": {returnTo(r)}}.Encode()
	mode, site := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Header.Get(clientKeyHeader) != "" || !g.guard.hasLogin():
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

// withoutLogin returns the request without the cookie of a login, which is not for
// providers. Other cookies stay unchanged.
func withoutLogin(r *http.Request) *http.Request {
	if !strings.Contains(strings.Join(r.Header["Cookie"], ";"), loginCookie) {
		return r
	}
	var lines []string
	for _, line := range r.Header["Cookie"] {
		var kept []string
		for pair := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.TrimSpace(name) != loginCookie {
				kept = append(kept, pair)
			}
		}
		if len(kept) > 0 {
			lines = append(lines, strings.TrimSpace(strings.Join(kept, ";")))
		}
	}
	out := *r
	out.Header = r.Header.Clone()
	out.Header.Del("Cookie")
	if len(lines) > 0 {
		out.Header["Cookie"] = lines
	}
	return &out
}
