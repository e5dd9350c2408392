package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

func deleteCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var yes, dry, expired bool
	var older string
	cmd := &cobra.Command{
		Use:   "delete [SESSION]...",
		Short: "Delete sessions permanently",
		Long: `Deletes sessions with their records, search index entries and embeddings, and
overwrites them in the file. This cannot be undone, so furl asks for confirmation.
Only this command and the retention of the configuration delete sessions.`,
		Example: `  furl delete 01jd5 --dry-run
  furl delete 01jd5 --yes
  furl delete --older-than 90d`,
		ValidArgsFunction: completeSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 && older == "" && !expired {
				return badUsage("name a session, or use --older-than or --expired")
			}
			ctx := cmd.Context()
			store, err := f.existing(ctx)
			if err != nil {
				return err
			}
			defer closing(store, &err)
			if expired {
				if len(args) > 0 || older != "" || dry {
					return badUsage("--expired takes no sessions, --older-than or --dry-run")
				}
				return f.expire(cmd, store)
			}
			deleter, ok := store.(storage.Deleter)
			if !ok {
				return errors.New("this store does not support deleting")
			}
			var doomed []storage.SessionInfo
			for _, name := range args {
				t, err := f.stored(ctx, store, name)
				if err != nil {
					return err
				}
				doomed = append(doomed, t.Info())
			}
			if older != "" {
				age, err := parseAge(older)
				if err != nil {
					return badUsage("--older-than %s: %w", older, err)
				}
				before := time.Now().Add(-age)
				for info, err := range store.Sessions(ctx, localTenant, storage.SessionQuery{}) {
					if err != nil {
						return err
					}
					if info.Newest().Before(before) {
						doomed = append(doomed, info)
					}
				}
			}
			if !dry && !yes && len(doomed) > 0 {
				if err := confirm(cmd, fmt.Sprintf("Delete %s permanently?", describe(doomed))); err != nil {
					return err
				}
			}
			for _, info := range doomed {
				if dry {
					break
				}
				if err := deleter.Delete(ctx, info.SessionKey); err != nil {
					return fmt.Errorf("delete session %s: %w", info.Session, err)
				}
				if err := deleteCopies(info.Session); err != nil {
					return fmt.Errorf("delete the copies of files of session %s: %w", info.Session, err)
				}
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"deleted": sessionsJSON(doomed), "dry_run": dry})
			}
			verb := "deleted"
			if dry {
				verb = "would delete"
			}
			for _, info := range doomed {
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s  %s, %s\n", verb, info.Session, numbers.Count(info.Messages, "message"), truncate(info.Title, 60))
			}
			if len(doomed) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "No sessions are that old.")
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list what would be deleted, change nothing")
	cmd.Flags().BoolVar(&expired, "expired", false, "delete the sessions that have expired by the configuration's retention, as furl serve does")
	cmd.Flags().StringVar(&older, "older-than", "", "delete every session without a record in the last `age`, such as 90d")
	return cmd
}

// expire deletes the sessions that the configuration's retention lets expire.
func (f *storeFlags) expire(cmd *cobra.Command, store storage.Store) error {
	c, _, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return err
	}
	if c.Retention == (config.Retention{}) {
		return errors.New("no retention in the configuration file: sessions never expire")
	}
	all, err := f.sessions(store)
	if err != nil {
		return err
	}
	gone, err := all.Retain(cmd.Context(), session.Retention{Age: c.Retention.Age, Size: c.Retention.Size})
	if f.json {
		return errors.Join(err, printJSON(cmd.OutOrStdout(), map[string]any{"deleted": sessionsJSON(gone), "dry_run": false}))
	}
	for _, info := range gone {
		fmt.Fprintf(cmd.OutOrStdout(), "deleted %s  %s, %s\n", info.Session, numbers.Count(info.Messages, "message"), truncate(info.Title, 60))
	}
	if len(gone) == 0 && err == nil {
		fmt.Fprintln(cmd.OutOrStdout(), "No sessions have expired.")
	}
	return err
}

func describe(infos []storage.SessionInfo) string {
	if len(infos) == 1 {
		return fmt.Sprintf("session %s (%s, %q)", infos[0].Session, numbers.Count(infos[0].Messages, "message"), truncate(infos[0].Title, 40))
	}
	return numbers.Count(len(infos), "session")
}

// confirm asks on the terminal. Without a terminal it fails.
func confirm(cmd *cobra.Command, question string) error {
	in := cmd.InOrStdin()
	if file, ok := in.(interface{ Fd() uintptr }); !ok || !term.IsTerminal(int(file.Fd())) {
		return badUsage("not a terminal; use --yes")
	}
	fmt.Fprint(cmd.ErrOrStderr(), question+" [y/N] ")
	answer, err := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
	if err != nil && answer == "" {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was deleted")
	}
	return nil
}
