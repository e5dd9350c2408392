package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/storage"
)

// jsonStats is furl stats --json.
type jsonStats struct {
	Place        string `json:"place"`
	Format       int    `json:"format"`
	Sessions     int64  `json:"sessions"`
	Records      int64  `json:"records"`
	Messages     int64  `json:"messages"`
	MessageBytes int64  `json:"message_bytes"`
	Bodies       int64  `json:"body_bytes"`
	Index        int64  `json:"index_bytes"`
	Vectors      int64  `json:"vector_bytes"`
	Log          int64  `json:"log_bytes"`
	Total        int64  `json:"total_bytes"`
	Unindexed    int    `json:"sessions_to_index"`
}

func statsCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
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
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !savings && (since != "" || cmd.Flags().Changed("tenant")) {
				return badUsage("--since and --tenant require --savings")
			}
			first, err := firstDay(since)
			if err != nil {
				return badUsage("--since %s: %w", since, err)
			}
			store, err := f.existing(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(store, &err)
			if savings {
				return f.savings(cmd, store, tenant, first)
			}
			return f.sizes(cmd, store)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&savings, "savings", false, "show what furl has saved, by day, agent and model")
	cmd.Flags().StringVar(&since, "since", "", "only requests of the last `age`, such as 7d, with --savings")
	cmd.Flags().StringVar(&tenant, "tenant", localName, "savings of this `tenant` of a gateway (see furl tenants)")
	return cmd
}

// sizes prints the size of the store and its parts.
func (f *storeFlags) sizes(cmd *cobra.Command, store storage.Store) error {
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
		for _, err := range index.Unindexed(ctx, localTenant) {
			if err != nil {
				return err
			}
			unindexed++
		}
	}
	out := jsonStats{s.Place, s.Format, s.Sessions, s.Records, s.Messages, s.MessageBytes, s.Bodies, s.Index, s.Vectors, s.Log, s.Total, unindexed}
	w := cmd.OutOrStdout()
	if f.json {
		return printJSON(w, out)
	}
	fmt.Fprintf(w, "%s (format %d)\n\n", label(s.Place), s.Format)
	t := newTable(w, text(""), number(""), number(""))
	row := func(what string, n int64, of string) { t.add(what, numbers.Thousands(int(n)), of) }
	row("sessions", s.Sessions, "")
	row("records", s.Records, "")
	row("messages", s.Messages, bytesSize(s.MessageBytes)+" as sent")
	size := func(what string, n int64) { t.add(what, bytesSize(n), share64(n, s.Total)) }
	size("message bodies", s.Bodies)
	size("search index", s.Index)
	size("embeddings", s.Vectors)
	if s.Log > 0 {
		size("write-ahead log", s.Log)
	}
	size("other", max(0, s.Total-s.Log-s.Bodies-s.Index-s.Vectors))
	size("total", s.Total)
	t.print()
	if s.MessageBytes > 0 {
		fmt.Fprintf(w, "\nThe store is %.2f times the size of the messages in it.\n", float64(s.Total-s.Log)/float64(s.MessageBytes))
	}
	if unindexed > 0 {
		fmt.Fprintf(w, "%s not fully indexed; the next search indexes the rest.\n", numbers.Count(unindexed, "session"))
	}
	if advice := f.sizeAdvice(s.Total); advice != "" {
		printWrapped(w, advice, width(w))
	}
	return nil
}

// largeStore is the size in bytes from which on furl says how to limit a store.
const largeStore = 1_000_000_000

// sizeAdvice says how to limit a large store, "" if it is not large or limited
// already.
func (f *storeFlags) sizeAdvice(size int64) string {
	if size < largeStore {
		return ""
	}
	c, file, err := config.Load(f.config, f.program.policies)
	if err != nil || c.Retention.Size > 0 || c.Retention.Age > 0 {
		return ""
	}
	set := "set retention (age: 90d, or size: 2GB) in " + label(file)
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
	d, err := parseAge(age)
	if err != nil {
		return "", err
	}
	return time.Now().Add(-d).Format(time.DateOnly), nil
}

