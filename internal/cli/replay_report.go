package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl/replay"
)

// printReport prints the table of all recordings, the meaning of its columns,
// and a recommended policy.
func printReport(w io.Writer, rep *replay.Report, f *replayFlags) {
	color, cols := styled(w), width(w)
	requests := 0
	for i := range rep.Recordings {
		requests += rep.Recordings[i].Requests
	}
	printWrapped(w, fmt.Sprintf("%s replayed: %s, %s", plural(len(rep.Recordings), "recording"), plural(requests, "request"), models(rep)), cols)
	for _, n := range rep.Notes {
		printWrapped(w, n, cols)
	}
	if f.each || len(rep.Recordings) == 1 {
		for i := range rep.Recordings {
			r := &rep.Recordings[i]
			if f.each {
				printRecording(w, r, color)
				printResults(w, r.Results)
			}
			for _, n := range r.Notes {
				printWrapped(w, "note: "+n, cols)
			}
		}
	}
	if f.each {
		if len(rep.Recordings) > 1 {
			fmt.Fprintf(w, "\n%s\n", style(color, bold, "All recordings"))
		}
	} else {
		fmt.Fprintln(w)
	}
	left := printResults(w, rep.Totals)
	printLegend(w, rep, left, color)
	printSkipped(w, rep, f.verbose)
	if rep.Tuning != nil {
		printTuning(w, rep.Tuning)
		return
	}
	printAdvice(w, rep, f)
}

// printRecording prints the heading of one recording's table.
func printRecording(w io.Writer, r *replay.RecordingReport, color bool) {
	model := r.Model
	if model == "" {
		model = "unknown model"
	}
	about := fmt.Sprintf("%s, %s, %s, %s", r.Agent, model, plural(r.Messages, "message"), plural(r.Requests, "request"))
	fmt.Fprintf(w, "\n%s  %s\n", style(color, bold, label(filepath.Base(r.File))), style(color, faint, label(about)))
}

func printWrapped(w io.Writer, text string, cols int) {
	for _, l := range wrap(label(text), cols) {
		fmt.Fprintln(w, l)
	}
}

// expendable lists the columns that a narrow terminal does not get. The first
// is dropped first.
var expendable = []string{"cache breaks", "repeated calls", "quoted lines still visible", "overflows", "identifiers still visible"}

// printResults prints a table that fits the terminal and returns the names of
// the columns that did not fit.
func printResults(w io.Writer, results []replay.Result) (dropped []string) {
	several := false
	for i := range results {
		several = several || results[i].Window != results[0].Window
	}
	columns := []column{
		text("policy"), number("cost"), number("input\ncost"), number("identifiers\nstill visible"), number("quoted lines\nstill visible"),
		number("repeated\ncalls"), number("cache\nbreaks"), number("overflows"),
	}
	if several {
		columns = append([]column{text("window")}, columns...)
	}
	t := newTable(w, columns...)
	for i := range results {
		r := &results[i]
		row := []string{
			policyLabel(r.Policy), dollars(r.Cost), ratio(r.CostRatio),
			share(r.ReferencesKept, r.References), share(r.QuotedLinesKept, r.QuotedLines),
			fmt.Sprint(r.Refetches), fmt.Sprint(r.CacheBreaks), overflow(r),
		}
		if several {
			row = append([]string{window(r.Window)}, row...)
		}
		t.add(row...)
	}
	for _, name := range expendable {
		if t.fits() {
			break
		}
		t.drop(name)
		dropped = append(dropped, name)
	}
	t.print()
	return dropped
}

// policyLabel is the name of a policy in tables. Policy none hides nothing, so
// its row is the session as recorded.
func policyLabel(name string) string {
	if name == "none" {
		return "as recorded"
	}
	return name
}

// legend explains the columns, two on a line.
var legend = [][]string{
	{"cost: total cost, including output and the policy's own model calls.", "input cost: compared with the sessions as recorded."},
	{"identifiers still visible: identifiers that the agent used again and could still see.", "quoted lines still visible: the same for whole lines, as in edits."},
	{"repeated calls: calls made again after their result was hidden.", "cache breaks: requests that rewrote a prompt cache that had not expired."},
}

// unpriced counts the recordings whose cost is not known.
func unpriced(rep *replay.Report) int {
	n := 0
	for i := range rep.Recordings {
		if r := &rep.Recordings[i]; len(r.Results) > 0 && r.Results[0].Requests > 0 && r.Results[0].Cost == nil {
			n++
		}
	}
	return n
}

