// Package storecmd has the commands on the sessions of a store: reading, changing, moving,
// keeping and deleting them, and checking the store.
package storecmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/sessionjson"
	"github.com/furlhq/furl/internal/sessionlist"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/storage"
)

// SessionsCommand returns furl sessions.
func SessionsCommand(p cmdline.Program) *cobra.Command {
	f := sessionsFlags{StoreFlags: cmdline.NewStoreFlags(p)}
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
started them; --all lists them below it. A fork is listed below its original, which
is where the newest of both would be.`,
		Example: `  furl sessions
  furl sessions --project .
  furl sessions "rename the config" --limit 5
  furl sessions --since 7d --json`,
		Args: cmdline.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.words = args[0]
			}
			return f.run(cmd)
		},
	}
	f.Add(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.limit, "limit", 0, "list at most this `number` (default all)")
	f.AddTenant(cmd)
	fl.StringVar(&f.since, "since", "", "only sessions with a record in the last `age`, such as 12h or 7d")
	fl.StringVar(&f.project, "project", "", "only sessions of agents that worked in this `folder`, or in one of that name")
	fl.BoolVar(&f.all, "all", false, "list sub-agents too, below the session that started them")
	return cmd
}

// sessionsFlags are the flags of furl sessions.
type sessionsFlags struct {
	cmdline.StoreFlags
	words, since, project string
	limit                 int
	all                   bool
}

func (f *sessionsFlags) run(cmd *cobra.Command) (err error) {
	if err := cmdline.Positive(cmd, "limit", f.limit); err != nil {
		return err
	}
	var after time.Time
	if f.since != "" {
		age, err := numbers.ParseAge(f.since)
		if err != nil {
			return cmdline.BadUsage("--since %s: %w", f.since, err)
		}
		after = time.Now().Add(-age)
	}
	inProject, err := recorded.ProjectFilter(f.project)
	if err != nil {
		return err
	}
	store, err := f.Existing(cmd.Context())
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	whose, err := f.Whose(cmd.Context(), store)
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
		return f.words != "" && !workspace.NameMatches(info, f.words) || info.Newest().Before(after) || !inProject(info.Project)
	})
	if f.Json {
		if f.limit > 0 {
			found = found[:min(f.limit, len(found))]
		}
		return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"sessions": sessionsJSON(found)})
	}
	if len(found) == 0 && (len(all) > 0 || f.since != "") {
		fmt.Fprintln(cmd.OutOrStdout(), f.noSessions())
		return nil
	}
	printSessions(cmd.OutOrStdout(), sessionlist.NewList(all, found, f.all, f.limit), time.Now())
	return nil
}

// noSessions says why a store with sessions lists none.
func (f *sessionsFlags) noSessions() string {
	var of []string
	if f.words != "" {
		of = append(of, fmt.Sprintf("match %q", cmdline.Printable(f.words)))
	}
	if f.project != "" {
		of = append(of, fmt.Sprintf("worked in %q", cmdline.Printable(f.project)))
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

func printSessions(w io.Writer, l *sessionlist.List, now time.Time) {
	if len(l.Rows) == 0 {
		fmt.Fprintln(w, "No sessions. Run furl import to import the sessions of your agents.")
		return
	}
	t := sessionsTable(w, l, now)
	fitSessions(t)
	t.Print()
	if l.Hidden > 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("%s; %s not listed (--all lists them)", numbers.Count(len(l.Rows), "session"), isAre(l.Hidden, "sub-agent")), cmdline.Width(w))
	}
}

func sessionsTable(w io.Writer, l *sessionlist.List, now time.Time) *cmdline.Table {
	t := cmdline.NewTable(w, cmdline.Text("session"), cmdline.Text("title"), cmdline.Text("project"), cmdline.Text("agent"), cmdline.Text("model"), cmdline.Number("messages"), cmdline.Number("sub-agents"), cmdline.Number("size"), cmdline.Number("updated"))
	for _, r := range l.Rows {
		s, title, started := r.Info, cmp.Or(r.Info.Title, "(no text)"), ""
		if r.Fork {
			title = "fork: " + title
		}
		if r.Depth > 0 {
			title = strings.Repeat("  ", min(r.Depth, 8)-1) + "└ " + title
		}
		if r.SubAgents > 0 {
			started = numbers.Thousands(r.SubAgents)
		}
		t.Add(l.Short[s.Session], cmdline.Truncate(title, 72), cmdline.Truncate(l.Projects[s.Project], 28), cmdline.Truncate(agents.Name(s.Client), 14), cmdline.Truncate(cmdline.Undated(s.Model), 24),
			numbers.Thousands(s.Messages), started, numbers.Bytes(s.Bytes), numbers.ShortAgo(now, s.Newest()))
	}
	t.DropEmpty("project", "sub-agents")
	return t
}

// fitSessions makes the table as narrow as the terminal. Agent, model, messages and
// time are kept at 80 columns.
func fitSessions(t *cmdline.Table) {
	t.Shrink("title", 44)
	for _, name := range []string{"size", "sub-agents", "project"} {
		t.Shrink("title", 30)
		if !t.Fits() {
			t.Drop(name)
		}
	}
	if !t.Fits() {
		t.Change("model", func(model string) string { return strings.TrimPrefix(model, "claude-") })
	}
	t.Shrink("title", 24)
	t.Shrink("model", 13)
	t.Shrink("title", 16)
	for _, name := range []string{"model", "agent", "messages"} {
		if !t.Fits() {
			t.Drop(name)
		}
	}
	t.Shrink("title", 12)
	t.Shrink("session", 8)
	t.Shrink("title", 4)
}

// isAre returns a text such as "2 sub-agents are".
func isAre(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return numbers.Count(n, noun) + " are"
}
