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

// printReport prints what a person wants to know first: the table over all
// recordings, what its columns mean, and which policy to take.
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
	printSkipped(w, rep)
	if rep.Tuning != nil {
		printTuning(w, rep.Tuning)
		return
	}
	printAdvice(w, rep, f)
}

// printRecording heads the table of one recording.
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

// columns of the table that are given up on a narrow terminal, first to last.
var expendable = []string{"cache breaks", "re-fetched", "lines kept", "overflows", "names kept"}

// printResults prints a table as wide as the terminal allows and names the
// columns it left out.
func printResults(w io.Writer, results []replay.Result) (left []string) {
	several := false
	for i := range results {
		several = several || results[i].Window != results[0].Window
	}
	columns := []column{
		text("policy"), number("cost"), number("of none"), number("names kept"), number("lines kept"),
		number("re-fetched"), number("cache breaks"), number("overflows"),
	}
	if several {
		columns = append([]column{text("window")}, columns...)
	}
	t := newTable(w, columns...)
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
		t.add(row...)
	}
	for _, name := range expendable {
		if t.fits() {
			break
		}
		t.drop(name)
		left = append(left, name)
	}
	t.print()
	return left
}

// legend says what the columns mean, two to a line.
var legend = [][]string{
	{"cost: the whole bill, output and the policy's own calls included.", "of none: input cost against sending everything."},
	{"names kept: names the agent used again that it could still see.", "lines kept: the same for whole lines it quoted, as edits do."},
	{"re-fetched: calls repeated after their result was hidden.", "cache breaks: requests that had to rewrite the prompt cache."},
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

func printLegend(w io.Writer, rep *replay.Report, left []string, color bool) {
	var lines []string
	for _, both := range legend {
		var known []string
		for _, l := range both {
			if name, _, _ := strings.Cut(l, ":"); !slices.Contains(left, name) {
				known = append(known, l)
			}
		}
		if len(known) > 0 {
			lines = append(lines, strings.Join(known, " "))
		}
	}
	if n := unpriced(rep); n > 0 {
		lines = append(lines, fmt.Sprintf("no price is known for the model of %s: not in cost, and counted in tokens in of none. --price-input and --model give one.", plural(n, "recording")))
	}
	for i := range rep.Totals {
		if rep.Totals[i].Impossible > 0 {
			lines = append(lines, "overflows: requests too large for the window; + those that no policy could have made fit.")
			break
		}
	}
	if len(left) > 0 {
		lines = append(lines, fmt.Sprintf("not shown, since the terminal is %d columns wide: %s.", width(w), strings.Join(left, ", ")))
	}
	fmt.Fprintln(w)
	for _, text := range lines {
		for _, l := range wrap(text, width(w)) {
			fmt.Fprintln(w, style(color, faint, l))
		}
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
				printWrapped(w, "skipped "+s, width(w))
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
		printWrapped(w, "no known format: "+strings.Join(names, ", ")+more, width(w))
	}
}

// advice bounds: a policy worth taking keeps nearly all names and sends every
// request that can be sent.
const worthKeeping = 0.95

// best is the cheapest policy that keeps a share of the names, nil if none
// beats sending everything.
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
		fmt.Fprintln(w, "There is nothing to compare: the recordings hold no reply of a model.")
		return
	}
	r := best(rep.Totals, worthKeeping)
	if r == nil {
		printWrapped(w, fmt.Sprintf("On these sessions no policy is cheaper than sending everything and keeps %.0f%% of the names.", 100*worthKeeping), width(w))
		if r := best(rep.Totals, 0); r != nil {
			printWrapped(w, fmt.Sprintf("The cheapest, %s, takes %s of the input cost and keeps %s of them.", r.Policy, ratio(r.CostRatio), share(r.ReferencesKept, r.References)), width(w))
			printSee(w, rep, r)
		}
		return
	}
	fmt.Fprintf(w, "Cheapest that keeps %.0f%% of the names: %s, %s of the input cost.\n", 100*worthKeeping, r.Policy, ratio(r.CostRatio))
	printSee(w, rep, r)
	fmt.Fprintf(w, "Put it to work in a Go agent:            session.Options{Policy: %q}\n", r.Policy)
}

// printSee gives the command that shows what a policy would have done.
func printSee(w io.Writer, rep *replay.Report, r *replay.Result) {
	if _, err := os.Stat(rep.Recordings[0].File); err == nil { // not the made-up session
		fmt.Fprintf(w, "See what it would have shown the model:  furl show %s --view --policy %s\n", quoteArg(rep.Recordings[0].File), r.Policy)
	}
}

// quoteArg writes an argument so that a shell takes it as one word.
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
	var b strings.Builder // $'…' can say what must not reach a terminal
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
