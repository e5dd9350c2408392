package storecmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/operation"
)

// onlyOfFiles are flags of furl reduce that apply to recordings only.
var onlyOfFiles = []string{"at-request", "window", "catalog", "price-input", "price-output", "cache-read", "cache-write"}

// reduceStored applies a policy to a session of the store, or previews it.
func reduceStored(f *cmdline.StoreFlags, cmd *cobra.Command, name, preset, model string, dry bool) error {
	for _, flag := range onlyOfFiles {
		if cmd.Flags().Changed(flag) {
			return cmdline.BadUsage("--%s works only with a recording's file; a session of the store uses the configuration", flag)
		}
	}
	if preset != "" {
		if err := f.CheckPolicy(preset); err != nil {
			return err
		}
	}
	in := &operation.ReduceInput{Policy: preset, Model: model}
	in.DryRun = dry
	return operate(f, cmd, operation.Named("reduce"), name, in)
}

func printWarnings(w io.Writer, list []furl.Warning) {
	for _, warning := range list {
		fmt.Fprintf(w, "warning: %s\n", cmdline.Printable(warning.Text))
	}
}
