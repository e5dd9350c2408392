package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/sessionjson"
	"github.com/furlhq/furl/storage"
)

func sessionsCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var limit int
	var since, tenant string
	cmd := &cobra.Command{
		Use:     "sessions [WORDS]",
		Aliases: []string{"ls"},
		Short:   "List sessions, newest first",
		Long: `Lists the sessions of the store, by the time of their newest record. Imported
sessions have the times of their recording. With an argument, lists the sessions
whose id starts with it or whose title contains it.`,
		Example: `  furl sessions
  furl sessions "rename the config" --limit 5
  furl sessions --since 7d --json`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := positive(cmd, "limit", limit); err != nil {
				return err
			}
			q := storage.SessionQuery{}
			if since != "" {
				age, err := parseAge(since)
				if err != nil {
					return badUsage("--since %s: %w", since, err)
				}
				q.Since = time.Now().Add(-age)
			}
			store, err := f.existing(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(store, &err)
			whose, err := tenantNamed(cmd.Context(), store, tenant)
			if err != nil {
				return err
			}
			found := []storage.SessionInfo{}
			total := 0
			for info, err := range store.Sessions(cmd.Context(), whose, q) {
				if err != nil {
					return err
				}
				total++
				if len(args) > 0 && !names(info, args[0]) || info.Newest().Before(q.Since) {
					continue
				}
				found = append(found, info)
			}
			slices.SortStableFunc(found, func(a, b storage.SessionInfo) int { return b.Newest().Compare(a.Newest()) })
			if limit > 0 {
				found = found[:min(limit, len(found))]
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"sessions": sessionsJSON(found)})
			}
			if len(found) == 0 && (total > 0 || since != "") {
				fmt.Fprintln(cmd.OutOrStdout(), noSessions(args, since))
				return nil
			}
			printSessions(cmd.OutOrStdout(), found, time.Now())
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most this `number` (default all)")
	cmd.Flags().StringVar(&tenant, "tenant", localName, "list the sessions of this `tenant` of a gateway (see furl tenants)")
	cmd.Flags().StringVar(&since, "since", "", "only sessions with a record in the last `age`, such as 12h or 7d")
	return cmd
}

// noSessions says why a store with sessions lists none.
func noSessions(args []string, since string) string {
	var of []string
	if len(args) > 0 {
		of = append(of, fmt.Sprintf("match %q", printable(args[0])))
	}
	if since != "" {
		of = append(of, "have a record in the last "+since)
	}
	return "No sessions " + strings.Join(of, " and ") + ". furl sessions lists all sessions."
}

func sessionsJSON(infos []storage.SessionInfo) []sessionjson.Session {
	out := make([]sessionjson.Session, len(infos))
	for i, s := range infos {
		out[i] = sessionjson.Of(s)
	}
	return out
}

func printSessions(w io.Writer, infos []storage.SessionInfo, now time.Time) {
	if len(infos) == 0 {
		fmt.Fprintln(w, "No sessions. Run furl import to import the sessions of your agents.")
		return
	}
	t := newTable(w, text("session"), text("title"), text("agent"), text("model"), number("messages"), number("size"), number("updated"))
	for _, s := range infos {
		t.add(string(s.Session), truncate(s.Title, 72), truncate(s.Client, 14), truncate(s.Model, 24),
			thousands(s.Messages), bytesSize(s.Bytes), ago(now, s.Newest()))
	}
	t.shrink("title", 44)
	t.shrink("session", 36)
	for _, name := range []string{"model", "agent", "size", "messages"} {
		if !t.fits() {
			t.drop(name)
		}
	}
	t.shrink("title", 12)
	t.shrink("session", 12) // commands accept the beginning of an id
	t.shrink("title", 4)
	t.print()
}

// ago returns a text such as "5 minutes ago", or a date.
func ago(now, at time.Time) string {
	if at.IsZero() {
		return "unknown"
	}
	switch d := now.Sub(at); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return plural(int(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return plural(int(d/time.Hour), "hour") + " ago"
	case d < 60*24*time.Hour:
		return plural(int(d/(24*time.Hour)), "day") + " ago"
	}
	return at.Local().Format("2006-01-02")
}

// bytesSize formats a number of bytes with a suitable unit.
func bytesSize(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	case n < 10_000_000_000:
		return fmt.Sprintf("%d MB", n/1_000_000)
	}
	return fmt.Sprintf("%d GB", n/1_000_000_000)
}
