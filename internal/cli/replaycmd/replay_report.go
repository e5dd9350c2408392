package replaycmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/replay"
)

// printReport prints the table of all recordings, the meaning of its columns,
// and a recommended policy.
func printReport(w io.Writer, rep *replay.Report, f *replayFlags) {
	color, cols := cmdline.Styled(w), cmdline.Width(w)
	requests := 0
	for i := range rep.Recordings {
		requests += rep.Recordings[i].Requests
	}
	cmdline.PrintWrapped(w, fmt.Sprintf("%s replayed: %s, %s", numbers.Count(len(rep.Recordings), "recording"), numbers.Count(requests, "request"), modelsOf(rep)), cols)
	for _, n := range rep.Notes {
		cmdline.PrintWrapped(w, n, cols)
	}
	if plan := rep.PlanWords(); plan != "" {
		cmdline.PrintWrapped(w, plan, cols)
	}
	if f.each || len(rep.Recordings) == 1 {
		for i := range rep.Recordings {
			r := &rep.Recordings[i]
			if f.each {
				printRecording(w, r, color)
				printResults(w, r.Results, rep.Wish)
			}
			for _, n := range r.Notes {
				cmdline.PrintWrapped(w, "note: "+n, cols)
			}
		}
	}
	if f.each {
		if len(rep.Recordings) > 1 {
			fmt.Fprintf(w, "\n%s\n", cmdline.Style(color, cmdline.Bold, "All recordings"))
		}
	} else {
		fmt.Fprintln(w)
	}
	left := printResults(w, rep.Totals, rep.Wish)
	printLegend(w, rep, left, color)
	printSkipped(w, rep, f.verbose)
	printToolDiet(w, rep.ToolDiet)
	if rep.Tuning != nil {
		printTuning(w, rep.Tuning)
	}
	if rep.Timing != nil {
		printTiming(w, rep.Timing)
	}
	printAdvice(w, rep, f)
}

// printTiming prints where the time went.
func printTiming(w io.Writer, t *replay.Timing) {
	fmt.Fprintf(w, "\nTime, in seconds of all workers: reading %.1f, preparing %.1f", t.Reading, t.Preparing)
	for _, p := range t.Policies {
		fmt.Fprintf(w, ", %s %.1f", p.Policy, p.Seconds)
	}
	fmt.Fprintln(w)
	if t.Known > 0 {
		fmt.Fprintf(w, "%s not read: unchanged since an earlier replay with these options.\n", numbers.Count(t.Known, "recording"))
	}
}

// printRecording prints the heading of one recording's table.
func printRecording(w io.Writer, r *replay.RecordingReport, color bool) {
	model := r.Model
	if model == "" {
		model = "unknown model"
	}
	about := fmt.Sprintf("%s, %s, %s, %s", r.Agent, model, numbers.Count(r.Messages, "message"), numbers.Count(r.Requests, "request"))
	fmt.Fprintf(w, "\n%s  %s\n", cmdline.Style(color, cmdline.Bold, cmdline.Label(partName(r))), cmdline.Style(color, cmdline.Faint, cmdline.Label(about)))
}

// expendable lists the columns that a narrow terminal does not get. The first
// is dropped first.
var expendable = []string{"% with re-reads", "cache breaks", "repeated calls", "their price", "blind edits", "quoted lines still visible", "over the window", "identifiers still visible"}

