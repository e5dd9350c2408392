package storecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/storage"
)

// jsonStats is furl stats --json.
type jsonStats struct {
	Place        string `json:"place"`
	Format       int    `json:"format"`
	Sessions     int64  `json:"sessions"`
	Records      int64  `json:"records"`
	Messages     int64  `json:"messages"`
	Copied       int64  `json:"copied_records"`
	MessageBytes int64  `json:"message_bytes"`
	Bodies       int64  `json:"body_bytes"`
	Index        int64  `json:"index_bytes"`
	Vectors      int64  `json:"vector_bytes"`
	Log          int64  `json:"log_bytes"`
	Total        int64  `json:"total_bytes"`
	Unindexed    int    `json:"sessions_to_index"`
}

// StatsCommand returns furl stats.
func StatsCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	var savings bool
	var since, tenant string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show the size of the store, or what furl has saved",
		Long: `Shows the size of the store and its parts. With --savings, shows the tokens and
dollars of the recorded requests by day, agent and model, compared with the same
requests as the client sent them. Dollars are list prices; they do not apply to
subscriptions.`,
		Example: "  furl stats\n  furl stats --savings --since 7d\n  furl stats --json",
		Args:    cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !savings && (since != "" || cmd.Flags().Changed("tenant")) {
				return cmdline.BadUsage("--since and --tenant require --savings")
			}
			first, err := firstDay(since)
			if err != nil {
				return cmdline.BadUsage("--since %s: %w", since, err)
			}
			store, err := f.Existing(cmd.Context())
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			if savings {
				return savingsOf(&f, cmd, store, tenant, first)
			}
			return sizes(&f, cmd, store)
		},
	}
	f.Add(cmd)
	cmd.Flags().BoolVar(&savings, "savings", false, "show what furl has saved, by day, agent and model")
	cmd.Flags().StringVar(&since, "since", "", "only requests of the last `age`, such as 7d, with --savings")
	cmd.Flags().StringVar(&tenant, "tenant", tenants.LocalName, "savings of this `tenant` of a gateway (see furl tenants)")
	return cmd
}

// sizes prints the size of the store and its parts.
func sizes(f *cmdline.StoreFlags, cmd *cobra.Command, store storage.Store) error {
	ctx := cmd.Context()
	checker, ok := store.(storage.Checker)
	if !ok {
		return errors.New("this store does not report its size")
	}
	s, err := checker.Stats(ctx)
	if err != nil {
		return err
	}
	unindexed := 0
	if index, ok := store.(storage.Searchable); ok {
		for _, err := range index.Unindexed(ctx, tenants.Local) {
			if err != nil {
				return err
			}
			unindexed++
		}
	}
	copied, err := copiedRecords(ctx, store)
	if err != nil {
		return err
	}
	out := jsonStats{s.Place, s.Format, s.Sessions, s.Records, s.Messages, copied, s.MessageBytes, s.Bodies, s.Index, s.Vectors, s.Log, s.Total, unindexed}
	w := cmd.OutOrStdout()
	if f.Json {
		return cmdline.PrintJSON(w, out)
	}
	fmt.Fprintf(w, "%s (format %d)\n\n", cmdline.Label(s.Place), s.Format)
	t := cmdline.NewTable(w, cmdline.Text(""), cmdline.Number(""), cmdline.Number(""))
	row := func(what string, n int64, of string) { t.Add(what, numbers.Thousands(int(n)), of) }
	row("sessions", s.Sessions, "")
	row("records", s.Records, "")
	row("messages", s.Messages, numbers.Bytes(s.MessageBytes)+" as sent")
	if copied > 0 {
		row("copied records", copied, "of other sessions, in forks")
	}
	size := func(what string, n int64) { t.Add(what, numbers.Bytes(n), share64(n, s.Total)) }
	size("message bodies", s.Bodies)
	size("search index", s.Index)
	size("embeddings", s.Vectors)
	if s.Log > 0 {
		size("write-ahead log", s.Log)
	}
	size("other", max(0, s.Total-s.Log-s.Bodies-s.Index-s.Vectors))
	size("total", s.Total)
	t.Print()
	if s.MessageBytes > 0 {
		fmt.Fprintf(w, "\nThe store is %.2f times the size of the messages in it.\n", float64(s.Total-s.Log)/float64(s.MessageBytes))
	}
	if unindexed > 0 {
		fmt.Fprintf(w, "%s not fully indexed; the next search indexes the rest.\n", numbers.Count(unindexed, "session"))
	}
	if advice := sizeAdvice(f, s.Total); advice != "" {
		cmdline.PrintWrapped(w, advice, cmdline.Width(w))
	}
	return nil
}

// copiedRecords returns how many records forks have of sessions in the store.
func copiedRecords(ctx context.Context, store storage.Store) (n int64, err error) {
	all := []furl.Tenant{tenants.Local}
	if lister, ok := store.(storage.TenantLister); ok {
		if all, err = lister.Tenants(ctx); err != nil {
			return 0, err
		}
	}
	for _, tenant := range all {
		known := make(map[furl.SessionID]bool)
		var forks []storage.Meta
		for info, err := range store.Sessions(ctx, tenant, storage.SessionQuery{}) {
			if err != nil {
				return 0, err
			}
			if known[info.Session] = true; info.ForkAt > 0 {
				forks = append(forks, info.Meta)
			}
		}
		for _, f := range forks {
			if known[f.ForkOf] {
				n += int64(f.ForkAt)
			}
		}
	}
	return n, nil
}

