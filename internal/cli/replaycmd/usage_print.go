package replaycmd

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/tally"
)

// noRequests is said where nothing was counted.
const noRequests = "No requests found. Name FILES or FOLDERS, run an agent with furl run, or choose other days and projects; furl usage --help lists the options."

// print writes the report as the flags ask for. src is nil if only the store was read.
func (f *usageFlags) print(w io.Writer, rep *tally.Report, zone *time.Location, src *recorded.Source) error {
	switch {
	case f.Json:
		return cmdline.PrintJSON(w, rep)
	case f.csv:
		return printUsageCSV(w, rep)
	}
	switch {
	case rep.Total == (tally.Sum{}):
		fmt.Fprintln(w, noRequests)
	default:
		if rep.Total.Requests > 0 {
			usageTable(w, rep, zone).Print()
			fmt.Fprintln(w)
		}
		printTotal(w, rep)
	}
	if rep.Undated > 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("Left out %s without a time, because of --since or --until.", numbers.Count(rep.Undated, "request")), cmdline.Width(w))
	}
	if src != nil && len(src.Unknown) > 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("Skipped %s in unknown formats.", numbers.Count(len(src.Unknown), "file")), cmdline.Width(w))
	}
	return nil
}

// Widths of columns, in cells.
const (
	usageBar     = 16
	usageModel   = 32
	usageProject = 36
	usageTitle   = 36
	shortID      = 8
)

// printTotal prints the sum, and what is not in it.
func printTotal(w io.Writer, rep *tally.Report) {
	cmdline.PrintWrapped(w, usageWords(&rep.Total), cmdline.Width(w))
	if s := &rep.Total; s.Unpriced > 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("The list price does not include %s to models without a known price.", numbers.Count(s.Unpriced, "request")), cmdline.Width(w))
	}
	if n := rep.Total.Unrecorded; n > 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("%s without a recorded usage %s not counted.", numbers.Count(n, "request"), numbers.OneOrMore(n, "is", "are")), cmdline.Width(w))
	}
	if len(rep.NotPriced) > 0 {
		cmdline.PrintWrapped(w, "Not priced: "+strings.Join(rep.NotPriced, ", ")+".", cmdline.Width(w))
	}
}

// usageWords say in a line what was spent.
func usageWords(s *tally.Sum) string {
	text := fmt.Sprintf("%s: %s tokens in (%s from the cache), %s out", numbers.Count(s.Requests, "request"), numbers.Thousands(s.Tokens.Prompt()), cmp.Or(cmdline.PercentOf(s.Tokens.CacheRead, s.Tokens.Prompt()), "0%"), numbers.Thousands(s.Tokens.Output))
	if s.Priced() {
		text += "; list price " + numbers.Money(s.Cost)
	}
	if s.CostSubagents > 0 {
		text += ", of that " + numbers.Money(s.CostSubagents) + " by sub-agents"
	}
	return text + "."
}

func usageTable(w io.Writer, rep *tally.Report, zone *time.Location) *cmdline.Table {
	var columns []cmdline.Column
	asTree := slices.Equal(rep.By, []tally.By{tally.Session})
	for _, by := range rep.By {
		columns = append(columns, cmdline.Text(string(by)))
	}
	sessions := slices.Contains(rep.By, tally.Session)
	if sessions {
		columns = append(columns, cmdline.Text("last"), cmdline.Text("title"))
	}
	columns = append(columns, cmdline.Number("requests"), cmdline.Number("tokens\nin"), cmdline.Number("tokens\nout"), cmdline.Number("list\nprice"))
	if asTree {
		columns = append(columns, cmdline.Number("with\nsub-agents"))
	}
	columns = append(columns, cmdline.Text(""))
	listModels := !slices.Contains(rep.By, tally.Model)
	if listModels {
		columns = append(columns, cmdline.Text("models"))
	}
	t := cmdline.NewTable(w, columns...)
	most := 0.0
	for i := range rep.Groups {
		most = max(most, rep.Groups[i].Cost)
	}
	for i := range rep.Groups {
		g := &rep.Groups[i]
		if g.Requests == 0 {
			continue
		}
		var row []string
		for _, by := range rep.By {
			row = append(row, usageCell(g, by))
		}
		if sessions {
			last := ""
			if !g.Last.IsZero() {
				last = g.Last.In(zone).Format(time.DateOnly)
			}
			row = append(row, last, cmdline.Truncate(cmdline.Label(g.Title), usageTitle))
		}
		row = append(row, numbers.Thousands(g.Requests), numbers.Thousands(g.Tokens.Prompt()), numbers.Thousands(g.Tokens.Output), usagePrice(g.Priced(), g.Cost))
		if asTree {
			with := ""
			if g.CostTree > g.Cost {
				with = numbers.Money(g.CostTree)
			}
			row = append(row, with)
		}
		row = append(row, usageBarOf(g.Cost, most))
		if listModels {
			row = append(row, strings.Join(shortModels(g.Models), ", "))
		}
		t.Add(row...)
	}
	t.DropEmpty("title", "with sub-agents", "models", "")
	fitUsage(t)
	return t
}

