package gateway

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
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
}

// TrustedProxy is a proxy in front of the gateway that identifies its users.
type TrustedProxy struct {
	// Header is the header with the name of the user and tenant. It is never forwarded.
	Header string
	// Networks are the addresses of the proxy. The header is refused from all others.
	Networks []netip.Prefix
}

// Values of Options.ClientIdentity.
const (
	IdentitySubject = "subject" // the common name
	IdentityDNS     = "dns"     // the first DNS name
	IdentityEmail   = "email"   // the first email address
	IdentityURI     = "uri"     // the first URI
)

// identifies reports whether clients must identify themselves.
func (o *Options) identifies() bool {
	return len(o.ClientKeys) > 0 || o.Keys != nil || o.Tokens != nil || o.Proxy != nil || o.ClientIdentity != ""
}

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
	if o.identifies() {
		usual = TenantByKey
	}
	o.TenantBy = cmp.Or(o.TenantBy, usual)
	switch o.TenantBy {
	case TenantByCredential:
		return nil
	case TenantByKey, TenantByBoth:
		if !o.identifies() {
			return fmt.Errorf("gateway.tenant_by: %s needs client keys: set gateway.client_keys_env or client_keys_file", o.TenantBy)
		}
		return nil
	}
	return fmt.Errorf("invalid gateway.tenant_by %q: expected key, credential or both", o.TenantBy)
}

// newKeys returns the keys of clients and operators.
func newKeys(o *Options) *access.Keys {
	list := slices.Clone(o.Keys.All())
	client := access.Client
	if len(o.TenantSecret) == 0 {
		client |= access.Operate // its sessions are all there are
	}
	for _, secret := range o.ClientKeys {
		list = append(list, access.Unnamed(secret, access.ByClientKey, client))
	}
	for _, secret := range o.OperatorKeys {
		list = append(list, access.Unnamed(secret, access.ByOperatorKey, access.Operate))
	}
	return access.NewKeys(list)
}

// clientKeyHeader is the header of a client or operator key. It leaves the
// Authorization header to the provider's credential, and is not forwarded.
const clientKeyHeader = "X-Furl-Key"

// maxCredentials is the largest number of credentials in a request.
const maxCredentials = 8

// credentialHeaders are the headers in which some provider accepts a credential: most
// of them, then Azure and Google.
var credentialHeaders = []string{"X-Api-Key", "Authorization", "Api-Key", "X-Goog-Api-Key"}

// bareCredential returns the credential in the value of a header.
func bareCredential(value string) string {
	if scheme, token, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "bearer") {
		value = token
	}
	return strings.TrimSpace(value)
}

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
	for _, name := range credentialHeaders {
		for _, value := range r.Header.Values(name) {
			add(bareCredential(value))
		}
	}
	if r.URL.RawQuery != "" {
		add(r.URL.Query()["key"]...) // Google
	}
	return shown
}

func unauthorized(format string, args ...any) error {
	return &statusError{http.StatusUnauthorized, fmt.Errorf(format, args...)}
}

func forbidden(format string, args ...any) error {
	return &statusError{http.StatusForbidden, fmt.Errorf(format, args...)}
}

// identify returns who sends a request that needs one of the scopes, and the secret by
// which a key was found. A key or token counts before what a proxy or a certificate
// says. A key in X-Furl-Key counts alone, else the first credential that is a key, but
// one that has the scope before one that does not.
func (g *guard) identify(r *http.Request, need Scopes) (who Identity, secret string, err error) {
	if err := g.checkProxyHeader(r); err != nil {
		return who, "", err
	}
	shown := credentials(r)
	if key := r.Header.Get(clientKeyHeader); key != "" {
		shown = []string{key}
	}
	var found *access.Key
	for _, s := range shown {
		if k := g.keys.Find(s); k != nil && (found == nil || found.Scopes&need == 0 && k.Scopes&need != 0) {
			found, secret = k, s
		}
	}
	if found != nil {
		who = found.Identity()
		who.Tenant = furl.Tenant(cmp.Or(found.Tenant, found.Name))
		if err := found.Usable(g.now()); err != nil {
			return who, "", &statusError{http.StatusUnauthorized, err}
		}
		return who, secret, nil
	}
	if i := slices.IndexFunc(shown, g.isToken); i >= 0 {
		who, err := g.verifyToken(r.Context(), shown[i])
		return who, "", err
	}
	if g.proxy != nil && len(r.Header.Values(g.proxy.Header)) > 0 {
		return claimed(access.ByProxy, r.Header.Get(g.proxy.Header))
	}
	if g.certName != "" && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return claimed(access.ByCertificate, nameInCertificate(r.TLS.PeerCertificates[0], g.certName))
	}
	if g.required {
		return who, "", unauthorized("this gateway requires %s", g.howToIdentify())
	}
	who = Identity{By: access.ByNothing, Scopes: access.Client}
	if g.tenantBy == "" {
		who.Scopes |= access.Operate
	}
	return who, "", nil
}

