package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
)

// addConfig adds the flag that names the configuration file.
func addConfig(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, "config", "", "configuration `file` (default $FURL_CONFIG, else furl/config.yaml where the system keeps configuration)")
}

// loadConfig reads the configuration, and the catalogue that it names into the
// flags, where they name none.
func loadConfig(file string, p *pricing) (*config.Config, string, error) {
	c, name, err := config.Load(file)
	if err != nil {
		return nil, "", err
	}
	if p.catalog == "" && c.Catalog != "" {
		p.catalog = c.Catalog
		if !filepath.IsAbs(p.catalog) { // it stands beside the file
			p.catalog = filepath.Join(filepath.Dir(name), p.catalog)
		}
	}
	return c, name, nil
}

// configured is the policy that a configuration gives each model, for replays.
type configured struct {
	c       *config.Config
	s       policy.Summarizer
	byModel map[string]furl.Policy
}

// configuredName is what tables call it.
const configuredName = "configured"

// configuredCandidate tries what the configuration says.
func configuredCandidate(c *config.Config) replay.Candidate {
	return replay.Candidate{Name: configuredName, New: func(s policy.Summarizer) (furl.Policy, error) {
		return &configured{c, s, make(map[string]furl.Policy)}, nil
	}}
}

// Name is configuredName.
func (p *configured) Name() string { return configuredName }

// Plan is that of the model's policy, in the window that the configuration
// gives the model.
func (p *configured) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	name, o, window := p.c.For(b.Model.ID)
	if window > 0 {
		b.Window = window
	}
	its := p.byModel[b.Model.ID]
	if its == nil {
		o.Summarizer = p.s
		var err error
		if its, err = policy.Preset(name, o); err != nil {
			return nil, err
		}
		p.byModel[b.Model.ID] = its
	}
	return its.Plan(ctx, s, b)
}

// reducing is the policy that furl reduce previews: the one named, else what a
// configuration says for the model, else clear-100k.
func (f *viewFlags) reducing(cmd *cobra.Command, model string) (name string, o policy.Options, err error) {
	c, file, err := loadConfig(f.config, &f.pricing)
	if err != nil {
		return "", o, err
	}
	if cmd.Flags().Changed("policy") || file == "" {
		return f.policy, o, nil
	}
	name, o, window := c.For(model)
	if window > 0 && f.window == "" {
		f.tokens = window
	}
	return name, o, nil
}
