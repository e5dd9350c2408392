package admission

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
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
// Of a key in a file of named keys the gateway has only the hash, and who reads that file
// must not be able to make a cookie from it: its key of the cookie's hash also has the
// secret of the tenants, or without one a secret of the process.
// The cookie of a token also has the name, the scopes and what identifies the signing key,
// is keyed by the same secret, and ends with the token or its key. It counts for the page only, because other sites can make a
// browser send it.

// LoginCookie is the name of the cookie of a login.
const LoginCookie = "furl-page"

const (
	// loginFor is how long a login is valid.
	loginFor = 12 * time.Hour
	// maxLoginCookies is the largest number of cookies of this name that are tried.
	maxLoginCookies = 4
)

// LoginFields are the fields of a login form that identify a visitor.
type LoginFields struct {
	// Key and Token report that the first field is a client key, a token, or either. If
	// both are false, it is the API key of the provider, which identifies the tenant.
	Key, Token bool
	// Credential reports that the form has a field for the provider's API key too.
	Credential bool
}

// NeedsLogin reports whether visitors of the page must identify themselves.
func (g *Guard) NeedsLogin() bool { return g.required || g.o.TenantBy != "" }

// HasLogin reports whether a visitor can log in by a form. Otherwise only a proxy or a
// certificate identifies clients.
func (g *Guard) HasLogin() bool { return g.clientKeys || g.o.Tokens != nil || g.usesCredential() }

// LoginFields returns the fields that identify a visitor.
func (g *Guard) LoginFields() LoginFields {
	return LoginFields{Key: g.clientKeys, Token: g.o.Tokens != nil, Credential: g.clientKeys && g.usesCredential()}
}

// Visit is Admit for a request for the page. A client is identified by its key in
// KeyHeader, else by the header of a proxy, else by the cookie of a login, else by what
// else identifies a client. So a user whom the proxy names is not served as another one
// who has logged in with the same browser.
func (g *Guard) Visit(r *http.Request, need access.Scopes) (*Admission, error) {
	a := g.visit(r, need)
	return a, a.record(r, need)
}

// CheckVisit is Visit without an entry in the audit log.
func (g *Guard) CheckVisit(r *http.Request, need access.Scopes) error {
	return g.visit(r, need).Refused
}

func (g *Guard) visit(r *http.Request, need access.Scopes) *Admission {
	a := &Admission{g: g}
	if r.Header.Get(KeyHeader) == "" && !g.namedByProxy(r) && g.NeedsLogin() {
		for i, c := range r.CookiesNamed(LoginCookie) {
			if i == maxLoginCookies {
				break
			}
			who, ok := g.checkLogin(c.Value)
			if !ok {
				continue
			}
			a.Who, a.LoggedIn = who, true
			if who.Scopes&need == 0 {
				a.Refused = lacksScope(&who, need)
			}
			return a
		}
	}
	a.sent = g.credentialsOf(r)
	a.Refused = a.decide(r, need)
	return a
}

// Login returns the value of the cookie for somebody who has entered something in the
// login form, and how long it is valid.
func (g *Guard) Login(r *http.Request, secret, credential string) (value string, age time.Duration, err error) {
	a := &Admission{g: g}
	var key loginKey
	a.Who, key, a.Refused = g.identifyLogin(r.Context(), secret, credential)
	if err := a.record(r, access.Read); err != nil {
		return "", 0, err
	}
	value, age = g.newLogin(key, &a.Who)
	return value, age, nil
}

// loginKey is a key of the hash in the cookie, and the client key that it belongs to.
type loginKey struct {
	hash  []byte
	key   *access.Key // nil: a token, or the provider's credential identifies the tenant
	token bool
}

// processSecret is the secret for logins with named keys and tokens if there is no
// tenants.key. Such logins end when the process does.
var processSecret = sync.OnceValue(func() []byte { return []byte(rand.Text()) })

// newLoginKeys returns the keys of the hash in the cookie: one for each client key, one for
// tokens, or without these one for all tenants. Changing what identifies a tenant ends all
// logins.
func (g *Guard) newLoginKeys() (keys []loginKey) {
	own := g.o.TenantSecret
	if len(own) == 0 {
		own = processSecret()
	}
	derive := func(secret []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "furl page login\x00%s\x00%s", g.o.TenantBy, g.o.TenantSecret)
		return mac.Sum(nil)
	}
	all := g.keys.All()
	for i := range all {
		if k := &all[i]; k.Scopes&(access.Read|access.Change) != 0 {
			secret := k.Hash[:]
			if k.By == access.ByKey {
				secret = slices.Concat([]byte("key\x00"), secret, own)
			}
			keys = append(keys, loginKey{hash: derive(secret), key: k})
		}
	}
	switch {
	case g.o.Tokens != nil:
		keys = append(keys, loginKey{hash: derive(slices.Concat([]byte("token\x00"), own)), token: true})
	case !g.clientKeys && g.usesCredential():
		keys = append(keys, loginKey{hash: derive(g.o.TenantSecret)})
	}
	return keys
}

