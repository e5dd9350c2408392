package storecmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/sessionjson"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// redactFlags are the flags of furl redact.
type redactFlags struct {
	cmdline.StoreFlags
	patterns []string
	dry, yes bool
}

// RedactCommand returns furl redact.
func RedactCommand(p cmdline.Program) *cobra.Command {
	f := redactFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "redact [SESSION [RECORD.BLOCK]...]",
		Short: "Remove secrets from what was recorded",
		Long: `Replaces secrets in what was recorded by "[redacted]", and overwrites the old bytes. It
finds common credentials, or what --pattern matches, or removes whole blocks. Without a
session, it searches all sessions of all tenants, or those of --tenant. The bodies of
requests of a redacted session can no longer be shown. The session records when and how
much was redacted. This cannot be undone, so furl asks for confirmation. Gateways may go
on running: clients that send the secret again continue their sessions, and it is not
recorded again. An interrupted command can be repeated.

Copies of files that the tools of furl chat have changed are searched too, and removed if
they contain a secret; with whole blocks, all copies of the session are.

Sessions under legal hold (furl hold) are kept as they are: the command lists them.`,
		Example: `  furl redact --dry-run
  furl redact 01jd5 12.0
  furl redact 01jd5 --pattern 'password=\S+' --yes`,
		ValidArgsFunction: cmdline.CompleteSessions(&f.StoreFlags),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Add(cmd)
	cmd.Flags().StringVar(&f.Tenant, "tenant", "", "only sessions of this `tenant` of a gateway (see furl tenants; default all, with SESSION local)")
	cmd.Flags().StringArrayVar(&f.patterns, "pattern", nil, "redact what matches this regular `expression`, not common credentials")
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "show what would be redacted, masked; change nothing")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

// run is furl redact.
func (f *redactFlags) run(cmd *cobra.Command, args []string) (err error) {
	in := &operation.RedactInput{Handles: args[min(1, len(args)):], Patterns: f.patterns}
	in.DryRun = true
	r, err := in.Redaction()
	if err != nil {
		return operationError(cmd, err)
	}
	store, err := f.Existing(cmd.Context())
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	infos, err := redactable(&f.StoreFlags, cmd, store, args)
	if err != nil {
		return err
	}
	infos, held, err := withoutHeld(cmd.Context(), store, infos, min(1, len(args)))
	if err != nil {
		return fmt.Errorf("redact: %w", err)
	}
	done := redacted{Sessions: []jsonRedacted{}, Held: sessionsJSON(held), DryRun: f.dry}
	failed := redactAll(&f.StoreFlags, cmd, store, infos, r, &done)
	if failed != nil && (len(args) > 0 || cmd.Context().Err() != nil) {
		return failed
	}
	if !f.dry {
		if len(done.Sessions) > 0 && !f.yes {
			printRedacted(&f.StoreFlags, cmd, &done, true)
			if err := cmdline.Confirm(cmd, fmt.Sprintf("Redact %s permanently?", numbers.Count(done.texts(), "text"))); err != nil {
				return err
			}
		}
		r.DryRun = false
		failed = redactAll(&f.StoreFlags, cmd, store, infos, r, &done)
		// An earlier redaction may have been interrupted before this.
		if w, ok := store.(storage.Rewriter); ok {
			if err := w.Scrub(cmd.Context()); err != nil {
				return fmt.Errorf("the sessions were redacted; overwrite the old bytes: %w", err)
			}
		}
	}
	if f.Json {
		return errors.Join(failed, cmdline.PrintJSON(cmd.OutOrStdout(), &done))
	}
	printRedacted(&f.StoreFlags, cmd, &done, f.dry)
	return failed
}

