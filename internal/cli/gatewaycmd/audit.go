package gatewaycmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
)

// AuditCommand returns furl audit.
func AuditCommand(p cmdline.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify and export the audit log",
		Long: `Verifies and exports the audit log of the configuration (audit.file): who has read,
changed, exported or deleted what, and who was refused.`,
		Example: "  furl audit verify\n  furl audit export --since 30d",
		Args:    cmdline.AtMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(verifyAuditCommand(p), exportAuditCommand(p))
	return cmd
}

// auditFile returns the path of the audit log.
func (f *keysFlags) auditFile() (string, error) {
	c, file, err := config.Load(f.config, f.program.Policies)
	if err != nil {
		return "", err
	}
	if c.Audit.File == "" {
		return "", errors.New("no audit log: set audit.file in the configuration, such as audit: {file: audit.jsonl}")
	}
	return config.Beside(file, c.Audit.File), nil
}

func verifyAuditCommand(p cmdline.Program) *cobra.Command {
	f := keysFlags{program: p}
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no line of the audit log was changed or removed",
		Long: `Checks the hash chain of the audit log over all its files, and prints the number of
entries and the hash of the last one. Lines that were removed at the end leave a valid
chain: keep the printed hash elsewhere, and pass it with --head the next time.`,
		Example: "  furl audit verify\n  furl audit verify --head 5f2c…",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := f.auditFile()
			if err != nil {
				return err
			}
			n, last, found := 0, "", head == ""
			for r, err := range audit.All(name) {
				if err != nil {
					return err
				}
				n, last = n+1, r.Hash
				found = found || r.Hash == head
			}
			if !found {
				return fmt.Errorf("audit log is broken: no entry has the hash %s, so entries were removed at the end", cmdline.Printable(head))
			}
			if f.json {
				return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"entries": n, "head": last})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s, no line was changed or removed\nhead %s\n", audit.Entries(n), last)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&head, "head", "", "`hash` that an earlier run has printed, which must still be in the log")
	return cmd
}

func exportAuditCommand(p cmdline.Program) *cobra.Command {
	f := keysFlags{program: p}
	var since string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print entries of the audit log as JSON lines",
		Long: `Checks the audit log and prints its entries as they are stored, with their hashes. The
exit code is 1 if the chain is broken; the entries before that are printed.`,
		Example: "  furl audit export --since 30d > audit.jsonl",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := f.auditFile()
			if err != nil {
				return err
			}
			var from time.Time
			if since != "" {
				if from, err = time.Parse(time.DateOnly, since); err != nil {
					age, err := numbers.ParseAge(since)
					if err != nil {
						return cmdline.BadUsage("invalid --since %s: expected an age such as 30d, or a date such as 2026-11-23", since)
					}
					from = time.Now().Add(-age)
				}
			}
			for r, err := range audit.All(name) {
				if err != nil {
					return err
				}
				if r.Time.Before(from) {
					continue
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", r.Raw); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&since, "since", "", "only entries since this `time`: an age such as 30d, or a date")
	return cmd
}