// savings prints what furl has saved from a day on.
func (f *storeFlags) savings(cmd *cobra.Command, store storage.Store, tenant, first string) error {
	whose, err := tenantNamed(cmd.Context(), store, tenant)
	if err != nil {
		return err
	}
	rep, err := storage.ReportSavings(cmd.Context(), store, whose, first, agents.Name)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if f.json {
		return printJSON(w, rep)
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
	t.print()
	s := rep.Total
	fmt.Fprintln(w)
	printWrapped(w, fmt.Sprintf("%s%s: %s", numbers.Count(s.Requests, "request"), period, savedWords(s.Savings)), width(w))
	if s.OverWindow > 0 {
		printWrapped(w, fmt.Sprintf("Without furl, %s would not have fit the context window; the figures without furl include %s as if the provider had accepted %[2]s.", numbers.Count(s.OverWindow, "request"), oneOrMore(s.OverWindow, "it", "them")), width(w))
	}
	if s.Pings > 0 {
		printWrapped(w, fmt.Sprintf("These figures include %s that kept prompt caches alive: %s tokens, %s.", numbers.Count(s.Pings, "request"), numbers.Thousands(s.PingTokens), money(s.PingCost)), width(w))
	}
	if s.Unpriced > 0 {
		printWrapped(w, fmt.Sprintf("The list price does not include %s without a known price or reported usage.", numbers.Count(s.Unpriced, "request")), width(w))
	}
	printUnknownSavings(w, rep)
}

func savingsTable(w io.Writer, rep *storage.SavingsReport) *table {
	t := newTable(w, text("day"), text("agent"), text("model"), number("requests"), number("tokens\nsent"), number("tokens\nwithout furl"), number("tokens\nsaved"), number("list price\nsaved"))
	for _, l := range rep.Lines {
		t.add(l.Day, truncate(cmp.Or(agents.Name(l.Agent), "unknown"), 16), truncate(undated(l.Model), 24), numbers.Thousands(l.Requests), numbers.Thousands(l.TokensSent()), numbers.Thousands(l.TokensWithout), percentOf(l.TokensSaved, l.TokensWithout), listPrice(l.Savings, l.Saved))
	}
	return t
}

// fitSavings makes the table as narrow as the terminal. Agent and model are whole at 80
// columns.
func fitSavings(t *table) {
	if !t.fits() {
		t.change("model", func(model string) string { return strings.TrimPrefix(model, "claude-") })
	}
	t.shrink("model", 14)
	if !t.fits() {
		t.drop("tokens without furl")
	}
	t.shrink("model", 8)
	t.shrink("agent", 8)
}

func printUnknownSavings(w io.Writer, rep *storage.SavingsReport) {
	if rep.Unknown > 0 {
		printWrapped(w, fmt.Sprintf("Savings are unknown for %s recorded by an older version of furl.", numbers.Count(rep.Unknown, "session")), width(w))
	}
}

// savedWords says in a line what was saved. Subscriptions do not pay list prices, so
// tokens are first.
func savedWords(s storage.Savings) string {
	sent := s.TokensSent()
	text := fmt.Sprintf("%s tokens sent instead of %s%s", numbers.Thousands(sent), numbers.Thousands(s.TokensWithout), numbers.Change(float64(sent), float64(s.TokensWithout)))
	if sent == s.TokensWithout {
		text = numbers.Thousands(sent) + " tokens sent, none saved"
	}
	if cost := s.Spent(); s.CostWithout > 0 && cost == s.CostWithout {
		text += "; list price " + money(cost)
	} else if s.CostWithout > 0 {
		text += fmt.Sprintf("; list price %s instead of %s%s", money(cost), money(s.CostWithout), numbers.Change(cost, s.CostWithout))
	}
	return text
}

// listPrice formats what was saved in dollars, "" if no price is known.
func listPrice(s storage.Savings, saved float64) string {
	switch {
	case s.CostWithout <= 0:
		return ""
	case saved <= -0.005:
		return "-" + money(-saved)
	}
	return money(max(0, saved))
}

// money formats dollars, small amounts with more digits.
func money(d float64) string {
	if d != 0 && d < 0.1 {
		return fmt.Sprintf("$%.3f", d)
	}
	return fmt.Sprintf("$%.2f", d)
}

func percentOf(part, whole int) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole))
}

// oneOrMore returns the word for one thing or for several.
func oneOrMore(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func share64(part, of int64) string {
	if of <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", 100*part/of)
}
