package replaycmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/eval"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/recorded"
)

// evalProgress prints a line for each finished run, and on a terminal one about the run
// in progress.
type evalProgress struct {
	errs io.Writer
	bar  *cmdline.Bar

	mu      sync.Mutex
	at      eval.Progress
	running bool
	begun   time.Time // of the run
	first   time.Time // of this process
	done    int       // by this process
	ticker  *time.Ticker
	stop    chan struct{}
	waiting sync.WaitGroup
}

func newEvalProgress(cmd *cobra.Command, quiet bool) *evalProgress {
	p := &evalProgress{errs: cmd.ErrOrStderr(), bar: cmdline.NewBar(cmd.ErrOrStderr(), quiet), first: time.Now(), ticker: time.NewTicker(time.Second), stop: make(chan struct{})}
	p.waiting.Go(func() {
		for {
			select {
			case <-p.ticker.C:
				p.draw()
			case <-p.stop:
				return
			}
		}
	})
	return p
}

func (p *evalProgress) close() {
	p.ticker.Stop()
	close(p.stop)
	p.waiting.Wait()
	p.bar.Clear()
}

// report is eval.Options.Progress.
func (p *evalProgress) report(at eval.Progress) {
	p.mu.Lock()
	p.at, p.running = at, at.Result == nil
	if p.running {
		p.begun = time.Now()
	} else {
		p.done++
		p.bar.Clear()
		fmt.Fprintln(p.errs, cmdline.Label(runLine(at)))
	}
	p.mu.Unlock()
	p.draw()
}

func (p *evalProgress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running {
		return
	}
	left := ""
	if p.done > 0 {
		each := time.Since(p.first) / time.Duration(p.done)
		left = ", " + recorded.Roughly(each*time.Duration(p.at.All-p.at.Done)) + " left"
	}
	p.bar.Say(fmt.Sprintf("[%d/%d] %s, %s, run %d: %s; $%s spent%s", p.at.Done+1, p.at.All, p.at.Run.Task, p.at.Run.Policy, p.at.Run.Number,
		recorded.Roughly(time.Since(p.begun)), numbers.Cents(p.at.Cost), left))
}

// runLine describes a finished run.
func runLine(at eval.Progress) string {
	r := at.Result
	line := fmt.Sprintf("[%d/%d] %s, %s, run %d: %s, %s, $%s, %s", at.Done, at.All, r.Task, r.Policy, r.Number, outcomeWords(r),
		numbers.Count(r.Requests, "request"), numbers.Cents(r.Cost), recorded.Roughly(time.Duration(r.Seconds*float64(time.Second))))
	if last := eval.LastLine(r.CheckOutput); last != "" {
		line += ": " + last
	}
	return line
}

func outcomeWords(r *eval.Result) string {
	switch {
	case r.Outcome == eval.Solved:
		return "solved"
	case r.Outcome == eval.TimeLimit:
		return "time limit reached"
	case r.CheckExit < 0:
		return "not solved (check ran into its time limit)"
	}
	return fmt.Sprintf("not solved (check exit code %d)", r.CheckExit)
}

// print prints a report.
func (f *evalFlags) print(w io.Writer, rep *eval.Report) error {
	if f.json {
		return cmdline.PrintJSON(w, rep)
	}
	cols := cmdline.Width(w)
	if cols == 0 {
		cols = cmdline.PlainColumns
	}
	policies := fmt.Sprintf("%d policies", len(rep.Arms))
	if len(rep.Arms) == 1 {
		policies = "one policy"
	}
	spent := "spent"
	if rep.Simulated {
		spent = "of simulated costs"
	}
	cmdline.PrintWrapped(w, fmt.Sprintf("%s, %s each with %s: %d of %d runs finished, $%s %s", numbers.Count(len(rep.Tasks), "task"),
		numbers.Count(rep.Rounds, "run"), policies, rep.Finished, rep.Wanted, numbers.Cents(rep.Cost), spent), cols)
	cmdline.PrintWrapped(w, "agent: "+commandLineOf(rep.Command), cols)
	fmt.Fprintln(w)
	dropped := printArms(w, rep.Arms)
	if f.each {
		for _, one := range rep.ByTask {
			fmt.Fprintf(w, "\n%s\n", cmdline.Style(cmdline.Styled(w), cmdline.Bold, cmdline.Label(one.Task)))
			printArms(w, one.Arms)
		}
	}
	for i := range rep.Against {
		printComparison(w, &rep.Against[i], cols)
	}
	fmt.Fprintln(w)
	legend := "repeated calls: calls with the name and arguments of an earlier one whose result was hidden."
	if !slices.Contains(dropped, callsAgain) {
		legend = "calls made again: calls with the name and arguments of an earlier one. repeated calls: those whose earlier result was hidden."
	}
	cmdline.PrintWrapped(w, "Figures are means of a run. "+legend, cols)
	printRepairs(w, rep.Arms, cols)
	fmt.Fprintln(w)
	for _, text := range rep.Noise {
		cmdline.PrintWrapped(w, text, cols)
	}
	for _, text := range rep.Notes {
		cmdline.PrintWrapped(w, "note: "+text, cols)
	}
	return nil
}

