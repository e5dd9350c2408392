package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl/replay"
)

// printReport prints what a person wants to know first: the table over all
// recordings, what its columns mean, and which policy to take.
func printReport(w io.Writer, rep *replay.Report, f *replayFlags) {
	color := styled(w)
	requests := 0
	for i := range rep.Recordings {
		requests += rep.Recordings[i].Requests
	}
	fmt.Fprintf(w, "%s replayed: %s, %s\n", plural(len(rep.Recordings), "recording"), plural(requests, "request"), models(rep))
	for _, n := range rep.Notes {
		fmt.Fprintln(w, printable(n))
	}
	if f.each {
		for i := range rep.Recordings {
			r := &rep.Recordings[i]
			fmt.Fprintf(w, "\n%s  %s\n", style(color, bold, printable(filepath.Base(r.File))), style(color, faint, printable(fmt.Sprintf("%s, %s, %s, %s", r.Agent, r.Model, plural(r.Messages, "message"), plural(r.Requests, "request")))))
			printResults(w, r.Results, color)
		}
		if len(rep.Recordings) > 1 {
			fmt.Fprintf(w, "\n%s\n", style(color, bold, "All recordings"))
		}
	} else {
		fmt.Fprintln(w)
	}
	printResults(w, rep.Totals, color)
	printLegend(w, rep, color)
	printSkipped(w, rep)
	printAdvice(w, rep, f)
}

func printResults(w io.Writer, results []replay.Result, color bool) {
	several := false
	for i := range results {
		several = several || results[i].Window != results[0].Window
	}
	t := table{head: []string{"policy", "cost", "of none", "names kept", "lines kept", "re-fetched", "cache breaks", "overflows"}}
	if several {
		t.head = append([]string{"window"}, t.head...)
	}
	for i := range results {
		r := &results[i]
		row := []string{
			r.Policy, dollars(r.Cost), ratio(r.CostRatio),
			share(r.ReferencesKept, r.References), share(r.QuotedLinesKept, r.QuotedLines),
			fmt.Sprint(r.Refetches), fmt.Sprint(r.CacheBreaks), overflow(r),
		}
		if several {
			row = append([]string{window(r.Window)}, row...)
		}
		t.rows = append(t.rows, row)
	}
	t.print(w, color)
}

func printLegend(w io.Writer, rep *replay.Report, color bool) {
	lines := []string{
		"cost: the whole bill, output and the policy's own calls included. of none: input cost against sending everything.",
		"names kept: names the agent used again that it could still see. lines kept: the same for whole lines it quoted, as edits do.",
		"re-fetched: calls repeated after their result was hidden. cache breaks: requests that had to rewrite the prompt cache.",
	}
	for i := range rep.Totals {
		if rep.Totals[i].Impossible > 0 {
			lines = append(lines, "overflows: requests too large for the window; + those that no policy could have made fit.")
			break
		}
	}
	fmt.Fprintln(w)
	for _, l := range lines {
		fmt.Fprintln(w, style(color, faint, l))
	}
	for i := range rep.Totals {
		if r := &rep.Totals[i]; r.InvalidRequests > 0 {
			fmt.Fprintf(w, "%s: %s would have been refused: %s\n", r.Policy, plural(r.InvalidRequests, "request"), printable(r.FirstRefusal))
		}
	}
}

func printSkipped(w io.Writer, rep *replay.Report) {
	skipped := 0
	for i := range rep.Recordings {
		for _, s := range rep.Recordings[i].Skipped {
			if skipped++; skipped <= 10 {
				fmt.Fprintf(w, "skipped %s\n", printable(s))
			}
		}
	}
	if skipped > 10 {
		fmt.Fprintf(w, "skipped %d more records; --json lists them all\n", skipped-10)
	}
	if n := len(rep.Unknown); n > 0 {
		names := make([]string, 0, 5)
		for _, u := range rep.Unknown[:min(n, 5)] {
			names = append(names, filepath.Base(u))
		}
		more := ""
		if n > 5 {
			more = fmt.Sprintf(" and %d more", n-5)
		}
		fmt.Fprintf(w, "no known format: %s%s\n", printable(strings.Join(names, ", ")), more)
	}
}

// advice bounds: a policy worth taking keeps nearly all names and sends every
// request that can be sent.
const worthKeeping = 0.95

// best is the cheapest policy that loses little, nil if none beats sending
// everything.
func best(results []replay.Result) *replay.Result {
	var found *replay.Result
	for i := range results {
		r := &results[i]
		if r.Policy == "none" || r.CostRatio == nil || *r.CostRatio >= 0.995 || r.Overflows > 0 || r.InvalidRequests > 0 {
			continue
		}
		if r.References > 0 && float64(r.ReferencesKept) < worthKeeping*float64(r.References) {
			continue
		}
		if found == nil || *r.CostRatio < *found.CostRatio {
			found = r
		}
	}
	return found
}

func printAdvice(w io.Writer, rep *replay.Report, f *replayFlags) {
	fmt.Fprintln(w)
	r := best(rep.Totals)
	if r == nil {
		fmt.Fprintf(w, "On these sessions no policy is cheaper than sending everything and keeps %.0f%% of the names.\n", 100*worthKeeping)
		return
	}
	fmt.Fprintf(w, "Cheapest that keeps %.0f%% of the names: %s, %s of the input cost.\n", 100*worthKeeping, r.Policy, ratio(r.CostRatio))
	if _, err := os.Stat(rep.Recordings[0].File); err == nil { // not the made-up session
		fmt.Fprintf(w, "See what it would have shown the model:  furl show %s --view --policy %s\n", quoteArg(rep.Recordings[0].File), r.Policy)
	}
	fmt.Fprintf(w, "Put it to work in a Go agent:            policy.Preset(%q, policy.Options{})\n", r.Policy)
}

// quoteArg writes an argument so that a shell takes it as one word.
func quoteArg(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:@%", r))
	}) < 0
	if plain && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(printable(s), "'", `'\''`) + "'"
}

// table prints columns that line up: the first to the left, others to the
// right.
type table struct {
	head []string
	rows [][]string
}

func (t *table) print(w io.Writer, color bool) {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			if left := i == 0 || t.head[0] == "window" && i == 1; left {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	fmt.Fprintln(w, style(color, bold, line(t.head)))
	for _, row := range t.rows {
		fmt.Fprintln(w, line(row))
	}
}

func models(rep *replay.Report) string {
	var names []string
	seen := map[string]bool{}
	for i := range rep.Recordings {
		m := rep.Recordings[i].Model
		if m == "" {
			m = "unknown model"
		}
		if !seen[m] {
			seen[m] = true
			names = append(names, m)
		}
	}
	if len(names) > 4 {
		return plural(len(names), "model")
	}
	return printable(strings.Join(names, ", "))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func dollars(c *float64) string {
	if c == nil {
		return "no price"
	}
	return fmt.Sprintf("$%.2f", *c)
}

func ratio(r *float64) string {
	if r == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f%%", 100**r)
}

func share(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

func window(n int) string {
	if n == 0 {
		return "model's"
	}
	if n%1000 == 0 {
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

func overflow(r *replay.Result) string {
	if r.Impossible == 0 {
		return fmt.Sprint(r.Overflows)
	}
	return fmt.Sprintf("%d+%d", r.Overflows, r.Impossible)
}