// printResults prints a table that fits the terminal, with an arrow at the
// recommended policy of each window. It returns the names of the columns that did
// not fit.
func printResults(w io.Writer, results []replay.Result, wish replay.Wish) (dropped []string) {
	sizes, over := windowsOf(results), false
	for i := range results {
		over = over || results[i].Unsent() > 0
	}
	columns := []cmdline.Column{cmdline.Text("policy"), cmdline.Number("cost"), cmdline.Number("between"), cmdline.Number("% of\n" + against(results)), cmdline.Number("over the\nwindow"), cmdline.Number("their\nprice"),
		cmdline.Number("identifiers\nstill visible"), cmdline.Number("quoted lines\nstill visible"), cmdline.Number("blind\nedits"), cmdline.Number("% with\nre-reads"),
		cmdline.Number("repeated\ncalls"), cmdline.Number("cache\nbreaks"), cmdline.Text("")}
	if len(sizes) > 1 {
		columns = append([]cmdline.Column{cmdline.Text("window")}, columns...)
	}
	t := cmdline.NewTable(w, columns...)
	idle := make(map[int][]string) // by window: policies that changed nothing
	for i := range results {
		r := &results[i]
		if r.Policy != "none" && !r.Acted() {
			idle[r.Window] = append(idle[r.Window], r.Label())
			continue
		}
		arrow := ""
		if best, fits := replay.Recommend(results, r.Window, wish); fits && best == i {
			arrow = "←"
		}
		var unrecorded string // compactions that are not part of the recorded usage
		cost, of := r.Total(), ratio(r.CostShare)
		if r.Label() == "billed" && cost != nil && r.Unrecorded >= 0.005 {
			cost, unrecorded = r.Recorded(), dollars(&r.Unrecorded)
			of = ""
		}
		row := []string{
			r.Label(), dollars(cost), between(r), of, requestsOver(r.Unsent()), priceOver(r),
			share(r.ReferencesKept, r.References), share(r.QuotedLinesKept, r.QuotedLines),
			share(r.BlindEdits, r.Edits), ratio(r.PenalisedShare), fmt.Sprint(r.Refetches), numbers.Thousands(r.CacheBreaks), arrow,
		}
		if len(sizes) > 1 {
			row = append([]string{window(r.Window)}, row...)
		}
		t.Add(row...)
		if unrecorded != "" {
			extra := make([]string, len(row))
			at := min(1, len(sizes)-1) // after the window, if there are several
			extra[at], extra[at+1], extra[at+3] = "+ compactions", unrecorded, ratio(r.CostShare)
			t.Add(extra...)
		}
	}
	if !over {
		t.Drop("over the window")
		t.Drop("their price")
	}
	for _, name := range expendable {
		if t.Fits() {
			break
		}
		if t.Drop(name) {
			dropped = append(dropped, name)
		}
	}
	t.Print()
	for _, size := range sizes {
		printIdle(w, idle[size], size, len(sizes) > 1)
	}
	return dropped
}

// printIdle names the policies that changed no request.
func printIdle(w io.Writer, policies []string, size int, named bool) {
	if len(policies) == 0 {
		return
	}
	where := ""
	if named {
		where = " with a window of " + window(size)
	}
	text := fmt.Sprintf("No request would have been changed%s by %s.", where, strings.Join(policies, ", "))
	cmdline.PrintWrapped(w, text, cmdline.Width(w))
}

// against is what costs are compared with.
func against(results []replay.Result) string {
	for i := range results {
		if results[i].Label() == "billed" {
			return "billed"
		}
	}
	return "recorded"
}

// between is the interval of a cost, "–" if it is known.
func between(r *replay.Result) string {
	if r.CostLow == nil || *r.CostHigh-*r.CostLow < 0.005 || r.Label() == "billed" {
		return "–"
	}
	return numbers.Between(*r.CostLow+r.OverflowCost, *r.CostHigh+r.OverflowCost)
}

// requestsOver is a number of requests over the window; none are a dash.
func requestsOver(n int) string {
	if n == 0 {
		return "–"
	}
	return numbers.Thousands(n)
}

// priceOver is what the requests over the window would cost.
func priceOver(r *replay.Result) string {
	if r.Unsent() == 0 {
		return "–"
	}
	if r.Cost == nil {
		return dollars(nil)
	}
	return dollars(&r.OverflowCost)
}

// windowsOf lists the windows of results, in their order.
func windowsOf(results []replay.Result) []int {
	var out []int
	for i := range results {
		if !slices.Contains(out, results[i].Window) {
			out = append(out, results[i].Window)
		}
	}
	return out
}

