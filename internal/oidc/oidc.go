// Package oidc identifies clients of the gateway by tokens of an OpenID Connect issuer.
package oidc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
}

// Verifier verifies tokens. It asks the issuer for its keys when it needs them, and keeps
// them, so that tokens are verified while the issuer is down. It is safe for concurrent
// use.
type Verifier struct {
	o      Options
	client *http.Client

	mu       sync.Mutex
	verifier *goidc.IDTokenVerifier // nil: the issuer was not reached yet
	failed   time.Time              // when it was not reached last
	failure  error
}

// Limits of what an issuer or a client sends.
const (
	maxResponse = 1 << 20
	maxToken    = 16 << 10
	timeout     = 5 * time.Second
	// askEvery is the shortest time between two requests for the same document. It keeps
	// clients with invented keys from flooding the issuer.
	askEvery = 5 * time.Second
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
	v.client = &http.Client{Timeout: timeout, Transport: &limited{base: v.o.Transport, now: v.o.Now}}
	return v
}

// Issued reports whether a credential says that it is a token of the issuer. It verifies
// nothing.
func (v *Verifier) Issued(credential string) bool {
	if len(credential) > maxToken {
		return false
	}
	parts := strings.Split(credential, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	return err == nil && json.Unmarshal(payload, &claims) == nil && claims.Issuer == v.o.Issuer
}

// Verify returns who a token belongs to. The error wraps access.ErrUnavailable if the
// issuer's keys cannot be read.
func (v *Verifier) Verify(ctx context.Context, token string) (access.Identity, error) {
	verifier, err := v.ready()
	if err != nil {
		return access.Identity{}, err
	}
	t, err := verifier.Verify(ctx, token)
	if expired := (*goidc.TokenExpiredError)(nil); errors.As(err, &expired) {
		return access.Identity{}, fmt.Errorf("the token expired at %s", expired.Expiry.UTC().Format(time.RFC3339))
	}
	if err != nil {
		if strings.Contains(err.Error(), "fetching keys") {
			return access.Identity{}, fmt.Errorf("the key of the token is unknown, and the keys of %s cannot be read: %w", v.o.Issuer, access.ErrUnavailable)
		}
		return access.Identity{}, errors.New("invalid token: its issuer, audience, time or signature is wrong")
	}
	var claims map[string]any
	if err := t.Claims(&claims); err != nil {
		return access.Identity{}, errors.New("invalid token: its claims are not an object")
	}
	who, err := v.identity(claims)
	who.Expires = t.Expiry
	return who, err
}

// ready returns the verifier of the issuer, which it asks for its configuration once.
func (v *Verifier) ready() (*goidc.IDTokenVerifier, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.verifier != nil {
		return v.verifier, nil
	}
	if v.failure != nil && v.o.Now().Sub(v.failed) < askEvery {
		return nil, v.failure
	}
	// The context is kept for later requests for keys, so it is not that of a request.
	ctx := goidc.ClientContext(context.Background(), v.client)
	provider, err := goidc.NewProvider(ctx, v.o.Issuer)
	if err != nil {
		v.failed = v.o.Now()
		v.failure = fmt.Errorf("the issuer of tokens %s cannot be reached: %w", v.o.Issuer, access.ErrUnavailable)
		return nil, v.failure
	}
	v.verifier = provider.VerifierContext(ctx, &goidc.Config{ClientID: v.o.Audience, Now: v.o.Now})
	return v.verifier, nil
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

// limited bounds the responses of an issuer, and repeats a response for askEvery.
type limited struct {
	base http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	kept map[string]response
}

type response struct {
	at   time.Time
	resp http.Response
	body []byte
}

func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.String()
	l.mu.Lock()
	kept, ok := l.kept[address]
	l.mu.Unlock()
	if age := l.now().Sub(kept.at); !ok || age < 0 || age >= askEvery {
		resp, err := l.base.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
		if err != nil {
			return nil, err
		}
		if len(body) > maxResponse {
			return nil, fmt.Errorf("%s responds with more than %d bytes", address, maxResponse)
		}
		kept = response{l.now(), *resp, body}
		if resp.StatusCode == http.StatusOK {
			l.mu.Lock()
			if l.kept == nil || len(l.kept) > 8 {
				l.kept = make(map[string]response)
			}
			l.kept[address] = kept
			l.mu.Unlock()
		}
	}
	out := kept.resp
	out.Request, out.Body = r, io.NopCloser(bytes.NewReader(kept.body))
	return &out, nil
}
