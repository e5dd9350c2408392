package cmdline

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/replay"
)

// Pricing are the flags for the model, its prices and its catalogue.
type Pricing struct {
	Model                 string
	catalog               string
	input, output         float64
	cacheRead, cacheWrite float64
	cacheTTL              time.Duration
	flags                 *pflag.FlagSet
}

// Add adds the flags to a command.
func (p *Pricing) Add(fl *pflag.FlagSet) {
	p.flags = fl
	fl.StringVar(&p.Model, "model", "", "use window, prices and rules of this `model` instead of the recorded one")
	p.AddCatalog(fl)
	fl.Float64Var(&p.input, "price-input", 0, "price of uncached input in US `dollars` per million tokens")
	fl.Float64Var(&p.output, "price-output", 0, "price of output in US `dollars` per million tokens")
	fl.Float64Var(&p.cacheRead, "cache-read", 0, "price of cache reads as a `multiple` of the input price, such as 0.1")
	fl.Float64Var(&p.cacheWrite, "cache-write", 0, "price of cache writes as a `multiple` of the input price, such as 1.25")
	fl.DurationVar(&p.cacheTTL, "cache-ttl", 0, "`lifetime` of cache entries that the client requests: 5m, 1h, or 24h (OpenAI) (default as recorded)")
}

// AddCatalog adds only the flag for the catalogue.
func (p *Pricing) AddCatalog(fl *pflag.FlagSet) {
	p.flags = fl
	fl.StringVar(&p.catalog, "catalog", "", "`file` with models that override or add to the built-in catalogue")
}

// Options converts the flags into options of a replay.
func (p *Pricing) Options() (replay.Options, error) {
	var o replay.Options
	o.Model = p.Model
	for name, v := range map[string]float64{"price-input": p.input, "price-output": p.output, "cache-read": p.cacheRead, "cache-write": p.cacheWrite} {
		if v < 0 {
			return o, BadUsage("invalid --%s %g: expected a price of 0 or more", name, v)
		}
		if !(v <= 1e9) { // NaN is not
			return o, BadUsage("invalid --%s %g: expected a price of at most 1e9", name, v)
		}
	}
	if p.output > 0 && p.input == 0 {
		return o, BadUsage("--price-output requires --price-input")
	}
	o.Prices = furl.Prices{Input: p.input, Output: p.output}
	if p.flags.Changed("cache-read") {
		o.CacheRead = &p.cacheRead
	}
	if p.flags.Changed("cache-write") {
		o.CacheWrite = &p.cacheWrite
	}
	if p.cacheTTL != 0 && (p.cacheTTL < time.Minute || p.cacheTTL > 720*time.Hour) {
		return o, BadUsage("invalid --cache-ttl %v: expected a lifetime such as 5m or 1h, up to 720h", p.cacheTTL)
	}
	o.CacheLifetime = p.cacheTTL
	o.Catalog = catalog.Default()
	if p.catalog != "" {
		own, err := catalog.Load(p.catalog)
		if err != nil {
			return o, err
		}
		if o.Catalog, err = o.Catalog.Merge(own); err != nil {
			return o, err
		}
	}
	if p.Model != "" && p.input == 0 {
		if _, ok := o.Catalog.Lookup(p.Model); !ok {
			return o, BadUsage("unknown model %q: set --window and --price-input, or name a --catalog that has it", p.Model)
		}
	}
	return o, nil
}

// CatalogFile returns the file that adds to the built-in catalogue, "" for none.
func (p *Pricing) CatalogFile() string { return p.catalog }

// Complete sets the values that shells complete for a flag.
func Complete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}

// ModelNames returns the names of the catalogue, for flag completion. The catalogue is
// parsed then, and not when furl starts.
func ModelNames() []string { return catalog.Default().Names() }

// Renamed keeps the former name of a flag.
func Renamed(was, is string) func(*pflag.FlagSet, string) pflag.NormalizedName {
	return func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == was {
			name = is
		}
		return pflag.NormalizedName(name)
	}
}