// usageCell is the name of a group for a person.
func usageCell(g *tally.Group, by tally.By) string {
	name := g.Name(by)
	switch by {
	case tally.Model:
		name = cmdline.Truncate(cmdline.Undated(name), usageModel)
	case tally.Project:
		if long := []rune(cmdline.Label(name)); len(long) > usageProject { // its end tells it from others
			name = "…" + string(long[len(long)-usageProject+1:])
		}
	case tally.Session:
		name = strings.Repeat("  ", min(g.Depth, 8)) + cmdline.Truncate(name, max(shortID, len("agent-")+shortID))
	}
	return cmp.Or(name, "unknown")
}

func usagePrice(known bool, cost float64) string {
	if !known {
		return ""
	}
	return numbers.Money(cost)
}

// usageBarOf draws a cost as a part of the largest one.
func usageBarOf(cost, most float64) string {
	if most <= 0 || cost <= 0 {
		return ""
	}
	const eighths = "▏▎▍▌▋▊▉█"
	n := max(1, int(cost/most*usageBar*8+0.5))
	bar := strings.Repeat("█", n/8)
	if rest := n % 8; rest > 0 {
		bar += string([]rune(eighths)[rest-1])
	}
	return bar
}

// shortModels are the names of models without dates and their family's first word.
func shortModels(names []string) (out []string) {
	for _, name := range names {
		name = strings.TrimPrefix(cmdline.Undated(name), "claude-")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// fitUsage makes the table as narrow as the terminal.
func fitUsage(t *cmdline.Table) {
	t.Shrink("models", 12)
	t.Shrink("title", 12)
	if !t.Fits() {
		t.Drop("models")
	}
	if !t.Fits() {
		t.Drop("")
	}
	if !t.Fits() {
		t.Drop("tokens out")
	}
	if !t.Fits() {
		t.Drop("last")
	}
	for _, name := range []string{"project", "model", "title"} {
		t.Shrink(name, 8)
	}
}

// printUsageCSV prints a row for each group, with the names of its columns first.
func printUsageCSV(w io.Writer, rep *tally.Report) error {
	out := csv.NewWriter(w)
	var head []string
	for _, by := range rep.By {
		head = append(head, string(by))
	}
	sessions := slices.Contains(rep.By, tally.Session)
	if sessions {
		head = append(head, "parent", "title", "first", "last")
	}
	head = append(head, "cost", "cost_subagents", "requests", "input", "cache_read", "cache_write", "cache_write_1h", "output", "reasoning", "unpriced", "unrecorded", "models")
	if err := out.Write(head); err != nil {
		return err
	}
	for i := range rep.Groups {
		g := &rep.Groups[i]
		var row []string
		for _, by := range rep.By {
			row = append(row, plainCell(g.Name(by)))
		}
		if sessions {
			row = append(row, plainCell(g.Parent), plainCell(g.Title), csvTime(g.First), csvTime(g.Last))
		}
		row = append(row, strconv.FormatFloat(g.Cost, 'f', -1, 64), strconv.FormatFloat(g.CostSubagents, 'f', -1, 64))
		for _, n := range []int{g.Requests, g.Tokens.Input, g.Tokens.CacheRead, g.Tokens.CacheWrite, g.Tokens.CacheWrite1h, g.Tokens.Output, g.Tokens.Reasoning, g.Unpriced, g.Unrecorded} {
			row = append(row, strconv.Itoa(n))
		}
		if err := out.Write(append(row, plainCell(strings.Join(g.Models, " ")))); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// plainCell makes a text one line that spreadsheets do not take for a formula.
func plainCell(text string) string {
	text = cmdline.Label(text)
	if text != "" && strings.ContainsRune("=+-@", rune(text[0])) {
		return "'" + text
	}
	return text
}

func csvTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