// legend explains the columns, two on a line.
var legend = [][]string{
	{"billed: the recorded usage at list prices.", "+ compactions: what the agent's own compactions cost, estimated, because it does not record that; all other rows include it.", "as recorded: simulated.", "cost: all requests and replies, including the policy's own model calls.",
		"between: where the cost is with a probability of 90%, if the prompt cache loses entries as often as it did.", "% of billed: that cost as a share of what was billed.", "% of recorded: that cost as a share of the cost as recorded."},
	{"over the window: requests that the provider refuses as too long; the cost includes them, so that all rows pay for the same requests.", "their price: what they would cost."},
	{"identifiers still visible: identifiers that the agent used again and could still see.", "quoted lines still visible: the same for whole lines, as in edits."},
	{"blind edits: the share of edits that replace text which was no longer visible.", "% with re-reads: % of recorded if each blind edit also pays for reading that text again."},
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

// compactions says that recordings have compactions of their own, what they cost, and which
// rows pay less for them.
func compactions(rep *replay.Report) []string {
	files, n := 0, 0
	for i := range rep.Recordings {
		if c := rep.Recordings[i].Compactions; c > 0 {
			files, n = files+1, n+c
		}
	}
	where := "the recording contains"
	switch {
	case n == 0:
		return nil
	case len(rep.Recordings) > 1 && files == 1:
		where = fmt.Sprintf("1 of %d recordings contains", len(rep.Recordings))
	case len(rep.Recordings) > 1:
		where = fmt.Sprintf("%d of %d recordings contain", files, len(rep.Recordings))
	}
	first := fmt.Sprintf("as recorded: %s %s by the agent itself. Under every policy the session continues from their summaries.", where, numbers.Count(n, "compaction"))
	return append([]string{first}, compactionCost(rep.Totals)...)
}

// compactionCost says what the agent's compactions cost, if that is known.
func compactionCost(totals []replay.Result) []string {
	most := 0.0
	for i := range totals {
		most = max(most, totals[i].Split.Compactions)
	}
	if most == 0 {
		return nil
	}
	var less []string
	for i := range totals {
		if r := &totals[i]; r.Split.Compactions < most-1e-9 {
			if name := r.Label(); !slices.Contains(less, name) {
				less = append(less, name)
			}
		}
	}
	words := fmt.Sprintf("compactions by the agent: %s of the cost as recorded.", dollars(&most))
	if len(less) > 0 {
		words += fmt.Sprintf(" Rows that pay less, because their prompt was at least a tenth smaller then: %s.", strings.Join(less, ", "))
	}
	return []string{words}
}

// notMeasured says in how many requests edits may be missing.
func notMeasured(totals []replay.Result) []string {
	most := 0
	for i := range totals {
		most = max(most, totals[i].EditsNotMeasured)
	}
	if most == 0 {
		return nil
	}
	return []string{fmt.Sprintf("edits not measured in %s: scripts call tools with text that they compute.", numbers.Count(most, "request"))}
}

// unpricedEffect says how recordings without a price count.
func unpricedEffect(all bool) string {
	if all {
		return "% of recorded compares tokens"
	}
	return "cost and % of recorded leave them out"
}

func printLegend(w io.Writer, rep *replay.Report, narrow []string, color bool) {
	dropped := narrow
	if !slices.ContainsFunc(rep.Totals, func(r replay.Result) bool { return r.Unsent() > 0 }) {
		dropped = append(slices.Clip(narrow), "over the window", "their price")
	}
	if against(rep.Totals) == "billed" {
		dropped = append(slices.Clip(dropped), "as recorded", "% of recorded")
	} else {
		dropped = append(slices.Clip(dropped), "billed", "% of billed")
	}
	if !slices.ContainsFunc(rep.Totals, func(r replay.Result) bool { return r.Label() == "billed" && r.Unrecorded >= 0.005 }) {
		dropped = append(slices.Clip(dropped), "+ compactions")
	}
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
	lines = append(lines, compactions(rep)...)
	lines = append(lines, notMeasured(rep.Totals)...)
	if n := unpriced(rep); n > 0 {
		lines = append(lines, fmt.Sprintf("No price is known for the model of %s: %s. Set a price with --price-input or --model.", numbers.Count(n, "recording"), unpricedEffect(n == len(rep.Recordings))))
	}
	if len(narrow) > 0 {
		lines = append(lines, fmt.Sprintf("Not shown on a terminal of %d columns: %s.", cmdline.Width(w), strings.Join(narrow, ", ")))
	}
	fmt.Fprintln(w)
	for _, text := range lines {
		for _, l := range cmdline.Wrap(text, cmdline.Width(w)) {
			fmt.Fprintln(w, cmdline.Style(color, cmdline.Faint, l))
		}
	}
	for i := range rep.Totals {
		if r := &rep.Totals[i]; r.InvalidRequests > 0 {
			fmt.Fprintf(w, "%s: the provider would have refused %s: %s\n", r.Label(), numbers.Count(r.InvalidRequests, "request"), cmdline.Printable(r.FirstRefusal))
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
		cmdline.PrintWrapped(w, r.File+": "+r.Damage, cmdline.Width(w))
		for _, s := range r.Skipped {
			if verbose {
				cmdline.PrintWrapped(w, "  "+s, cmdline.Width(w))
			}
		}
	}
	if n := len(rep.Unknown); n > 0 {
		fmt.Fprintf(w, "skipped %s in unknown formats\n", numbers.Count(n, "file"))
	}
	if verbose {
		for _, file := range rep.Unknown {
			fmt.Fprintf(w, "  %s\n", cmdline.Label(file))
		}
	}
}

// printAdvice names the policy to use, for each window, and how to use it.
func printAdvice(w io.Writer, rep *replay.Report, f *replayFlags) {
	fmt.Fprintln(w)
	if rep.Totals[0].Requests == 0 {
		fmt.Fprintln(w, "Nothing to compare: the recordings contain no model replies.")
		return
	}
	sizes := windowsOf(rep.Totals)
	var last *replay.Result
	for _, size := range sizes {
		where := ""
		if len(sizes) > 1 {
			where = "With a window of " + window(size) + " tokens:"
			if size == 0 {
				where = "With each model's window:"
			}
		}
		if r := recommend(w, rep, size, where, rep.Wish); r != nil {
			last = r
		}
	}
	if last != nil {
		f.printUse(w, rep, last)
	}
}

// recommend prints the policy to use at a window. It returns nil if there is none
// to use.
func recommend(w io.Writer, rep *replay.Report, size int, where string, wish replay.Wish) *replay.Result {
	cols := cmdline.Width(w)
	if where != "" {
		fmt.Fprintln(w, where)
	}
	i, fits := replay.Recommend(rep.Totals, size, wish)
	over := 0
	for j := range rep.Totals {
		if r := &rep.Totals[j]; r.Policy == "none" && r.Window == size {
			over = r.Unsent()
		}
	}
	kind := "policy"
	if rep.Tuning != nil && len(wish.Among) > 0 {
		kind = "preset" // a variant may
	}
	switch {
	case i < 0:
		cmdline.PrintWrapped(w, fmt.Sprintf("No %s that costs less than as recorded %s.", kind, wish), cols)
	case fits && rep.Tuning != nil:
		cmdline.PrintWrapped(w, rep.Tuning.String(), cols)
	case fits && over > 0: // a request that does not fit has no price to compare with
		cmdline.PrintWrapped(w, fmt.Sprintf("Cheapest policy that %s: %s, %s.", wish, rep.Totals[i].Policy, dollars(rep.Totals[i].Total())), cols)
	case fits:
		cmdline.PrintWrapped(w, fmt.Sprintf("Cheapest policy that %s: %s, %s of the cost as recorded.", wish, rep.Totals[i].Policy, ratio(rep.Totals[i].CostShare)), cols)
	}
	if i < 0 {
		printVariant(w, rep)
		return nil
	}
	r := &rep.Totals[i]
	if over > 0 {
		text := fmt.Sprintf("As recorded, %s of %s do not fit the window", numbers.Thousands(over), numbers.Count(r.Requests, "request"))
		if n := r.Unsent(); fits && n > 0 {
			text += fmt.Sprintf("; with %s, %s do not", r.Policy, numbers.Thousands(n))
		}
		cmdline.PrintWrapped(w, text+".", cols)
	}
	if fits {
		printVariant(w, rep)
		return r
	}
	cmdline.PrintWrapped(w, fmt.Sprintf("No %s that costs less than as recorded %s: none is recommended.", kind, wish), cols)
	cmdline.PrintWrapped(w, closest(r, wish), cols)
	printVariant(w, rep)
	printSee(w, rep, r)
	return nil
}

// closest describes the policy that comes closest to a goal.
func closest(r *replay.Result, wish replay.Wish) string {
	what, blind := "The closest", ""
	if r.Edits > 0 {
		blind = fmt.Sprintf("%s of the edits are blind, and ", share(r.BlindEdits, r.Edits))
		if wish.Cost == 0 {
			what = "The one with the fewest blind edits"
		}
	}
	return fmt.Sprintf("%s is %s: %s of the cost as recorded; %sit keeps %s of the identifiers and %s of the quoted lines visible.",
		what, r.Policy, ratio(r.CostShare), blind, share(r.ReferencesKept, r.References), share(r.QuotedLinesKept, r.QuotedLines))
}

// printVariant names a variant that does better than the presets, if all were tried.
func printVariant(w io.Writer, rep *replay.Report) {
	if rep.Tuning == nil {
		return
	}
	if name := betterVariant(rep); name != "" {
		i := slices.IndexFunc(rep.Tuning.Settings, func(s replay.Setting) bool { return s.Policy == name })
		cmdline.PrintWrapped(w, fmt.Sprintf("The variant %s reaches this goal at %s of the cost on the same recordings; choose it with --policy %s.", name, percent(rep.Tuning.Settings[i].Cost), name), cmdline.Width(w))
	}
}

// printUse prints how to use a policy.
func (f *replayFlags) printUse(w io.Writer, rep *replay.Report, r *replay.Result) {
	fmt.Fprintln(w)
	fmt.Fprintf(w, "Run an agent with it:   furl run --policy %s -- AGENT\n", r.Policy)
	if file := f.configFile(); file != "" && !f.tune.write {
		how := ""
		if f.tune.on {
			how = "; --write sets it"
		}
		fmt.Fprintf(w, "Make it the default:    policy: %s   (in %s%s)\n", r.Policy, inHome(visible.QuoteArg(file)), how)
	}
	printSee(w, rep, r)
	fmt.Fprintf(w, "Use it in a Go program: session.Options{Policy: %q}\n", r.Policy)
}

// inHome abbreviates the home folder at the beginning of a path as "~".
func inHome(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
		return "~" + string(filepath.Separator) + rest
	}
	return path
}

// configFile is the configuration file, "" if it has no place.
func (f *replayFlags) configFile() string {
	if f.config != "" {
		return f.config
	}
	file, err := config.Path()
	if err != nil {
		return ""
	}
	return file
}

// printSee prints the command that shows what a policy would have sent.
func printSee(w io.Writer, rep *replay.Report, r *replay.Result) {
	size := ""
	if r.Window > 0 {
		size = " --window " + window(r.Window)
	}
	if _, err := os.Stat(rep.Recordings[0].File); err == nil { // not the demo session
		fmt.Fprintf(w, "See what it sends:      furl show %s --view --policy %s%s\n", visible.QuoteArg(rep.Recordings[0].File), r.Policy, size)
	}
}

func modelsOf(rep *replay.Report) string {
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
		return numbers.Count(len(names), "model")
	}
	return cmdline.Label(strings.Join(names, ", "))
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

// partName is the name of a recording's file, with the number of the part if it was read
// in parts.
func partName(r *replay.RecordingReport) string {
	name := filepath.Base(r.File)
	if r.Part > 0 {
		name += fmt.Sprintf(", part %d", r.Part)
	}
	return name
}
