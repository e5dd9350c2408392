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
	// TenantByKey is the client key, which the gateway verifies.
	TenantByKey TenantBy = "key"
	// TenantByCredential is the provider credential, which the provider
	// verifies.
	TenantByCredential TenantBy = "credential"
	// TenantByBoth is the combination of the two.
	TenantByBoth TenantBy = "both"
)

// validateTenancy sets the default of TenantBy and checks it against the other
// options.
func (o *Options) validateTenancy() error {
	for _, key := range o.OperatorKeys {
		if slices.Contains(o.ClientKeys, key) {
			return errors.New("an operator key is also a client key: use different keys")
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

// keyDigests are the SHA-256 digests of configured keys.
type keyDigests [][sha256.Size]byte

func newKeyDigests(keys []string) (s keyDigests) {
	for _, key := range keys {
		s = append(s, sha256.Sum256([]byte(key)))
	}
	return s
}

// has reports whether key is one of s, in constant time.
func (s keyDigests) has(key string) bool { return s.index(key) >= 0 }

// index returns the index of key in s, in constant time, or -1.
func (s keyDigests) index(key string) int {
	if len(s) == 0 {
		return -1
	}
	sum := sha256.Sum256([]byte(key))
	found := 0
	for i := range s {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], s[i][:]), i+1, found)
	}
	return found - 1
}

// clientKeyHeader is the header of a client or operator key. It leaves the
// Authorization header to the provider's credential, and is not forwarded.
const clientKeyHeader = "X-Furl-Key"

// maxCredentials is the largest number of credentials in a request.
const maxCredentials = 8

// credentials returns the distinct provider credentials of a request, from every
// place where some provider accepts one. A request may have several, and the
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

// findIn returns the first key of a request that is one of s: the key in
// X-Furl-Key, or without that header a credential. It returns "" if none is.
func (s keyDigests) findIn(r *http.Request) string {
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

// authorizeClient returns an error for a request that may not use the gateway
// as a client: it has no configured client key although there are some, or it
// does not identify a tenant.
func (g *guard) authorizeClient(r *http.Request) error {
	if g.hasOperatorKey(r) {
		return forbidden("the operator key is for metrics, status and reload only: use a client key")
	}
	if len(g.keys) > 0 && g.keys.findIn(r) == "" {
		return unauthorized("this gateway requires a client key: send it in %s", clientKeyHeader)
	}
	_, err := g.tenant(r)
	return err
}

// hasOperatorKey reports whether an operator key is anywhere in a request, also
// where it would be forwarded to the provider.
func (g *guard) hasOperatorKey(r *http.Request) bool {
	return g.operators.has(r.Header.Get(clientKeyHeader)) || slices.ContainsFunc(credentials(r), g.operators.has)
}

// authorizeOperator returns an error for a request that may not see or change
// data of all tenants. Without tenants every client may.
func (g *guard) authorizeOperator(r *http.Request) error {
	switch {
	case g.operators.findIn(r) != "":
		return nil
	case g.tenantBy == "":
		return g.authorizeClient(r)
	case len(g.operators) == 0:
		return forbidden("operator key required, but none is configured: set gateway.operator_key_env or operator_key_file")
	}
	return unauthorized("operator key required: send it in %s or as a bearer token", clientKeyHeader)
}

// authorizeStatus returns an error for a request that may not see the status,
// not even that of its own tenant.
func (g *guard) authorizeStatus(r *http.Request) error {
	if g.operators.findIn(r) != "" {
		return nil
	}
	return g.authorizeClient(r)
}

// sessionsOf returns the sessions of the request's tenant, or an error if the
// request does not identify one.
func (g *Gateway) sessionsOf(r *http.Request) (*session.Sessions, error) {
	tenant, err := g.guard.tenant(r)
	if err != nil {
		return nil, err
	}
	return g.sessions.For(tenant), nil
}

// tenant returns the tenant of a request, or an error if the request does not
// identify one.
func (g *guard) tenant(r *http.Request) (furl.Tenant, error) {
	if g.tenantBy == "" {
		return "", nil
	}
	key, shown := "", []string(nil)
	if g.tenantBy != TenantByCredential {
		if key = g.keys.findIn(r); key == "" {
			return "", unauthorized("this gateway requires a client key: send it in %s", clientKeyHeader)
		}
	}
	if g.tenantBy != TenantByKey {
		shown = credentials(r)
		if err := checkIdentifying(shown); err != nil {
			return "", err
		}
	}
	return TenantOf(g.tenantSecret, key, shown...), nil
}

// TenantOf returns the tenant of a client key, of the distinct credentials of a
// request, or of both, as a gateway with that TenantSecret computes it. The key is
// "" for TenantByCredential.
func TenantOf(secret []byte, key string, credentials ...string) furl.Tenant {
	parts := slices.Sorted(slices.Values(credentials))
	if key != "" {
		parts = slices.Insert(parts, 0, key)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join(parts, "\x00")))
	return furl.Tenant(hex.EncodeToString(mac.Sum(nil)[:16]))
}

// checkIdentifying returns an error for credentials that do not identify a
// tenant. An access token does not: each refreshed token would be a new tenant,
// and only the provider knows which tokens belong to one user. The claims of a
// token name its user, but furl does not verify them, so a forged token would
// open its victim's sessions.
func checkIdentifying(shown []string) error {
	switch {
	case len(shown) == 0:
		return unauthorized("no credential: this gateway identifies tenants by their credential (gateway.tenant_by); send the provider's API key")
	case len(shown) > maxCredentials:
		return unauthorized("too many credentials: send at most %d", maxCredentials)
	case slices.ContainsFunc(shown, isAccessToken):
		return forbidden("access tokens change on refresh and cannot identify a tenant (gateway.tenant_by): use an API key, or give each user a client key and set gateway.tenant_by: key")
	}
	return nil
}

// isAccessToken reports whether a credential is an access token that its client
// refreshes: one of Anthropic or Google by its prefix, or a JSON Web Token with
// an expiry. The token is not verified; a forged one is refused too.
func isAccessToken(credential string) bool {
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
