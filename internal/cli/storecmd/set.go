package storecmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
)

// SetCommand returns furl set.
func SetCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var dry bool
	cmd := &cobra.Command{
		Use:   "set SESSION [KEY=VALUE]...",
		Short: operation.Named("set").Short,
		Long: operation.Named("set").Long + ` Without KEY=VALUE, lists all settings, their
values, and where these come from: the session, the configuration, or the default.`,
		Example: `  furl set latest
  furl set latest policy=rolling context_threshold=0.7
  furl set latest rolling_context=on
  furl set latest policy=                use the default policy again`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdline.BadUsage("%s requires a session; %[1]s --help shows examples", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: completeSettings(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			in := &operation.SetInput{Pairs: args[1:]}
			if in.DryRun = dry; len(in.Pairs) > 0 {
				return operate(&f, cmd, operation.Named("set"), args[0], in)
			}
			t, err := f.Target(cmd, args[0], "")
			if err != nil {
				return err
			}
			defer t.Close(&err)
			all := t.SettingsFor(t.ChatModel)
			if f.Json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"session": t.ID(), "settings": all})
			}
			printSettings(cmd.OutOrStdout(), all)
			return nil
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the effect, change nothing")
	f.Add(cmd)
	return cmd
}

// printSettings prints settings as a table.
func printSettings(w io.Writer, all []session.Setting) {
	t := cmdline.NewTable(w, cmdline.Text("setting"), cmdline.Text("value"), cmdline.Text("from"), cmdline.Text(""))
	for _, s := range all {
		t.Add(s.Name, cmdline.Truncate(settingText(s), 40), s.From, s.About)
	}
	t.Shrink("value", 24)
	whole := t.Fits()
	if !whole {
		t.Drop("")
	}
	t.Print()
	if !whole {
		fmt.Fprintln(w)
		for _, s := range all {
			cmdline.PrintWrapped(w, s.Name+": "+s.About, t.Cols)
		}
	}
}

// settingText returns the value of a setting for people.
func settingText(s session.Setting) string {
	if s.Value == "" {
		return "–"
	}
	return cmdline.Printable(s.Value)
}

// completeSettings completes a session, and then KEY= and its values.
func completeSettings(f *cmdline.StoreFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return cmdline.CompleteSessions(f)(cmd, args, begun)
		}
		t, err := f.Target(cmd, args[0], "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer t.Close(&err)
		var list []string
		key, value, hasKey := strings.Cut(begun, "=")
		for _, s := range t.Settings() {
			switch {
			case !hasKey && strings.HasPrefix(s.Name, key):
				list = append(list, s.Name+"=\t"+s.About)
			case hasKey && s.Name == key:
				for _, v := range s.Values {
					if strings.HasPrefix(v, value) {
						list = append(list, key+"="+v)
					}
				}
			}
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if !hasKey {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return list, directive
	}
}
