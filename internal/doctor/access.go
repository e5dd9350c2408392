package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/oidc"
	"github.com/furlhq/furl/internal/private"
	"github.com/furlhq/furl/internal/remote"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/visible"
)

// access checks the named keys and the audit log of the configuration.
func (d *gatewayDoctor) access(c *config.Config, file string) {
	if c.Gateway.KeysFile != "" {
		keys, err := serving.ReadNamedKeys(config.Beside(file, c.Gateway.KeysFile))
		switch e := (*private.ExposedError)(nil); {
		case errors.As(err, &e): // a finding already
		case err != nil:
			d.found("client keys", findingProblem, "restore the file, or make new keys with furl keys create", "%s", visible.Text(err.Error()))
		default:
			d.namedKeys(keys)
		}
	}
	if c.Audit.File == "" {
		return
	}
	n := 0
	for _, err := range audit.All(config.Beside(file, c.Audit.File)) {
		if err != nil {
			d.found("audit log", findingProblem, "find out who can write the file; furl audit verify shows the place", "%s", visible.Text(err.Error()))
			return
		}
		n++
	}
	d.found("audit log", findingFine, "", "%s, no line was changed or removed", audit.Entries(n))
}

// issuer checks the issuer of tokens, as it is reachable from this machine.
func (d *gatewayDoctor) issuer(ctx context.Context, c *config.Config) {
	address := c.Gateway.OIDC.Issuer
	if address == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, remote.Timeout)
	defer cancel()
	client := *d.http
	client.CheckRedirect = nil // a gateway follows redirects of the issuer
	health, err := oidc.Check(ctx, address, &client)
	switch e := (*oidc.IssuerError)(nil); {
	case errors.As(err, &e):
		d.found("token issuer", findingProblem, e.Cure, "%s", visible.Text(e.Text))
	case err != nil:
		d.found("token issuer", findingProblem, remote.NetCure(err), "cannot connect to %s, so tokens with new keys are refused: %s", visible.Text(address), remote.NetWords(err))
	default:
		d.found("token issuer", findingFine, "", "%s responds, with %s", visible.Text(address), numbers.Count(health.Keys, "key"))
	}
	d.clock(health.Date, "the token issuer's")
}

// namedKeys adds the finding of the keys that can be used.
func (d *gatewayDoctor) namedKeys(keys []access.Key) {
	valid, soon := 0, ""
	for i := range keys {
		k := &keys[i]
		if k.Usable(d.now()) != nil {
			continue
		}
		valid++
		if !k.Expires.IsZero() && k.Expires.Sub(d.now()) < expirySoon && soon == "" {
			soon = k.Name + " expires at " + k.Expires.Format(time.DateOnly)
		}
	}
	switch {
	case valid == 0:
		d.found("client keys", findingWarning, "make one with furl keys create NAME", "no named key can be used")
	case soon != "":
		d.found("client keys", findingWarning, "make a new key with furl keys create NAME --tenant TENANT", "%s can be used; %s", numbers.Count(valid, "named key"), visible.Text(soon))
	default:
		d.found("client keys", findingFine, "", "%s can be used", numbers.Count(valid, "named key"))
	}
}