// verifyToken returns who a token of the issuer belongs to.
func (g *guard) verifyToken(ctx context.Context, token string) (Identity, error) {
	who, err := g.tokens.Verify(ctx, token)
	if err != nil {
		status := http.StatusUnauthorized
		if errors.Is(err, access.ErrUnavailable) {
			status = http.StatusServiceUnavailable
		}
		return Identity{By: access.ByToken}, &statusError{status, err}
	}
	return who, nil
}

func (g *guard) isToken(credential string) bool {
	return g.tokens != nil && g.tokens.Issued(credential)
}

// claimed returns the identity of a client that a proxy or an authority has named.
func claimed(by access.By, name string) (Identity, string, error) {
	tenant, err := access.ClaimedTenant(name)
	if err != nil {
		return Identity{By: by}, "", forbidden("cannot identify the client by its %s: %w", by, err)
	}
	return Identity{Name: name, By: by, Tenant: tenant, Scopes: access.Client}, "", nil
}

// howToIdentify says what a client can send to identify itself.
func (g *guard) howToIdentify() string {
	var ways []string
	if g.clientKeys {
		ways = append(ways, "a client key: send it in "+clientKeyHeader)
	}
	if g.tokens != nil {
		ways = append(ways, "a token of its issuer: send it in "+clientKeyHeader+" or as a bearer token")
	}
	if g.proxy != nil {
		ways = append(ways, "the header of its proxy")
	}
	if g.certName != "" {
		ways = append(ways, "a client certificate with a name")
	}
	return strings.Join(ways, ", or ")
}

// checkProxyHeader returns an error for a request that has the header of the trusted
// proxy and is not from it, or has it twice.
func (g *guard) checkProxyHeader(r *http.Request) error {
	if g.proxy == nil {
		return nil
	}
	n := len(r.Header.Values(g.proxy.Header))
	if n == 0 {
		return nil
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !slices.ContainsFunc(g.proxy.Networks, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap().WithZone("")) }) {
		return forbidden("the header %s is accepted from gateway.trusted_proxy.networks only", g.proxy.Header)
	}
	if n > 1 {
		return forbidden("the header %s occurs more than once", g.proxy.Header)
	}
	return nil
}

// nameInCertificate returns a part of a certificate, "" if it has none.
func nameInCertificate(c *x509.Certificate, part string) string {
	switch {
	case part == IdentitySubject:
		return c.Subject.CommonName
	case part == IdentityDNS && len(c.DNSNames) > 0:
		return c.DNSNames[0]
	case part == IdentityEmail && len(c.EmailAddresses) > 0:
		return c.EmailAddresses[0]
	case part == IdentityURI && len(c.URIs) > 0:
		return c.URIs[0].String()
	}
	return ""
}

// admit returns who sends a request that needs one of the scopes, or why the request is
// refused. The identity has a tenant unless it is only for operators.
func (g *guard) admit(r *http.Request, need Scopes) (Identity, error) {
	who, secret, err := g.identify(r, need)
	if err != nil {
		if need == access.Operate && g.tenantBy != "" && who.By == "" {
			err = g.operatorRequired()
		}
		return who, err
	}
	if who.Scopes&need&access.Operate != 0 && (who.By == access.ByOperatorKey || who.By == access.ByKey || need == access.Operate && !g.hasOperatorKey(r)) {
		return who, nil
	}
	if need == access.Operate && g.tenantBy != "" && who.By != access.ByKey {
		return who, g.operatorRequired()
	}
	if g.hasOperatorKey(r) {
		return who, forbidden("the operator key is for metrics, status and reload only: use a client key")
	}
	if who.Scopes&need == 0 {
		return who, forbidden("%s lacks the scope %s: it has %s", describeClient(&who), need, who.Scopes)
	}
	who.Tenant, err = g.tenant(r, &who, secret)
	return who, err
}

