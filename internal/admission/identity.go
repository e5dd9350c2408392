package admission

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
)

// TokenVerifier verifies tokens by which clients identify themselves.
type TokenVerifier interface {
	// Issued reports whether a credential says that it is a token of this issuer. Only
	// then Verify is called.
	Issued(credential string) bool
	// Verify returns who a token belongs to, with its tenant and scopes. The error is
	// shown to the client.
	Verify(ctx context.Context, token string) (access.Identity, error)
	// Trusts reports whether a login with a token that was verified may go on. signer is
	// Identity.Signer.
	Trusts(signer string) bool
}

// Parts of a certificate that name a client.
const (
	Subject = "subject" // the common name
	DNS     = "dns"     // the first DNS name
	Email   = "email"   // the first email address
	URI     = "uri"     // the first URI
)

// decide sets who sends a request that needs one of the scopes, and returns why the
// request is refused. The identity has a tenant unless it is only for operators.
func (a *Admission) decide(r *http.Request, need access.Scopes) error {
	g := a.g
	if len(a.sent.shown) > maxCredentials {
		return unauthorized("too many credentials: send at most %d", maxCredentials)
	}
	secret, err := a.identify(r, need)
	who := &a.Who
	if err != nil {
		if need == access.Operate && g.o.TenantBy != "" && who.By == "" {
			err = g.operatorRequired()
		}
		return err
	}
	if who.Scopes&need&access.Operate != 0 && (who.By == access.ByOperatorKey || who.By == access.ByKey || need == access.Operate && !a.sent.operator()) {
		return nil
	}
	if need == access.Operate && g.o.TenantBy != "" && who.By != access.ByKey {
		return g.operatorRequired()
	}
	if a.sent.operator() {
		return errOperatorKey()
	}
	if who.Scopes&need == 0 {
		return lacksScope(who, need)
	}
	var shown []string
	if g.usesCredential() {
		shown = a.sent.values()
	}
	who.Tenant, err = g.tenant(who, secret, shown)
	return err
}

// identify sets who sends a request that needs one of the scopes, and returns the secret
// by which a key was found. A key or token counts before what a proxy or a certificate
// says. A key in KeyHeader counts alone, else the first credential that is a key, but one
// that has the scope before one that does not.
func (a *Admission) identify(r *http.Request, need access.Scopes) (secret string, err error) {
	g := a.g
	if err := g.checkProxyHeader(r); err != nil {
		return "", err
	}
	shown := a.sent.shown
	if a.sent.key.value != "" {
		shown = []credential{a.sent.key}
	}
	var found *access.Key
	for _, c := range shown {
		if k := c.key; k != nil && (found == nil || found.Scopes&need == 0 && k.Scopes&need != 0) {
			found, secret = k, c.value
		}
	}
	if found != nil {
		a.Who = found.Identity()
		a.Who.Tenant = furl.Tenant(cmp.Or(found.Tenant, found.Name))
		if err := found.Usable(g.env.Now()); err != nil {
			return "", &Error{http.StatusUnauthorized, err}
		}
		return secret, nil
	}
	if i := slices.IndexFunc(shown, func(c credential) bool { return c.token }); i >= 0 {
		a.Who, err = g.verifyToken(r.Context(), shown[i].value)
		return "", err
	}
	if g.namedByProxy(r) {
		a.Who, err = claimed(access.ByProxy, r.Header.Get(g.o.Proxy.Header))
		return "", err
	}
	if g.o.Certificate != "" && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		a.Who, err = claimed(access.ByCertificate, nameInCertificate(r.TLS.PeerCertificates[0], g.o.Certificate))
		return "", err
	}
	if g.required {
		return "", unauthorized("this gateway requires %s", g.howToIdentify())
	}
	a.Who = access.Identity{By: access.ByNothing, Scopes: access.Client}
	if g.o.TenantBy == "" {
		a.Who.Scopes |= access.Operate
	}
	return "", nil
}

// namedByProxy reports whether a request has the header of the trusted proxy.
func (g *Guard) namedByProxy(r *http.Request) bool {
	return g.o.Proxy != nil && len(r.Header.Values(g.o.Proxy.Header)) > 0
}

// verifyToken returns who a token of the issuer belongs to.
func (g *Guard) verifyToken(ctx context.Context, token string) (access.Identity, error) {
	who, err := g.o.Tokens.Verify(ctx, token)
	if err != nil {
		status := http.StatusUnauthorized
		if errors.Is(err, access.ErrUnavailable) {
			status = http.StatusServiceUnavailable
		}
		return access.Identity{By: access.ByToken}, &Error{status, err}
	}
	return who, nil
}

// claimed returns the identity of a client that a proxy or an authority has named.
func claimed(by access.By, name string) (access.Identity, error) {
	tenant, err := access.ClaimedTenant(name)
	if err != nil {
		return access.Identity{By: by}, forbidden("cannot identify the client by its %s: %w", by, err)
	}
	return access.Identity{Name: name, By: by, Tenant: tenant, Scopes: access.Client}, nil
}

// howToIdentify says what a client can send to identify itself.
func (g *Guard) howToIdentify() string {
	var ways []string
	if g.clientKeys {
		ways = append(ways, "a client key: send it in "+KeyHeader)
	}
	if g.o.Tokens != nil {
		ways = append(ways, "a token of its issuer: send it in "+KeyHeader+" or as a bearer token")
	}
	if g.o.Proxy != nil {
		ways = append(ways, "the header of its proxy")
	}
	if g.o.Certificate != "" {
		ways = append(ways, "a client certificate with a name")
	}
	return strings.Join(ways, ", or ")
}

// checkProxyHeader returns an error for a request that has the header of the trusted
// proxy and is not from it, or has it twice.
func (g *Guard) checkProxyHeader(r *http.Request) error {
	p := g.o.Proxy
	if p == nil {
		return nil
	}
	n := len(r.Header.Values(p.Header))
	if n == 0 {
		return nil
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !slices.ContainsFunc(p.Networks, func(n netip.Prefix) bool { return n.Contains(from.Addr().Unmap().WithZone("")) }) {
		return forbidden("the header %s is accepted from gateway.trusted_proxy.networks only", p.Header)
	}
	if n > 1 {
		return forbidden("the header %s occurs more than once", p.Header)
	}
	return nil
}

// nameInCertificate returns a part of a certificate, "" if it has none.
func nameInCertificate(c *x509.Certificate, part string) string {
	switch {
	case part == Subject:
		return c.Subject.CommonName
	case part == DNS && len(c.DNSNames) > 0:
		return c.DNSNames[0]
	case part == Email && len(c.EmailAddresses) > 0:
		return c.EmailAddresses[0]
	case part == URI && len(c.URIs) > 0:
		return c.URIs[0].String()
	}
	return ""
}

func (g *Guard) operatorRequired() error {
	if !g.operators {
		return forbidden("operator key required, but none is configured: set gateway.operator_key_env or operator_key_file")
	}
	return unauthorized("operator key required: send it in %s or as a bearer token", KeyHeader)
}

func errOperatorKey() error {
	return forbidden("the operator key is for metrics, status and reload only: use a client key")
}

func lacksScope(who *access.Identity, need access.Scopes) error {
	return forbidden("%s lacks the scope %s: it has %s", describe(who), need, who.Scopes)
}

func describe(who *access.Identity) string {
	if who.Name == "" {
		return "this client"
	}
	return fmt.Sprintf("%s %q", strings.ReplaceAll(string(who.By), "_", " "), who.Name)
}
