package gatewaycmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/serving"
)

// ConfigCommand returns furl config.
func ConfigCommand(p cmdline.Program) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Create, validate and locate the configuration file",
		Long:    "The configuration file is optional: every setting has a default. An unknown key is\nan error with its line.",
		Example: "  furl config init\n  furl config check\n  furl config path",
		Args:    cmdline.AtMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmdline.AddConfig(cmd.PersistentFlags(), &file)
	place := func() (string, error) {
		if file != "" {
			return file, nil
		}
		return config.Path()
	}
	var force bool
	start := &cobra.Command{
		Use:     "init",
		Short:   "Write a configuration file with all defaults",
		Example: "  furl config init\n  furl config init --config furl.yaml",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := place()
			if err != nil {
				return err
			}
			if _, err := os.Stat(name); err == nil && !force {
				return fmt.Errorf("%s exists; overwrite it with --force", name)
			}
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(name, []byte(config.Example), 0o600); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", name)
			return nil
		},
	}
	start.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	check := &cobra.Command{
		Use:     "check",
		Short:   "Validate the configuration file",
		Example: "  furl config check\n  furl config check --config furl.yaml",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, name, err := config.Load(file, p.Policies)
			if err != nil {
				return err
			}
			note, err := serving.Check(c, name)
			if err == nil {
				_, err = modelOperations(c)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if note != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "furl: note: "+note)
			}
			if name == "" {
				name = "no file, using the defaults"
				if at, err := place(); err == nil {
					name = fmt.Sprintf("no file at %s, using the defaults", at)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: valid\n", name)
			return nil
		},
	}
	where := &cobra.Command{
		Use:     "path",
		Short:   "Print the path of the configuration file",
		Example: "  furl config path\n  $EDITOR \"$(furl config path)\"",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := place()
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), name)
			if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintln(cmd.ErrOrStderr(), "furl: note: the file does not exist; furl config init creates it")
			}
			return nil
		},
	}
	cmd.AddCommand(start, check, where)
	return cmd
}
