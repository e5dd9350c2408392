package storecmd

import (
	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
)

// reducing returns the policy that furl reduce previews: that of --policy, else that
// of the configuration file for the model, else clear-100k. off reports that the
// configuration turns all policies off.
func (f *viewFlags) reducing(cmd *cobra.Command, model string) (name string, p furl.Policy, off bool, err error) {
	c, file, err := f.Program.LoadConfig(f.Config, &f.Pricing)
	if err != nil {
		return "", nil, false, err
	}
	name = f.policy
	if !cmd.Flags().Changed("policy") && file != "" {
		name, _, _ = c.For(model)
	}
	if p, err = policyFor(c, name, model, nil); err != nil {
		return "", nil, false, cmdline.AsUsage(err)
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
