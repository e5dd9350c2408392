package replaycmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/storage"
)

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
	cmdline.PrintWrapped(w, fmt.Sprintf("%s%s: %s", numbers.Count(s.Requests, "request"), period, operation.SavedWords(s.Savings)), cmdline.Width(w))
	if over := operation.OverWords(s.Savings); over != "" {
		cmdline.PrintWrapped(w, over, cmdline.Width(w))
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
		t.Add(l.Day, cmdline.Truncate(cmp.Or(agents.Name(l.Agent), "unknown"), 16), cmdline.Truncate(cmdline.Undated(l.Model), 24), numbers.Thousands(l.Requests), numbers.Thousands(l.TokensSent()), numbers.Thousands(l.TokensWithout), cmdline.PercentOf(l.TokensSaved, l.TokensWithout), cmdline.ListPrice(l.Savings, l.Saved))
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
