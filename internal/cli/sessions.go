package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/sessionjson"
	"github.com/furlhq/furl/storage"
)

func sessionsCommand(p program) *cobra.Command {
	f := sessionsFlags{storeFlags: storeFlags{program: p}}
	cmd := &cobra.Command{
		Use:     "sessions [WORDS]",
		Aliases: []string{"ls"},
		Short:   "List sessions, newest first",
		Long: `Lists the sessions of the store, by the time of their newest record. Imported
sessions have the times of their recording. With an argument, lists the sessions
whose id starts with it or whose title contains it. The id can be the agent's own,
as in claude --resume ID.

Ids are shortened to what identifies a session; every command accepts them. Messages
include those of other branches. Sub-agents are counted with the session that
started them; --all lists them below it.`,
		Example: `  furl sessions
  furl sessions --project .
  furl sessions "rename the config" --limit 5
  furl sessions --since 7d --json`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.words = args[0]
			}
			return f.run(cmd)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.limit, "limit", 0, "list at most this `number` (default all)")
	f.addTenant(cmd)
	fl.StringVar(&f.since, "since", "", "only sessions with a record in the last `age`, such as 12h or 7d")
	fl.StringVar(&f.project, "project", "", "only sessions of agents that worked in this `folder`, or in one of that name")
	fl.BoolVar(&f.all, "all", false, "list sub-agents too, below the session that started them")
	return cmd
}

// sessionsFlags are the flags of furl sessions.
type sessionsFlags struct {
	storeFlags
	words, since, project string
	limit                 int
	all                   bool
}

func (f *sessionsFlags) run(cmd *cobra.Command) (err error) {
	if err := positive(cmd, "limit", f.limit); err != nil {
		return err
	}
	var after time.Time
	if f.since != "" {
		age, err := parseAge(f.since)
		if err != nil {
			return badUsage("--since %s: %w", f.since, err)
		}
		after = time.Now().Add(-age)
	}
	inProject, err := projectFilter(f.project)
	if err != nil {
		return err
	}
	store, err := f.existing(cmd.Context())
	if err != nil {
		return err
	}
	defer closing(store, &err)
	whose, err := f.whose(cmd.Context(), store)
	if err != nil {
		return err
	}
	var all []storage.SessionInfo
	for info, err := range store.Sessions(cmd.Context(), whose, storage.SessionQuery{}) {
		if err != nil {
			return err
		}
		all = append(all, info)
	}
	slices.SortStableFunc(all, func(a, b storage.SessionInfo) int { return b.Newest().Compare(a.Newest()) })
	found := slices.DeleteFunc(slices.Clone(all), func(info storage.SessionInfo) bool {
		return f.words != "" && !names(info, f.words) || info.Newest().Before(after) || !inProject(info.Project)
	})
	if f.json {
		if f.limit > 0 {
			found = found[:min(f.limit, len(found))]
		}
		return printJSON(cmd.OutOrStdout(), map[string]any{"sessions": sessionsJSON(found)})
	}
	if len(found) == 0 && (len(all) > 0 || f.since != "") {
		fmt.Fprintln(cmd.OutOrStdout(), f.noSessions())
		return nil
	}
	printSessions(cmd.OutOrStdout(), newSessionList(all, found, f.all, f.limit), time.Now())
	return nil
}

// noSessions says why a store with sessions lists none.
func (f *sessionsFlags) noSessions() string {
	var of []string
	if f.words != "" {
		of = append(of, fmt.Sprintf("match %q", printable(f.words)))
	}
	if f.project != "" {
		of = append(of, fmt.Sprintf("worked in %q", printable(f.project)))
	}
	if f.since != "" {
		of = append(of, "have a record in the last "+f.since)
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

func printSessions(w io.Writer, l *sessionList, now time.Time) {
	if len(l.rows) == 0 {
		fmt.Fprintln(w, "No sessions. Run furl import to import the sessions of your agents.")
		return
	}
	t := sessionsTable(w, l, now)
	fitSessions(t)
	t.print()
	if l.hidden > 0 {
		printWrapped(w, fmt.Sprintf("%s; %s not listed (--all lists them)", numbers.Count(len(l.rows), "session"), isAre(l.hidden, "sub-agent")), width(w))
	}
}

func sessionsTable(w io.Writer, l *sessionList, now time.Time) *table {
	t := newTable(w, text("session"), text("title"), text("project"), text("agent"), text("model"), number("messages"), number("sub-agents"), number("size"), number("updated"))
	for _, r := range l.rows {
		s, title, started := r.info, cmp.Or(r.info.Title, "(no text)"), ""
		if r.nested {
			title = "└ " + title
		}
		if r.subAgents > 0 {
			started = numbers.Thousands(r.subAgents)
		}
		t.add(l.short[s.Session], truncate(title, 72), truncate(l.projects[s.Project], 28), truncate(agents.Name(s.Client), 14), truncate(undated(s.Model), 24),
			numbers.Thousands(s.Messages), started, bytesSize(s.Bytes), shortAgo(now, s.Newest()))
	}
	t.dropEmpty("project", "sub-agents")
	return t
}

// fitSessions makes the table as narrow as the terminal. Agent, model, messages and
// time are kept at 80 columns.
func fitSessions(t *table) {
	t.shrink("title", 44)
	for _, name := range []string{"size", "sub-agents", "project"} {
		t.shrink("title", 30)
		if !t.fits() {
			t.drop(name)
		}
	}
	if !t.fits() {
		t.change("model", func(model string) string { return strings.TrimPrefix(model, "claude-") })
	}
	t.shrink("title", 24)
	t.shrink("model", 13)
	t.shrink("title", 16)
	for _, name := range []string{"model", "agent", "messages"} {
		if !t.fits() {
			t.drop(name)
		}
	}
	t.shrink("title", 12)
	t.shrink("session", 8)
	t.shrink("title", 4)
}

// isAre returns a text such as "2 sub-agents are".
func isAre(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return numbers.Count(n, noun) + " are"
}

// undated returns the name of a model without the date at its end.
func undated(model string) string {
	if n := len(model) - len("-20060102"); n > 0 && model[n] == '-' && strings.Trim(model[n+1:], "0123456789") == "" {
		return model[:n]
	}
	return model
}

// shortAgo is ago in fewer columns.
func shortAgo(now, at time.Time) string {
	switch d := now.Sub(at); {
	case at.IsZero() || d < time.Minute:
		return ago(now, at)
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	}
	return ago(now, at)
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
		return numbers.Count(int(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return numbers.Count(int(d/time.Hour), "hour") + " ago"
	case d < 60*24*time.Hour:
		return numbers.Count(int(d/(24*time.Hour)), "day") + " ago"
	}
	return at.Local().Format("2006-01-02")
}

// bytesSize formats a number of bytes with a suitable unit.
func bytesSize(n int64) string {
	x := float64(n)
	for _, unit := range []string{"B", "kB", "MB"} {
		switch {
		case x < 9.95 && unit != "B":
			return fmt.Sprintf("%.1f %s", x, unit)
		case x < 999.5:
			return fmt.Sprintf("%.0f %s", x, unit)
		}
		x /= 1000
	}
	return fmt.Sprintf("%.1f GB", x)
}
