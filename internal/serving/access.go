package serving

import (
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/oidc"
	"github.com/furlhq/furl/internal/workspace"
)

// accessOptions sets who may use the gateway, apart from the keys without names.
func (f *Gateway) accessOptions(o *gateway.Options, c *config.Config, file string) (err error) {
	g := &c.Gateway
	if o.Keys, err = namedKeys(c, file); err != nil {
		return err
	}
	if g.TrustedProxy.Header != "" {
		o.Proxy = &gateway.TrustedProxy{Header: g.TrustedProxy.Header, Networks: g.TrustedProxy.Prefixes()}
	}
	if i := &g.OIDC; i.Issuer != "" {
		scopes := make(map[string]access.Scopes)
		for value, names := range i.Scopes {
			if scopes[value], err = access.ParseScopes(names); err != nil {
				return err
			}
		}
		// With the keys that are known, so that a reload is harmless while the issuer is down.
		f.tokens = oidc.New(&oidc.Options{Issuer: i.Issuer, Audience: i.Audience, TenantClaim: i.TenantClaim, ScopesClaim: i.ScopesClaim, Scopes: scopes, Previous: f.tokens})
		o.Tokens = f.tokens
	}
	o.Limits = workspace.Limits(c)
	if !f.Running && !f.Only { // they have no TLS
		o.ClientIdentity = g.TLS.ClientIdentity
		o.ClientCertRequired = g.TLS.ClientCAFile != "" && g.TLS.ClientCert != "optional"
	}
	return nil
}
