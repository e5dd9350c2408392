package gateway

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// TenantBy is the part of a request that identifies its tenant.
type TenantBy string

// The values of Options.TenantBy.
const (
	// TenantByKey takes the client key, which the gateway verifies.
	TenantByKey TenantBy = "key"
	// TenantByCredential takes what the client shows to its provider, which
	// verifies it.
	TenantByCredential TenantBy = "credential"
	// TenantByBoth takes the two together.
	TenantByBoth TenantBy = "both"
)

// tenancy fills in TenantBy and checks it against the other options.
func (o *Options) tenancy() error {
	for _, key := range o.OperatorKeys {
		if slices.Contains(o.ClientKeys, key) {
			return errors.New("an operator key is one of the client keys: use a key of its own for the operator")
		}
	}
	if len(o.TenantSecret) == 0 {
		if o.TenantBy != "" {
			return errors.New("gateway.tenant_by has no effect without gateway.tenants: true")
		}
		return nil
	}
	usual := TenantByCredential
	if len(o.ClientKeys) > 0 {
		usual = TenantByKey
	}
	o.TenantBy = cmp.Or(o.TenantBy, usual)
	switch o.TenantBy {
	case TenantByCredential:
		return nil
	case TenantByKey, TenantByBoth:
		if len(o.ClientKeys) == 0 {
			return fmt.Errorf("gateway.tenant_by: %s needs client keys: set gateway.client_keys_env or client_keys_file", o.TenantBy)
		}
		return nil
	}
	return fmt.Errorf("invalid gateway.tenant_by %q: expected key, credential or both", o.TenantBy)
}

// secrets are the digests of keys that the gateway knows.
type secrets [][sha256.Size]byte

func digestsOf(keys []string) (s secrets) {
	for _, key := range keys {
		s = append(s, sha256.Sum256([]byte(key)))
	}
	return s
}

// has reports whether a key is one of them, in the same time for each key.
func (s secrets) has(key string) bool {
	if len(s) == 0 {
		return false
	}
	sum := sha256.Sum256([]byte(key))
	found := 0
	for i := range s {
		found |= subtle.ConstantTimeCompare(sum[:], s[i][:])
	}
	return found == 1
}

// clientKeyHeader carries a key of the gateway, so that the provider's
// credential stays where the provider expects it. It is not sent on.
const clientKeyHeader = "X-Furl-Key"

// maxCredentials bounds how many credentials of one request are looked at.
const maxCredentials = 8

// credentials are the distinct values that a request shows to its provider, in
// every place where a provider takes one. A request may show several, and the
// gateway does not know which of them the provider verifies.
func credentials(r *http.Request) (shown []string) {
	add := func(values ...string) {
		for _, v := range values {
			if v = strings.TrimSpace(v); v != "" && len(shown) <= maxCredentials && !slices.Contains(shown, v) {
				shown = append(shown, v)
			}
		}
	}
	add(r.Header.Values("X-Api-Key")...)
	for _, value := range r.Header.Values("Authorization") {
		if scheme, token, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "bearer") {
			value = token
		}
		add(value)
	}
	add(r.Header.Values("Api-Key")...) // Azure
	add(r.Header.Values("X-Goog-Api-Key")...)
	if r.URL.RawQuery != "" {
		add(r.URL.Query()["key"]...) // Google
	}
	return shown
}

// known gives the first key of the request that is one of these secrets: that
// in X-Furl-Key, or without that header a credential. It is "" for none.
func (s secrets) known(r *http.Request) string {
	shown := credentials(r)
	if key := r.Header.Get(clientKeyHeader); key != "" {
		shown = []string{key}
	}
	for _, key := range shown {
		if s.has(key) {
			return key
		}
	}
	return ""
}

func unauthorized(format string, args ...any) error {
	return &statusError{http.StatusUnauthorized, fmt.Errorf(format, args...)}
}

func forbidden(format string, args ...any) error {
	return &statusError{http.StatusForbidden, fmt.Errorf(format, args...)}
}

