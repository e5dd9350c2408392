package storecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/storage"
)

// deleteFlags are the flags of furl delete.
type deleteFlags struct {
	cmdline.StoreFlags
	yes, dry, expired, all bool
	older                  string
}

// DeleteCommand returns furl delete.
func DeleteCommand(p cmdline.Program) *cobra.Command {
	f := deleteFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "delete [SESSION]...",
		Short: "Delete sessions permanently",
		Long: `Deletes sessions with their records, search index entries and embeddings, and
overwrites them in the file. This cannot be undone, so furl asks for confirmation.
Only this command, the page and the retention of the configuration delete sessions. None
deletes a session under legal hold (furl hold). The last line, and "report" in JSON, say
what was deleted.`,
		Example: `  furl delete 01jd5 --dry-run
  furl delete 01jd5 --yes
  furl delete --tenant acme --all --dry-run
  furl delete --older-than 90d`,
		ValidArgsFunction: cmdline.CompleteSessions(&f.StoreFlags),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Add(cmd)
	f.AddTenant(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "delete all sessions of the tenant")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "list what would be deleted, change nothing")
	cmd.Flags().BoolVar(&f.expired, "expired", false, "delete the sessions that have expired by the configuration's retention, as furl serve does")
	cmd.Flags().StringVar(&f.older, "older-than", "", "delete every session without a record in the last `age`, such as 90d")
	return cmd
}

// run is furl delete.
func (f *deleteFlags) run(cmd *cobra.Command, args []string) (err error) {
	if len(args) == 0 && f.older == "" && !f.expired && !f.all {
		return cmdline.BadUsage("name a session, or use --older-than, --all or --expired")
	}
	ctx := cmd.Context()
	store, err := f.Existing(ctx)
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	if f.all && (len(args) > 0 || f.older != "") {
		return cmdline.BadUsage("--all takes no sessions and no --older-than")
	}
	if f.expired {
		if len(args) > 0 || f.older != "" || f.all || f.dry || cmd.Flags().Changed("tenant") {
			return cmdline.BadUsage("--expired is for all tenants, and takes no sessions, --older-than, --all or --dry-run")
		}
		return expire(&f.StoreFlags, cmd, store)
	}
	sessions, err := f.Sessions(store)
	if err != nil {
		return err
	}
	var doomed []storage.SessionInfo
	for _, name := range args {
		t, err := f.Stored(ctx, store, name)
		if err != nil {
			return err
		}
		doomed = append(doomed, t.Info())
	}
	var before time.Time
	if f.older != "" {
		age, err := numbers.ParseAge(f.older)
		if err != nil {
			return cmdline.BadUsage("--older-than %s: %w", f.older, err)
		}
		before = time.Now().Add(-age)
	}
	if f.older != "" || f.all {
		whose, err := f.Whose(ctx, store)
		if err != nil {
			return err
		}
		for info, err := range store.Sessions(ctx, whose, storage.SessionQuery{}) {
			if err != nil {
				return err
			}
			if f.all || info.Newest().Before(before) {
				doomed = append(doomed, info)
			}
		}
	}
	if len(doomed) != 1 || len(args) != 1 {
		f.Program.Audited.Found("")
	}
	doomed, held, err := withoutHeld(ctx, store, doomed, len(args))
	if err != nil {
		return err
	}
	if !f.dry && !f.yes && len(doomed) > 0 {
		if err := cmdline.Confirm(cmd, fmt.Sprintf("Delete %s permanently?", describe(doomed))); err != nil {
			return err
		}
	}
	report := deletionReport{}
	for _, info := range doomed {
		report.add(ctx, store, info)
		if f.dry {
			continue
		}
		if err := sessions.For(info.Tenant).Delete(ctx, info.Session); err != nil {
			return err
		}
		if err := f.Program.Audited.Each(info.SessionKey); err != nil {
			return err
		}
	}
	if f.Json {
		return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"deleted": sessionsJSON(doomed), "dry_run": f.dry, "report": report, "held": sessionsJSON(held)})
	}
	verb := "deleted"
	if f.dry {
		verb = "would delete"
	}
	for _, info := range doomed {
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s  %s, %s\n", verb, info.Session, numbers.Count(info.Messages, "message"), cmdline.Truncate(info.Title, 60))
	}
	for _, info := range held {
		fmt.Fprintf(cmd.OutOrStdout(), "kept %s, which is under legal hold\n", info.Session)
	}
	switch {
	case len(doomed) == 0 && f.all:
		fmt.Fprintln(cmd.OutOrStdout(), "No sessions.")
	case len(doomed) == 0:
		fmt.Fprintln(cmd.OutOrStdout(), "No sessions are that old.")
	default:
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", verb, report.words())
	}
	return nil
}

