package replaycmd

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/tally"
)

// printCauses writes what the cost is for, as the flags ask.
func (f *usageFlags) printCauses(w io.Writer, rep *tally.CauseReport) error {
	switch {
	case f.Json:
		return cmdline.PrintJSON(w, rep)
	case f.csv:
		return printCausesCSV(w, rep)
	case rep.Total.Requests == 0:
		fmt.Fprintln(w, noRequests)
		return nil
	}
	t := cmdline.NewTable(w, cmdline.Text("cause"), cmdline.Number("calls"), cmdline.Number("tokens in\nall results"), cmdline.Number("tokens in\nall prompts"), cmdline.Number("tokens\nout"), cmdline.Number("list\nprice"), cmdline.Number("share"), cmdline.Text(""))
	most := 0.0
	for i := range rep.Groups {
		most = max(most, rep.Groups[i].Cost)
	}
	for i := range rep.Groups {
		c := &rep.Groups[i]
		name := c.Cause
		if c.Tool != "" {
			name = c.Cause + " " + cmdline.Truncate(cmdline.Label(c.Tool), usageModel)
		}
		t.Add(name, nonzeroCount(c.Calls), nonzeroCount(c.ResultTokens), nonzeroCount(c.PromptTokens), nonzeroCount(c.OutputTokens), usagePrice(c.Cost > 0, c.Cost), costShare(c.Cost, rep.Total.Cost), usageBarOf(c.Cost, most))
	}
	t.DropEmpty("calls", "tokens in all results", "")
	t.Shrink("cause", 20)
	if !t.Fits() {
		t.Drop("")
	}
	if !t.Fits() {
		t.Drop("tokens out")
	}
	t.Print()
	fmt.Fprintln(w)
	cmdline.PrintWrapped(w, usageWords(&rep.Total), cmdline.Width(w))
	cmdline.PrintWrapped(w, "The parts of a prompt are estimated from the text, and scaled to the size that was billed.", cmdline.Width(w))
	return nil
}

func nonzeroCount(n int) string {
	if n == 0 {
		return ""
	}
	return numbers.Thousands(n)
}

func costShare(part, whole float64) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*part/whole)
}

func printCausesCSV(w io.Writer, rep *tally.CauseReport) error {
	out := csv.NewWriter(w)
	err := out.Write([]string{"cause", "tool", "cost", "cost_output", "calls", "result_tokens", "prompt_tokens", "output_tokens"})
	for i := range rep.Groups {
		c := &rep.Groups[i]
		err = cmp.Or(err, out.Write([]string{c.Cause, plainCell(c.Tool), strconv.FormatFloat(c.Cost, 'f', -1, 64), strconv.FormatFloat(c.CostOutput, 'f', -1, 64),
			strconv.Itoa(c.Calls), strconv.Itoa(c.ResultTokens), strconv.Itoa(c.PromptTokens), strconv.Itoa(c.OutputTokens)}))
	}
	out.Flush()
	return cmp.Or(err, out.Error())
}
