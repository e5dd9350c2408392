package admission

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
)

// TenantBy is the part of a request that identifies its tenant.
type TenantBy string

// The values of Options.TenantBy.
const (
	ByKey        TenantBy = "key"        // the client key, which the gateway verifies
	ByCredential TenantBy = "credential" // the provider's credential, which the provider verifies
	ByBoth       TenantBy = "both"       // the combination of the two
)

// checkTenantBy returns what identifies a tenant, by default what clients must show. It
// checks that against the other options.
func (g *Guard) checkTenantBy() (TenantBy, error) {
	by := g.o.TenantBy
	if len(g.o.TenantSecret) == 0 {
		if by != "" {
			return "", errors.New("gateway.tenant_by has no effect without gateway.tenants: true")
		}
		return "", nil
	}
	usual := ByCredential
	if g.required {
		usual = ByKey
	}
	switch by = cmp.Or(by, usual); by {
	case ByCredential:
		return by, nil
	case ByKey, ByBoth:
		if !g.required {
			return "", fmt.Errorf("gateway.tenant_by: %s needs client keys: set gateway.client_keys_env or client_keys_file", by)
		}
		return by, nil
	}
	return "", fmt.Errorf("invalid gateway.tenant_by %q: expected key, credential or both", by)
}

// usesCredential reports whether the provider's credential is a part of what identifies a
// tenant.
func (g *Guard) usesCredential() bool {
	return g.o.TenantBy == ByCredential || g.o.TenantBy == ByBoth
}

// tenant returns the tenant of a client with a key and with credentials for a provider, or
// an error if they do not identify one. TenantBy is about clients without a name: others
// bring their tenant.
func (g *Guard) tenant(who *access.Identity, key string, shown []string) (furl.Tenant, error) {
	switch {
	case g.o.TenantBy == "":
		return "", nil
	case who.By != access.ByClientKey && who.By != access.ByNothing:
		return who.Tenant, nil
	case g.o.TenantBy == ByKey:
		return TenantOf(g.o.TenantSecret, key), nil
	}
	if err := checkIdentifying(shown); err != nil {
		return "", err
	}
	if g.o.TenantBy == ByCredential {
		key = ""
	}
	return TenantOf(g.o.TenantSecret, key, shown...), nil
}

// TenantOf returns the tenant of a client key, of the distinct credentials of a request,
// or of both, as a Guard with that TenantSecret computes it. The key is "" for
// ByCredential.
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