// admit returns an error for a request that may not use the gateway as a
// client: client keys are configured and it shows none of them, or it does not
// identify a tenant.
func (g *guard) admit(r *http.Request) error {
	if g.showsOperatorKey(r) {
		return forbidden("the operator key is for metrics, status and reload only: use a client key")
	}
	if len(g.keys) > 0 && g.keys.known(r) == "" {
		return unauthorized("this gateway requires a client key: send it in %s", clientKeyHeader)
	}
	_, err := g.tenant(r)
	return err
}

// showsOperatorKey reports whether an operator key is anywhere in a request, also
// where it would be sent on to the provider.
func (g *guard) showsOperatorKey(r *http.Request) bool {
	return g.operators.has(r.Header.Get(clientKeyHeader)) || slices.ContainsFunc(credentials(r), g.operators.has)
}

// operate returns an error for a request that may not see or change what
// concerns all tenants. Without tenants every client may.
func (g *guard) operate(r *http.Request) error {
	switch {
	case g.operators.known(r) != "":
		return nil
	case g.by == "":
		return g.admit(r)
	case len(g.operators) == 0:
		return forbidden("this concerns all tenants and requires an operator key, and none is configured: set gateway.operator_key_env or operator_key_file")
	}
	return unauthorized("this concerns all tenants and requires the operator key: send it in %s or as a bearer token", clientKeyHeader)
}

// see returns an error for a request that may not even see the status of its own
// tenant.
func (g *guard) see(r *http.Request) error {
	if g.operators.known(r) != "" {
		return nil
	}
	return g.admit(r)
}

// sessionsOf gives the sessions of the request's tenant. An error says why it has
// none.
func (g *Gateway) sessionsOf(r *http.Request) (*session.Sessions, error) {
	tenant, err := g.guard.tenant(r)
	if err != nil {
		return nil, err
	}
	return g.sessions.For(tenant), nil
}

// tenant gives the tenant of a request. An error says why it has none.
func (g *guard) tenant(r *http.Request) (furl.Tenant, error) {
	if g.by == "" {
		return "", nil
	}
	key, shown := "", []string(nil)
	if g.by != TenantByCredential {
		if key = g.keys.known(r); key == "" {
			return "", unauthorized("this gateway requires a client key: send it in %s", clientKeyHeader)
		}
	}
	if g.by != TenantByKey {
		shown = credentials(r)
		if err := identifies(shown); err != nil {
			return "", err
		}
	}
	return TenantOf(g.secret, key, shown...), nil
}

// TenantOf names the tenant of a client key, of the distinct credentials of a
// request, or of both, as a gateway with that TenantSecret does. The key is "" for
// TenantByCredential.
func TenantOf(secret []byte, key string, credentials ...string) furl.Tenant {
	parts := slices.Sorted(slices.Values(credentials))
	if key != "" {
		parts = slices.Insert(parts, 0, key)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join(parts, "\x00")))
	return furl.Tenant(hex.EncodeToString(mac.Sum(nil)[:16]))
}

// identifies returns an error for credentials that do not identify a tenant. A
// token that its client refreshes does not: each new token would begin a new
// tenant, and only the provider knows which tokens belong to one user. The claims
// inside a token could say so, but furl's API does not ask the provider, so a
// forged token would open its victim's sessions.
func identifies(shown []string) error {
	switch {
	case len(shown) == 0:
		return unauthorized("this gateway tells its users apart by their credential (gateway.tenant_by), and this request has none: send the provider's API key")
	case len(shown) > maxCredentials:
		return unauthorized("this request has more than %d credentials", maxCredentials)
	case slices.ContainsFunc(shown, refreshed):
		return forbidden("this gateway tells its users apart by their credential (gateway.tenant_by), and an access token that is refreshed cannot do that: use an API key, or give each user a client key and set gateway.tenant_by: key")
	}
	return nil
}

// refreshed reports whether a credential is an access token that its client
// replaces by itself: one of Anthropic or Google by its prefix, or a JSON Web
// Token that expires. The token is not verified; a forged one is refused too.
func refreshed(credential string) bool {
	if strings.HasPrefix(credential, "sk-ant-oat") || strings.HasPrefix(credential, "ya29.") {
		return true
	}
	parts := strings.SplitN(credential, ".", 4)
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Exp json.RawMessage `json:"exp"`
	}
	return err == nil && json.Unmarshal(payload, &claims) == nil && claims.Exp != nil
}
