package gateway

import (
	"context"
	"net/netip"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/admission"
	"github.com/furlhq/furl/internal/audit"
)

// TenantBy is the part of a request that identifies its tenant.
type TenantBy = admission.TenantBy

// The values of Options.TenantBy.
const (
	// TenantByKey is the client key, which the gateway verifies.
	TenantByKey = admission.ByKey
	// TenantByCredential is the provider credential, which the provider
	// verifies.
	TenantByCredential = admission.ByCredential
	// TenantByBoth is the combination of the two.
	TenantByBoth = admission.ByBoth
)

// Types of package access for programs that embed a gateway.
type (
	// Identity is who sends a request.
	Identity = access.Identity
	// Scopes are what a client may do.
	Scopes = access.Scopes
	// Keys are named keys of clients.
	Keys = access.Keys
	// LimitSet has the limits of all tenants.
	LimitSet = access.LimitSet
)

// TokenVerifier verifies tokens by which clients identify themselves, such as those of
// OpenID Connect. It is safe for concurrent use.
type TokenVerifier interface {
	// Issued reports whether a credential says that it is a token of this issuer. Only
	// then Verify is called, and the credential is never sent to a provider.
	Issued(credential string) bool
	// Verify returns who a token belongs to, with its tenant and scopes. The error is
	// shown to the client.
	Verify(ctx context.Context, token string) (Identity, error)
	// Trusts reports whether a login with a token that was verified may go on. signer is
	// Identity.Signer.
	Trusts(signer string) bool
}

// TrustedProxy is a proxy in front of the gateway that identifies its users.
type TrustedProxy struct {
	// Header is the header with the name of the user and tenant. It is never forwarded.
	Header string
	// Networks are the addresses of the proxy. The header is refused from all others.
	Networks []netip.Prefix
}

// AuditEntry describes one access.
type AuditEntry = audit.Entry

// AuditLog records who has read or changed which session, and who was refused. Requests to
// models are not recorded in it, because their sessions are stored. It is safe for
// concurrent use.
type AuditLog interface {
	// Append returns nil when the entry is stored.
	Append(e AuditEntry) error
}

// Values of Options.ClientIdentity.
const (
	IdentitySubject = admission.Subject // the common name
	IdentityDNS     = admission.DNS     // the first DNS name
	IdentityEmail   = admission.Email   // the first email address
	IdentityURI     = admission.URI     // the first URI
)

// TenantOf returns the tenant of a client key, of the distinct credentials of a
// request, or of both, as a gateway with that TenantSecret computes it. The key is
// "" for TenantByCredential.
func TenantOf(secret []byte, key string, credentials ...string) furl.Tenant {
	return admission.TenantOf(secret, key, credentials...)
}