func printLegend(w io.Writer, rep *replay.Report, dropped []string, color bool) {
	var lines []string
	for _, both := range legend {
		var known []string
		for _, l := range both {
			if name, _, _ := strings.Cut(l, ":"); !slices.Contains(dropped, name) {
				known = append(known, l)
			}
		}
		if len(known) > 0 {
			lines = append(lines, strings.Join(known, " "))
		}
	}
	if n := unpriced(rep); n > 0 {
		lines = append(lines, fmt.Sprintf("No price is known for the model of %s: cost leaves them out, input cost compares tokens. Set a price with --price-input or --model.", plural(n, "recording")))
	}
	for i := range rep.Totals {
		if rep.Totals[i].Impossible > 0 {
			lines = append(lines, "overflows: requests over the context window; after the +, those that no policy could have reduced to fit.")
			break
		}
	}
	if len(dropped) > 0 {
		lines = append(lines, fmt.Sprintf("Not shown on a terminal of %d columns: %s.", width(w), strings.Join(dropped, ", ")))
	}
	fmt.Fprintln(w)
	for _, text := range lines {
		for _, l := range wrap(text, width(w)) {
			fmt.Fprintln(w, style(color, faint, l))
		}
	}
	for i := range rep.Totals {
		if r := &rep.Totals[i]; r.InvalidRequests > 0 {
			fmt.Fprintf(w, "%s: the provider would have refused %s: %s\n", policyLabel(r.Policy), plural(r.InvalidRequests, "request"), printable(r.FirstRefusal))
		}
	}
}

// printSkipped prints a line for each damaged file, and one for the files in
// unknown formats; with verbose all their records and names.
func printSkipped(w io.Writer, rep *replay.Report, verbose bool) {
	for i := range rep.Recordings {
		r := &rep.Recordings[i]
		if r.Damage == "" {
			continue
		}
		printWrapped(w, r.File+": "+r.Damage, width(w))
		for _, s := range r.Skipped {
			if verbose {
				printWrapped(w, "  "+s, width(w))
			}
		}
	}
	if n := len(rep.Unknown); n > 0 {
		fmt.Fprintf(w, "skipped %s in unknown formats\n", plural(n, "file"))
	}
	if verbose {
		for _, file := range rep.Unknown {
			fmt.Fprintf(w, "  %s\n", label(file))
		}
	}
}

// worthKeeping is the share of identifiers that a recommended policy keeps
// visible.
const worthKeeping = 0.95

// best returns the cheapest policy that keeps this share of the identifiers
// visible and sends every request that fits. It is nil if no policy is cheaper
// than as recorded.
func best(results []replay.Result, keeps float64) *replay.Result {
	var found *replay.Result
	for i := range results {
		r := &results[i]
		if r.Policy == "none" || r.CostRatio == nil || *r.CostRatio >= 0.995 || r.Overflows > 0 || r.InvalidRequests > 0 {
			continue
		}
		if r.References > 0 && float64(r.ReferencesKept) < keeps*float64(r.References) {
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
	if rep.Totals[0].Requests == 0 {
		fmt.Fprintln(w, "Nothing to compare: the recordings have no reply of a model.")
		return
	}
	r := best(rep.Totals, worthKeeping)
	if r == nil {
		printWrapped(w, fmt.Sprintf("No policy is cheaper than as recorded and keeps %.0f%% of the identifiers visible.", 100*worthKeeping), width(w))
		if r := best(rep.Totals, 0); r != nil {
			printWrapped(w, fmt.Sprintf("The cheapest policy, %s, has %s of the input cost and keeps %s of the identifiers visible.", r.Policy, ratio(r.CostRatio), share(r.ReferencesKept, r.References)), width(w))
			printSee(w, rep, r)
		}
		return
	}
	fmt.Fprintf(w, "Cheapest policy that keeps %.0f%% of the identifiers visible: %s, %s of the input cost.\n", 100*worthKeeping, r.Policy, ratio(r.CostRatio))
	printSee(w, rep, r)
	fmt.Fprintf(w, "Run an agent with it:   furl run --policy %s -- AGENT\n", r.Policy)
	fmt.Fprintf(w, "Use it in a Go program: session.Options{Policy: %q}\n", r.Policy)
}

// printSee prints the command that shows what a policy would have sent.
func printSee(w io.Writer, rep *replay.Report, r *replay.Result) {
	if _, err := os.Stat(rep.Recordings[0].File); err == nil { // not the demo session
		fmt.Fprintf(w, "See what it sends:      furl show %s --view --policy %s\n", quoteArg(rep.Recordings[0].File), r.Policy)
	}
}

// quoteArg quotes an argument for a shell.
func quoteArg(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:@%", r))
	}) < 0
	if plain && s != "" {
		return s
	}
	if label(s) == s {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder // $'…' has escapes for characters that must not reach a terminal
	for _, c := range []byte(s) {
		switch {
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
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
	return label(strings.Join(names, ", "))
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
