package admission

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/access"
)

// KeyHeader is the header of a client or operator key. It leaves the Authorization header
// to the provider's credential, and is not forwarded.
const KeyHeader = "X-Furl-Key"

// CredentialHeaders are the headers in which providers accept credentials. Azure uses
// Api-Key, and Google X-Goog-Api-Key.
var CredentialHeaders = []string{"X-Api-Key", "Authorization", "Api-Key", "X-Goog-Api-Key"}

// maxCredentials is the largest number of a request's distinct credentials for a provider.
// Requests with more are refused, because furl would not find its own key among them and
// would send it to the provider.
const maxCredentials = 8

// credential is a credential of a request, with what furl knows of it.
type credential struct {
	value string
	key   *access.Key // nil: not a key of furl
	token bool        // it says that it is a token of the issuer
}

// own reports whether a credential is one of furl's that no provider knows. A client key
// without a name may be the provider's credential too.
func (c *credential) own() bool { return c.token || c.key != nil && c.key.By == access.ByKey }

// operator reports whether a credential is a key that is only for operators.
func (c *credential) operator() bool { return c.key != nil && c.key.Scopes == access.Operate }

// credentials are the credentials of a request. Each is looked up once.
type credentials struct {
	key   credential   // in KeyHeader; its value is "" if there is none
	shown []credential // distinct, from each place where a provider accepts one
}

// lookUp looks a credential up among the keys and tokens that furl knows.
func (g *Guard) lookUp(value string) credential {
	c := credential{value: value, key: g.keys.Find(value)}
	c.token = (c.key == nil || c.key.By != access.ByKey) && g.isToken(value)
	return c
}

func (g *Guard) isToken(credential string) bool {
	return g.o.Tokens != nil && g.o.Tokens.Issued(credential)
}

// credentialsOf returns the credentials of a request. A request may have several, and the
// gateway does not know which of them the provider verifies. Of more than maxCredentials
// it returns one more.
func (g *Guard) credentialsOf(r *http.Request) (c credentials) {
	if key := r.Header.Get(KeyHeader); key != "" {
		c.key = g.lookUp(key)
	}
	for value := range providerCredentials(r) {
		if len(c.shown) <= maxCredentials && c.find(value) == nil {
			c.shown = append(c.shown, g.lookUp(value))
		}
	}
	return c
}

// providerCredentials yields the credentials of a request for a provider, in order.
func providerCredentials(r *http.Request) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, name := range CredentialHeaders {
			for _, value := range r.Header.Values(name) {
				if value = bare(value); value != "" && !yield(value) {
					return
				}
			}
		}
		if r.URL.RawQuery == "" {
			return
		}
		for _, value := range r.URL.Query()["key"] { // Google
			if value = strings.TrimSpace(value); value != "" && !yield(value) {
				return
			}
		}
	}
}

// bare returns the credential in the value of a header.
func bare(value string) string {
	if scheme, token, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "bearer") {
		value = token
	}
	return strings.TrimSpace(value)
}

// find returns the credential with this value, nil if there is none.
func (c *credentials) find(value string) *credential {
	if i := slices.IndexFunc(c.shown, func(s credential) bool { return s.value == value }); i >= 0 {
		return &c.shown[i]
	}
	return nil
}

// operator reports whether a key that is only for operators is anywhere in a request, also
// where it would be forwarded to the provider.
func (c *credentials) operator() bool {
	return c.key.operator() || slices.ContainsFunc(c.shown, func(s credential) bool { return s.operator() })
}

// values returns the credentials for a provider.
func (c *credentials) values() (values []string) {
	for i := range c.shown {
		values = append(values, c.shown[i].value)
	}
	return values
}

// Strip removes named keys, tokens and the header of a trusted proxy from a request that
// was admitted: they are not for providers. A client key without a name may be the
// provider's credential too, and stays. It replaces r.Header and r.URL and does not
// change what they point to, because another request may share it.
func (a *Admission) Strip(r *http.Request) {
	var proxy string
	if p := a.g.o.Proxy; p != nil && len(r.Header.Values(p.Header)) > 0 {
		proxy = p.Header
	}
	own := slices.ContainsFunc(a.sent.shown, func(s credential) bool { return s.own() })
	if proxy == "" && !own {
		return
	}
	r.Header = maps.Clone(r.Header)
	if proxy != "" {
		r.Header.Del(proxy)
	}
	if !own {
		return
	}
	isOwn := func(value string) bool {
		c := a.sent.find(strings.TrimSpace(value))
		return c != nil && c.own()
	}
	for _, name := range CredentialHeaders {
		r.Header[name] = slices.DeleteFunc(slices.Clone(r.Header[name]), func(value string) bool { return isOwn(bare(value)) })
		if len(r.Header[name]) == 0 {
			delete(r.Header, name)
		}
	}
	if r.URL.RawQuery == "" {
		return
	}
	if query := r.URL.Query(); slices.ContainsFunc(query["key"], isOwn) {
		query["key"] = slices.DeleteFunc(query["key"], isOwn)
		u := *r.URL
		u.RawQuery = query.Encode()
		r.URL = &u
	}
}
