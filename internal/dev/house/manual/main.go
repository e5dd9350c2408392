// Command manual writes furl's manual pages and completion scripts into a folder:
// man/furl.1, man/furl-serve.1, … and completions/furl.bash, furl.fish, _furl. The
// month in the pages is that of the environment variable SOURCE_DATE_EPOCH.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/furlhq/furl/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manual FOLDER")
		os.Exit(2)
	}
	if err := write(cli.Command(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func write(furl *cobra.Command, dir string) error {
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, dir := range []string{man, completions} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	furl.DisableAutoGenTag = true
	if err := doc.GenManTree(furl, &doc.GenManHeader{Section: "1", Source: "furl", Manual: "furl"}, man); err != nil {
		return fmt.Errorf("write the manual pages: %w", err)
	}
	if err := furl.GenBashCompletionFileV2(filepath.Join(completions, "furl.bash"), true); err != nil {
		return fmt.Errorf("write the completion script for bash: %w", err)
	}
	if err := furl.GenZshCompletionFile(filepath.Join(completions, "_furl")); err != nil {
		return fmt.Errorf("write the completion script for zsh: %w", err)
	}
	if err := furl.GenFishCompletionFile(filepath.Join(completions, "furl.fish"), true); err != nil {
		return fmt.Errorf("write the completion script for fish: %w", err)
	}
	return nil
}
