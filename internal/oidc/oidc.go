// Package oidc identifies clients of the gateway by tokens of an OpenID Connect issuer.
package oidc

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"

	"github.com/furlhq/furl/internal/access"
)

// Options are the settings of a Verifier. Issuer and Audience are required.
type Options struct {
	Issuer, Audience string
	// TenantClaim is the claim with the tenant. If empty, sub.
	TenantClaim string
	// ScopesClaim is the claim with the scopes: a list, or words separated by spaces. If
	// empty, every token has the scopes of a client.
	ScopesClaim string
	// Scopes maps values of ScopesClaim to scopes. If empty, the values are names of
	// scopes, and others have no effect.
	Scopes map[string]access.Scopes
	// Transport sends requests to the issuer. If nil, http.DefaultTransport.
	Transport http.RoundTripper
	// Now is the clock. If nil, time.Now.
	Now func() time.Time
	// Previous is the verifier that the new one replaces, nil for none. If it has the same
	// issuer, its keys are used.
	Previous *Verifier
}

// Verifier verifies tokens. It asks the issuer for its keys when it needs them, and keeps
// them, so that tokens are verified while the issuer is down. It is safe for concurrent
// use.
type Verifier struct {
	o     Options
	terms string // the digest of what a token must say
	keys  *issuerKeys
}

// Limits of what an issuer or a client sends.
const (
	maxResponse = 1 << 20
	maxToken    = 16 << 10
	timeout     = 5 * time.Second
)

// New returns a Verifier. It does not ask the issuer yet.
func New(o *Options) *Verifier {
	v := &Verifier{o: *o}
	v.o.TenantClaim = cmp.Or(v.o.TenantClaim, "sub")
	if v.o.Now == nil {
		v.o.Now = time.Now
	}
	if v.o.Transport == nil {
		v.o.Transport = http.DefaultTransport
	}
	v.terms = digestOf(fmt.Sprintf("%q %q %q", v.o.Issuer, v.o.Audience, v.o.TenantClaim))
	if p := o.Previous; p != nil && p.o.Issuer == v.o.Issuer && p.o.Transport == v.o.Transport {
		v.keys = p.keys
	} else {
		v.keys = &issuerKeys{issuer: v.o.Issuer, now: v.o.Now, client: &http.Client{Timeout: timeout, Transport: v.o.Transport}}
	}
	v.o.Previous = nil
	return v
}

// Issued reports whether a credential says that it is a token of the issuer, of whatever
// size. It verifies nothing.
func (v *Verifier) Issued(credential string) bool {
	if strings.Count(credential, ".") != 2 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(credential, ".")[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	return err == nil && json.Unmarshal(payload, &claims) == nil && claims.Issuer == v.o.Issuer
}

// Verify returns who a token belongs to. The error wraps access.ErrUnavailable if the
// issuer's keys cannot be read.
func (v *Verifier) Verify(ctx context.Context, token string) (access.Identity, error) {
	if len(token) > maxToken {
		return access.Identity{}, fmt.Errorf("the token has %d bytes, at most %d are accepted", len(token), maxToken)
	}
	set, _ := v.keys.current(false)
	if set == nil {
		return access.Identity{}, fmt.Errorf("the issuer of tokens %s cannot be reached: %w", v.o.Issuer, access.ErrUnavailable)
	}
	t, err := v.verify(ctx, set, token)
	if err != nil && strings.Contains(err.Error(), "failed to verify") { // the signature; all else is right
		newer, failure := v.keys.current(true)
		if newer != set {
			set = newer
			t, err = v.verify(ctx, set, token)
		}
		if err != nil && failure != nil && set.ids[keyID(token)] == "" {
			return access.Identity{}, fmt.Errorf("the key of the token is unknown, and the keys of %s cannot be read: %w", v.o.Issuer, access.ErrUnavailable)
		}
	}
	if expired := (*goidc.TokenExpiredError)(nil); errors.As(err, &expired) {
		return access.Identity{}, fmt.Errorf("the token expired at %s", expired.Expiry.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return access.Identity{}, errors.New("invalid token: its issuer, audience, time or signature is wrong")
	}
	var claims map[string]any
	if err := t.Claims(&claims); err != nil {
		return access.Identity{}, errors.New("invalid token: its claims are not an object")
	}
	who, err := v.identity(claims)
	who.Expires, who.Signer = t.Expiry, v.terms+"-"+set.digestOfSigner(token)
	return who, err
}

func (v *Verifier) verify(ctx context.Context, set *keySet, token string) (*goidc.IDToken, error) {
	return goidc.NewVerifier(v.o.Issuer, set.verifier, &goidc.Config{ClientID: v.o.Audience, SupportedSigningAlgs: set.algs, Now: v.o.Now}).Verify(ctx, token)
}

// Trusts reports whether a login with a token may go on: signer is what Verify has returned
// as the identity's Signer. It is false once the issuer has removed the key, or the issuer,
// the audience or the tenant's claim are others.
func (v *Verifier) Trusts(signer string) bool {
	digest, ok := strings.CutPrefix(signer, v.terms+"-")
	if !ok {
		return false
	}
	set, _ := v.keys.current(false)
	return set != nil && set.digests[digest]
}

// identity returns who the claims of a verified token are about.
func (v *Verifier) identity(claims map[string]any) (access.Identity, error) {
	name, ok := claims[v.o.TenantClaim].(string)
	if !ok {
		return access.Identity{}, fmt.Errorf("the token has no claim %q with a text", v.o.TenantClaim)
	}
	if verified, ok := claims["email_verified"].(bool); v.o.TenantClaim == "email" && ok && !verified {
		return access.Identity{}, errors.New("the token's email address is not verified")
	}
	tenant, err := access.ClaimedTenant(name)
	if err != nil {
		return access.Identity{}, fmt.Errorf("claim %q: %w", v.o.TenantClaim, err)
	}
	who := access.Identity{Name: name, By: access.ByToken, Tenant: tenant, Scopes: access.Client}
	if sub, ok := claims["sub"].(string); ok && len(sub) <= 128 {
		who.Name = sub
	}
	if v.o.ScopesClaim == "" {
		return who, nil
	}
	who.Scopes = 0
	for _, word := range words(claims[v.o.ScopesClaim]) {
		if len(v.o.Scopes) > 0 {
			who.Scopes |= v.o.Scopes[word]
		} else if s, err := access.ParseScopes([]string{word}); err == nil {
			who.Scopes |= s
		}
	}
	return who, nil
}

// words returns the values of a claim.
func words(claim any) (list []string) {
	switch c := claim.(type) {
	case string:
		return strings.Fields(c)
	case []any:
		for _, item := range c {
			if s, ok := item.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}