// expire deletes the sessions that the configuration's retention lets expire.
func expire(f *cmdline.StoreFlags, cmd *cobra.Command, store storage.Store) error {
	c, _, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return err
	}
	r := serving.RetentionOf(c)
	if r.Shortest() == 0 && r.Size == 0 {
		return errors.New("no retention in the configuration file: sessions never expire")
	}
	all, err := f.Sessions(store)
	if err != nil {
		return err
	}
	gone, err := all.Retain(cmd.Context(), r)
	report := deletionReport{}
	for _, info := range gone {
		report.add(cmd.Context(), nil, info)
		err = errors.Join(err, f.Program.Audited.Each(info.SessionKey))
	}
	if f.Json {
		return errors.Join(err, cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"deleted": sessionsJSON(gone), "dry_run": false, "report": report}))
	}
	for _, info := range gone {
		fmt.Fprintf(cmd.OutOrStdout(), "deleted %s  %s, %s\n", info.Session, numbers.Count(info.Messages, "message"), cmdline.Truncate(info.Title, 60))
	}
	if len(gone) == 0 && err == nil {
		fmt.Fprintln(cmd.OutOrStdout(), "No sessions have expired.")
	} else if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "deleted %s\n", report.words())
	}
	return err
}

func describe(infos []storage.SessionInfo) string {
	if len(infos) == 1 {
		return fmt.Sprintf("session %s (%s, %q)", infos[0].Session, numbers.Count(infos[0].Messages, "message"), cmdline.Truncate(infos[0].Title, 40))
	}
	return numbers.Count(len(infos), "session")
}

// withoutHeld removes the sessions under legal hold. If one of the first named ones is
// held, it returns the error instead.
func withoutHeld(ctx context.Context, store storage.Store, infos []storage.SessionInfo, named int) (free, held []storage.SessionInfo, err error) {
	holds, err := storage.Holds(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	for i, info := range infos {
		h := storage.HoldOf(holds, info.SessionKey)
		switch {
		case h == nil:
			free = append(free, info)
		case i < named:
			return nil, nil, &storage.HeldError{Session: info.SessionKey, Hold: *h}
		default:
			held = append(held, info)
		}
	}
	return free, held, nil
}

// deletionReport says what was deleted, or would be.
type deletionReport struct {
	Sessions int   `json:"sessions"`
	Records  int   `json:"records"`
	Messages int   `json:"messages"`
	Bytes    int64 `json:"bytes"` // of the messages on the wire
	// Indexed is the number of records that were in the search index, 0 if unknown.
	Indexed int `json:"indexed_records"`
}

// add adds a session that is not deleted yet. Without a store, the index is unknown.
func (r *deletionReport) add(ctx context.Context, store storage.Store, info storage.SessionInfo) {
	r.Sessions++
	r.Records += int(info.Records)
	r.Messages += info.Messages
	r.Bytes += info.Bytes
	if s, ok := store.(storage.Searchable); ok {
		if n, err := s.Indexed(ctx, info.SessionKey); err == nil { // the report is not worth failing for
			r.Indexed += int(n)
		}
	}
}

func (r *deletionReport) words() string {
	text := fmt.Sprintf("in total %s, %s, %s", numbers.Count(r.Sessions, "session"), numbers.Count(r.Records, "record"), numbers.Bytes(r.Bytes))
	if r.Indexed > 0 {
		text += ", " + numbers.Count(r.Indexed, "record") + " in the search index"
	}
	return text
}