// largeStore is the size in bytes from which on furl says how to limit a store.
const largeStore = 1_000_000_000

// sizeAdvice says how to limit a large store, "" if it is not large or limited
// already.
func sizeAdvice(f *cmdline.StoreFlags, size int64) string {
	if size < largeStore {
		return ""
	}
	c, file, err := config.Load(f.Config, f.Program.Policies)
	if err != nil || c.Retention.Size > 0 || c.Retention.Age > 0 {
		return ""
	}
	set := "set retention (age: 90d, or size: 2GB) in " + cmdline.Label(file)
	if file == "" {
		set = "run furl config init and set retention (age: 90d, or size: 2GB) in the file"
	}
	return fmt.Sprintf("The store takes up %.1f GB. To delete old sessions now: furl delete --older-than 90d. To keep it small: %s.", float64(size)/1e9, set)
}

// firstDay returns the first day of the last age, "" for no age.
func firstDay(age string) (string, error) {
	if age == "" {
		return "", nil
	}
	d, err := numbers.ParseAge(age)
	if err != nil {
		return "", err
	}
	return time.Now().Add(-d).Format(time.DateOnly), nil
}

// savingsOf prints what furl has saved from a day on.
func savingsOf(f *cmdline.StoreFlags, cmd *cobra.Command, store storage.Store, tenant, first string) error {
	whose, err := tenants.Named(cmd.Context(), store, tenant)
	if err != nil {
		return err
	}
	rep, err := storage.ReportSavings(cmd.Context(), store, whose, first, agents.Name)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if f.Json {
		return cmdline.PrintJSON(w, rep)
	}
	printSavings(w, rep)
	return nil
}

func printSavings(w io.Writer, rep *storage.SavingsReport) {
	period := ""
	if rep.Since != "" {
		period = " since " + rep.Since
	}
	if len(rep.Lines) == 0 {
		fmt.Fprintf(w, "No requests were recorded%s. Start an agent with furl run -- AGENT.\n", period)
		printUnknownSavings(w, rep)
		return
	}
	t := savingsTable(w, rep)
	fitSavings(t)
	t.Print()
	s := rep.Total
	fmt.Fprintln(w)
	cmdline.PrintWrapped(w, fmt.Sprintf("%s%s: %s", numbers.Count(s.Requests, "request"), period, cmdline.SavedWords(s.Savings)), cmdline.Width(w))
	if s.OverWindow > 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("Without furl, %s would not have fit the context window; the figures without furl include %s as if the provider had accepted %[2]s.", numbers.Count(s.OverWindow, "request"), numbers.OneOrMore(s.OverWindow, "it", "them")), cmdline.Width(w))
	}
	if s.Pings > 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("These figures include %s that kept prompt caches alive: %s tokens, %s.", numbers.Count(s.Pings, "request"), numbers.Thousands(s.PingTokens), numbers.Money(s.PingCost)), cmdline.Width(w))
	}
	if s.Unpriced > 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("The list price does not include %s without a known price or reported usage.", numbers.Count(s.Unpriced, "request")), cmdline.Width(w))
	}
	printUnknownSavings(w, rep)
}

func savingsTable(w io.Writer, rep *storage.SavingsReport) *cmdline.Table {
	t := cmdline.NewTable(w, cmdline.Text("day"), cmdline.Text("agent"), cmdline.Text("model"), cmdline.Number("requests"), cmdline.Number("tokens\nsent"), cmdline.Number("tokens\nwithout furl"), cmdline.Number("tokens\nsaved"), cmdline.Number("list price\nsaved"))
	for _, l := range rep.Lines {
		t.Add(l.Day, cmdline.Truncate(cmp.Or(agents.Name(l.Agent), "unknown"), 16), cmdline.Truncate(cmdline.Undated(l.Model), 24), numbers.Thousands(l.Requests), numbers.Thousands(l.TokensSent()), numbers.Thousands(l.TokensWithout), percentOf(l.TokensSaved, l.TokensWithout), cmdline.ListPrice(l.Savings, l.Saved))
	}
	return t
}

// fitSavings makes the table as narrow as the terminal. Agent and model are whole at 80
// columns.
func fitSavings(t *cmdline.Table) {
	if !t.Fits() {
		t.Change("model", func(model string) string { return strings.TrimPrefix(model, "claude-") })
	}
	t.Shrink("model", 14)
	if !t.Fits() {
		t.Drop("tokens without furl")
	}
	t.Shrink("model", 8)
	t.Shrink("agent", 8)
}

func printUnknownSavings(w io.Writer, rep *storage.SavingsReport) {
	if rep.Unknown > 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("Savings are unknown for %s recorded by an older version of furl.", numbers.Count(rep.Unknown, "session")), cmdline.Width(w))
	}
}

func percentOf(part, whole int) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole))
}

func share64(part, of int64) string {
	if of <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", 100*part/of)
}