// newLogin returns the value of the cookie for a login with one of the login keys, and how
// long it is valid.
func (g *Guard) newLogin(key loginKey, who *access.Identity) (value string, age time.Duration) {
	now := g.env.Now()
	age = loginFor
	if left := who.Expires.Sub(now); !who.Expires.IsZero() && left < age {
		age = left
	}
	encode := base64.RawURLEncoding.EncodeToString
	claims := strconv.FormatInt(now.Add(age).Unix(), 10) + "." + encode([]byte(who.Tenant))
	if key.token {
		claims += "." + encode([]byte(who.Name)) + "." + strconv.Itoa(int(who.Scopes)) + "." + encode([]byte(who.Signer))
	}
	return claims + "." + encode(loginHash(key.hash, claims)), age
}

// checkLogin returns who has the cookie of a login, and whether it is valid.
func (g *Guard) checkLogin(value string) (who access.Identity, ok bool) {
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
	key, parts, now := g.loginKeys[i], strings.Split(claims, "."), g.env.Now()
	who, ok = access.Identity{By: access.ByNothing, Scopes: access.Client}, true
	switch {
	case key.key != nil:
		who, ok = key.key.Identity(), key.key.Usable(now) == nil
	case key.token && len(parts) == 5:
		name, err := base64.RawURLEncoding.DecodeString(parts[2])
		scopes, scopesErr := strconv.ParseUint(parts[3], 10, 8)
		signer, signerErr := base64.RawURLEncoding.DecodeString(parts[4])
		who = access.Identity{Name: string(name), By: access.ByToken, Scopes: access.Scopes(scopes), Signer: string(signer)}
		ok = err == nil && scopesErr == nil && signerErr == nil && g.o.Tokens.Trusts(who.Signer)
	case key.token:
		return who, false
	}
	if len(parts) < 2 {
		return who, false
	}
	tenant, err := base64.RawURLEncoding.DecodeString(parts[1])
	who.Tenant = furl.Tenant(tenant)
	unix, unixErr := strconv.ParseInt(parts[0], 10, 64)
	return who, ok && err == nil && unixErr == nil && now.Unix() < unix
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
func (g *Guard) identifyLogin(ctx context.Context, secret, credential string) (who access.Identity, key loginKey, err error) {
	if g.isToken(secret) {
		return g.tokenLogin(ctx, secret)
	}
	fields := g.LoginFields()
	if !fields.Key && !fields.Token {
		secret, credential = "", secret
	}
	found := g.keys.Find(secret)
	for _, k := range []*access.Key{found, g.keys.Find(credential)} {
		if k != nil && k.Scopes == access.Operate {
			return who, key, errOperatorKey()
		}
	}
	who = access.Identity{By: access.ByNothing}
	switch {
	case found != nil:
		if err := found.Usable(g.env.Now()); err != nil {
			return who, key, &Error{http.StatusUnauthorized, err}
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
	case !g.HasLogin():
		return who, key, unauthorized("this gateway requires %s", g.howToIdentify())
	}
	i := slices.IndexFunc(g.loginKeys, func(k loginKey) bool { return k.key == found && !k.token })
	if i < 0 {
		return who, key, forbidden("%s lacks the scope read", describe(&who))
	}
	var shown []string
	if credential = bare(credential); credential != "" {
		shown = []string{credential}
	}
	who.Tenant, err = g.tenant(&who, secret, shown)
	return who, g.loginKeys[i], err
}

// tokenLogin is identifyLogin for a token.
func (g *Guard) tokenLogin(ctx context.Context, token string) (who access.Identity, key loginKey, err error) {
	if who, err = g.verifyToken(ctx, token); err != nil {
		return who, key, err
	}
	if who.Scopes&(access.Read|access.Change) == 0 {
		return who, key, forbidden("%s lacks the scope read", describe(&who))
	}
	if g.o.TenantBy == "" {
		who.Tenant = ""
	}
	return who, g.loginKeys[slices.IndexFunc(g.loginKeys, func(k loginKey) bool { return k.token })], nil
}
