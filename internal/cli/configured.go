package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
)

// addConfig adds the --config flag.
func addConfig(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, "config", "", "configuration `file` (default $FURL_CONFIG, else the path that furl config path prints)")
}

// loadConfig reads the configuration file. If the flags name no catalogue, it sets
// the file's.
func (p program) loadConfig(file string, price *pricing) (*config.Config, string, error) {
	c, name, err := config.Load(file, p.policies)
	if err != nil {
		return nil, "", err
	}
	if price.catalog == "" && c.Catalog != "" {
		price.catalog = c.Catalog
		if !filepath.IsAbs(price.catalog) { // relative to the file
			price.catalog = filepath.Join(filepath.Dir(name), price.catalog)
		}
	}
	return c, name, nil
}

// checkPolicy returns a usage error if the configuration does not have the policy
// that a flag names.
func (f *storeFlags) checkPolicy(name string) error {
	c, _, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return err
	}
	if _, err := c.Set().Policy(name, policy.Settings{}); err != nil {
		return usageError{err}
	}
	return nil
}

// configured is a policy with the name configuredName.
type configured struct{ furl.Policy }

// configuredName is the name of the configuration's policy in tables.
const configuredName = "configured"

// Name is configuredName.
func (configured) Name() string { return configuredName }

// configuredCandidate is the policy that the configuration chooses for each model.
func configuredCandidate(c *config.Config) replay.Candidate {
	return replay.Candidate{Name: configuredName, New: func(s policy.Summarizer) (furl.Policy, error) {
		settings := c.Settings()
		settings.Summarizer = s
		p, err := c.SetByModel().Policy(c.Default(), settings)
		return configured{p}, err
	}}
}

// reducing returns the policy that furl reduce previews: that of --policy, else that
// of the configuration file for the model, else clear-100k. off reports that the
// configuration turns all policies off.
func (f *viewFlags) reducing(cmd *cobra.Command, model string) (name string, p furl.Policy, off bool, err error) {
	c, file, err := f.program.loadConfig(f.config, &f.pricing)
	if err != nil {
		return "", nil, false, err
	}
	name = f.policy
	if !cmd.Flags().Changed("policy") && file != "" {
		name, _, _ = c.For(model)
	}
	if p, err = policyFor(c, name, model, nil); err != nil {
		return "", nil, false, usageError{err}
	}
	return name, p, c.Settings().Off, nil
}

// policyFor returns the policy of a name as the configuration sets it for a model:
// with the options of the model's rule if that has the same policy, and with the
// settings for all policies.
func policyFor(c *config.Config, name, model string, s policy.Summarizer) (furl.Policy, error) {
	set := c.Set()
	if of, own, _ := c.For(model); of == name {
		set = own
	}
	settings := c.Settings()
	settings.Summarizer = s
	return set.Policy(name, settings)
}