func describeClient(who *Identity) string {
	if who.Name == "" {
		return "this client"
	}
	return fmt.Sprintf("%s %q", strings.ReplaceAll(string(who.By), "_", " "), who.Name)
}

func (g *guard) operatorRequired() error {
	if !g.operators {
		return forbidden("operator key required, but none is configured: set gateway.operator_key_env or operator_key_file")
	}
	return unauthorized("operator key required: send it in %s or as a bearer token", clientKeyHeader)
}

// hasOperatorKey reports whether a key that is only for operators is anywhere in a
// request, also where it would be forwarded to the provider.
func (g *guard) hasOperatorKey(r *http.Request) bool {
	is := func(s string) bool {
		k := g.keys.Find(s)
		return k != nil && k.Scopes == access.Operate
	}
	return is(r.Header.Get(clientKeyHeader)) || slices.ContainsFunc(credentials(r), is)
}

// tenant returns the tenant of a client, or an error if the request does not identify
// one. TenantBy is about clients without a name: others bring their tenant.
func (g *guard) tenant(r *http.Request, who *Identity, key string) (furl.Tenant, error) {
	switch {
	case g.tenantBy == "":
		return "", nil
	case who.By != access.ByClientKey && who.By != access.ByNothing:
		return who.Tenant, nil
	}
	var shown []string
	if g.tenantBy == TenantByCredential {
		key = ""
	}
	if g.tenantBy != TenantByKey {
		shown = credentials(r)
		if err := checkIdentifying(shown); err != nil {
			return "", err
		}
	}
	return TenantOf(g.tenantSecret, key, shown...), nil
}

// isOwn reports whether a credential is one of furl's that no provider knows.
func (g *guard) isOwn(credential string) bool {
	if k := g.keys.Find(credential); k != nil && k.By == access.ByKey {
		return true
	}
	return g.isToken(credential)
}

// withoutIdentity returns a request without named keys and tokens, and without the
// header of a trusted proxy: they are not for providers. A client key without a name
// may be the provider's credential too, and stays.
func (g *guard) withoutIdentity(r *http.Request) *http.Request {
	proxied := g.proxy != nil && len(r.Header.Values(g.proxy.Header)) > 0
	own := slices.ContainsFunc(credentials(r), g.isOwn)
	if !proxied && !own {
		return r
	}
	out := *r
	out.Header = r.Header.Clone()
	if proxied {
		out.Header.Del(g.proxy.Header)
	}
	if !own {
		return &out
	}
	for _, name := range credentialHeaders {
		out.Header[name] = slices.DeleteFunc(out.Header[name], func(value string) bool { return g.isOwn(bareCredential(value)) })
		if len(out.Header[name]) == 0 {
			delete(out.Header, name)
		}
	}
	if query := r.URL.Query(); slices.ContainsFunc(query["key"], g.isOwn) {
		query["key"] = slices.DeleteFunc(query["key"], g.isOwn)
		u := *r.URL
		u.RawQuery = query.Encode()
		out.URL = &u
	}
	return &out
}

type admittedKey struct{}

// admitted is what is known of an admitted request.
type admitted struct {
	who   Identity
	entry *AuditEntry // of the audit log; nil: none
}

func admittedOf(ctx context.Context) admitted {
	a, _ := ctx.Value(admittedKey{}).(admitted)
	return a
}

// identityOf returns the identity in the context of an admitted request.
func identityOf(ctx context.Context) Identity { return admittedOf(ctx).who }

// sessionsOf returns the sessions of an admitted request's tenant.
func (g *Gateway) sessionsOf(r *http.Request) *session.Sessions {
	return g.sessions.For(identityOf(r.Context()).Tenant)
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
