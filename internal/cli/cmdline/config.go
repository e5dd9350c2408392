package cmdline

import (
	"path/filepath"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/policy"
	"github.com/spf13/pflag"
)

// AddConfig adds the --config flag.
func AddConfig(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, "config", "", "configuration `file` (default $FURL_CONFIG, else the path that furl config path prints)")
}

// LoadConfig reads the configuration file. If the flags name no catalogue, it sets
// the file's.
func (p Program) LoadConfig(file string, price *Pricing) (*config.Config, string, error) {
	c, name, err := config.Load(file, p.Policies)
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

// CheckPolicy returns a usage error if the configuration does not have the policy
// that a flag names.
func (f *StoreFlags) CheckPolicy(name string) error {
	c, _, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return err
	}
	if _, err := c.Set().Policy(name, policy.Settings{}); err != nil {
		return usage.Wrap(err)
	}
	return nil
}