// redactable returns the sessions that a command names, all of the store or of the tenant
// if it names none.
func redactable(f *cmdline.StoreFlags, cmd *cobra.Command, store storage.Store, args []string) (infos []storage.SessionInfo, err error) {
	if len(args) > 0 {
		t, err := f.Stored(cmd.Context(), store, args[0])
		if err != nil {
			return nil, err
		}
		return []storage.SessionInfo{t.Info()}, nil
	}
	var chosen []furl.Tenant
	if f.Tenant != "" {
		whose, err := f.Whose(cmd.Context(), store)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, whose)
	} else if chosen, err = tenants.All(cmd.Context(), store); err != nil {
		return nil, err
	}
	for _, tenant := range chosen {
		for info, err := range store.Sessions(cmd.Context(), tenant, storage.SessionQuery{}) {
			if err != nil {
				return nil, err
			}
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// redacted is what a command has redacted, or would.
type redacted struct {
	Sessions []jsonRedacted        `json:"sessions"`
	Held     []sessionjson.Session `json:"held"` // under legal hold, and so not searched
	// Unreadable is the number of sessions whose encryption keys were destroyed.
	Unreadable int  `json:"unreadable"`
	DryRun     bool `json:"dry_run"`
}

// jsonRedacted is what was redacted in a session.
type jsonRedacted struct {
	Tenant  string         `json:"tenant"`
	Session furl.SessionID `json:"session"`
	operation.Redacted
}

// redactAll redacts sessions one after another. A session that cannot be redacted is an
// error, and does not keep the others from being redacted.
func redactAll(f *cmdline.StoreFlags, cmd *cobra.Command, store storage.Store, infos []storage.SessionInfo, r session.Redaction, done *redacted) (failed error) {
	done.Sessions, done.Unreadable = []jsonRedacted{}, 0
	all, err := f.Sessions(store)
	if err != nil {
		return err
	}
	for _, info := range infos {
		key := info.SessionKey
		rep, err := all.For(key.Tenant).Redact(cmd.Context(), key.Session, r)
		if missing, ok := errors.AsType[*encrypted.KeyError](err); ok && !missing.Destroyed.IsZero() {
			done.Unreadable++
			continue
		}
		if err != nil {
			if failed = errors.Join(failed, err); cmd.Context().Err() != nil {
				return failed
			}
		}
		if rep == nil || rep.Found+rep.Copies == 0 {
			continue
		}
		j := jsonRedacted{tenants.Word(key.Tenant), key.Session, operation.RedactedOf(rep)}
		done.Sessions = append(done.Sessions, j)
		if r.DryRun {
			continue
		}
		if err := f.Program.Audited.Each(key); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// texts is the number of replaced texts.
func (r *redacted) texts() (n int) {
	for _, j := range r.Sessions {
		n += j.Texts
	}
	return n
}

func printRedacted(f *cmdline.StoreFlags, cmd *cobra.Command, done *redacted, dry bool) {
	out, verb := cmd.OutOrStdout(), "redacted"
	if dry {
		verb = "would redact"
	}
	for _, j := range done.Sessions {
		fmt.Fprintf(out, "%s %s: %s, %s bytes\n", verb, j.Session, numbers.Count(j.Texts, "text"), numbers.Thousands(j.Bytes))
		if j.Copies > 0 {
			fmt.Fprintf(out, "  copies of files that furl chat has changed: %d; without them, a rewind cannot restore the files\n", j.Copies)
		}
		for i := range j.Samples[:min(len(j.Samples), 20)] {
			fmt.Fprintf(out, "  %s\n", cmdline.Printable(j.Samples[i].Where()))
		}
	}
	if len(done.Sessions) == 0 {
		fmt.Fprintln(out, "No secrets found.")
	}
	for i := range done.Held {
		fmt.Fprintf(out, "kept %s, which is under legal hold\n", done.Held[i].SessionID)
	}
	if done.Unreadable > 0 {
		fmt.Fprintf(out, "not searched: %s whose encryption keys were destroyed\n", numbers.Count(done.Unreadable, "session"))
	}
}