// printSets prints the tasks of the built-in sets.
func (f *evalFlags) printSets(w io.Writer) error {
	list, err := eval.List()
	if err != nil {
		return err
	}
	if f.json {
		return cmdline.PrintJSON(w, list)
	}
	t := cmdline.NewTable(w, cmdline.Text("set"), cmdline.Text("task"), cmdline.Number("files"), cmdline.Number("size"), cmdline.Text("what the agent does"))
	for _, one := range list {
		t.Add(one.Set, one.Name, numbers.Thousands(one.Files), fmt.Sprintf("%.0f kB", float64(one.Bytes)/1000), one.Title)
	}
	t.Print()
	return nil
}

// commandLineOf writes a command as typed in a shell.
func commandLineOf(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		if words[i] = cmdline.QuoteFlag(arg); arg == eval.Placeholder {
			words[i] = arg
		}
	}
	return strings.Join(words, " ")
}

// callsAgain is the name of a column.
const callsAgain = "calls made again"

// printArms prints a row for each policy. It returns the names of the columns that did
// not fit the terminal.
func printArms(w io.Writer, arms []eval.Arm) (dropped []string) {
	t := cmdline.NewTable(w, cmdline.Text("policy"), cmdline.Number("solved"), cmdline.Number("95%\ninterval"), cmdline.Number("cost\nper run"), cmdline.Number("tokens\nsent"), cmdline.Number("requests"),
		cmdline.Number("steps"), cmdline.Number("calls\nmade again"), cmdline.Number("repeated\ncalls"), cmdline.Number("agent's\ntime"))
	for i := range arms {
		a := &arms[i]
		if a.Runs == 0 {
			t.Add(a.Policy, "no runs", "", "", "", "", "", "", "", "")
			continue
		}
		t.Add(a.Policy, fmt.Sprintf("%d of %d (%.0f%%)", a.Solved, a.Runs, 100*a.Rate), fmt.Sprintf("%.0f–%.0f%%", 100*a.Interval.Low, 100*a.Interval.High),
			"$"+numbers.Cents(a.Cost), numbers.Thousands(int(a.Tokens+0.5)), oneDigit(a.Requests), oneDigit(a.Steps), oneDigit(a.Again), oneDigit(a.Repeated),
			recorded.Roughly(time.Duration(a.Seconds*float64(time.Second))))
	}
	for _, name := range []string{"agent's time", "steps", callsAgain, "requests", "tokens sent"} {
		if !t.Fits() && t.Drop(name) {
			dropped = append(dropped, name)
		}
	}
	t.Print()
	return dropped
}

// printRepairs prints the blind edits of each policy that had any, and the repairs.
func printRepairs(w io.Writer, arms []eval.Arm, cols int) {
	for i := range arms {
		if a := &arms[i]; a.Blind+a.Repaired > 0 {
			cmdline.PrintWrapped(w, fmt.Sprintf("%s: %s of %s edits blind (the text that they replace was hidden); %s failed and were repaired, which added %s tokens to prompts.",
				a.Policy, oneDigit(a.Blind), oneDigit(a.Edits), oneDigit(a.Repaired), numbers.Thousands(int(a.RepairTokens+0.5))), cols)
		}
	}
}

func oneDigit(x float64) string { return fmt.Sprintf("%.1f", x) }

// printComparison prints how a policy differs from the baseline.
func printComparison(w io.Writer, c *eval.Comparison, cols int) {
	fmt.Fprintln(w)
	n := c.Pairs.N()
	if n == 0 {
		cmdline.PrintWrapped(w, fmt.Sprintf("%s compared with %s: no pairs of runs yet", c.Policy, c.Baseline), cols)
		return
	}
	cmdline.PrintWrapped(w, fmt.Sprintf("%s compared with %s, over %s of runs of the same task:", c.Policy, c.Baseline, numbers.Count(n, "pair")), cols)
	d := &c.Difference
	verdict := "may be chance"
	if d.Interval.Excludes(0) {
		verdict = "unlikely to be chance"
	}
	fmt.Fprintf(w, "  solved: %s, 95%% interval %s to %s: %s\n", points(d.Rate), points(d.Interval.Low), points(d.Interval.High), verdict)
	fmt.Fprintf(w, "          both solved %d, only %s %d, only %s %d, neither %d\n", c.Pairs.Both, cmdline.Label(c.Policy), c.Pairs.First, cmdline.Label(c.Baseline), c.Pairs.Second, c.Pairs.Neither)
	if c.CostRatio != nil {
		line := fmt.Sprintf("  cost:   %.0f%% of that of %s", 100**c.CostRatio, cmdline.Label(c.Baseline))
		if c.CostInterval != nil {
			line += fmt.Sprintf(", 95%% interval %.0f%% to %.0f%%", 100*c.CostInterval.Low, 100*c.CostInterval.High)
		}
		fmt.Fprintln(w, line)
	}
}

// points writes a difference of rates.
func points(d float64) string {
	n := fmt.Sprintf("%+.0f", 100*d)
	if n == "+0" || n == "-0" {
		n = "0"
	}
	if n == "+1" || n == "-1" {
		return n + " point"
	}
	return n + " points"
}
