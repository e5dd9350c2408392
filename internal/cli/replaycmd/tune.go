package replaycmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
)

// tuneFlags are the flags of furl replay --tune.
type tuneFlags struct {
	on    bool
	write bool
	// Percentages.
	identifiers, lines, blind, cost float64
}

func (f *tuneFlags) add(fl *pflag.FlagSet) {
	fl.BoolVar(&f.on, "tune", false, "choose the policy that fits these recordings best, among all presets and variants")
	fl.BoolVar(&f.write, "write", false, "with --tune: set the policy in the configuration file")
	fl.Float64Var(&f.identifiers, "keep-identifiers", 95, "recommend only policies that keep this `percentage` of the identifiers visible")
	fl.Float64Var(&f.lines, "keep-lines", 75, "recommend only policies that keep this `percentage` of the quoted lines visible")
	fl.Float64Var(&f.blind, "max-blind", 10, "recommend only policies with at most this `percentage` of blind edits: those that replace text which was no longer visible")
	fl.Float64Var(&f.cost, "spend", 0, "with --tune: keep as many lines visible as this `percentage` of the recorded cost allows")
}

// goal returns the goal that the flags set. Without one, it is that of a plain
// replay: a preset.
func (f *tuneFlags) goal(cmd *cobra.Command) (replay.Wish, error) {
	for _, name := range []string{"write", "spend"} {
		if cmd.Flags().Changed(name) && !f.on {
			return replay.Wish{}, cmdline.BadUsage("--%s requires --tune", name)
		}
	}
	for name, v := range map[string]float64{"keep-identifiers": f.identifiers, "keep-lines": f.lines, "max-blind": f.blind, "spend": f.cost} {
		if !(v >= 0 && v <= 100) { // NaN is not
			return replay.Wish{}, cmdline.BadUsage("invalid --%s %g: expected a percentage from 0 to 100", name, v)
		}
	}
	if cmd.Flags().Changed("spend") && f.cost == 0 {
		return replay.Wish{}, cmdline.BadUsage("invalid --spend 0: expected a percentage above 0")
	}
	// A zero in a Wish means its default, not a share of zero.
	const any = 1e-12
	return replay.Wish{Names: max(f.identifiers/100, any), Lines: max(f.lines/100, any), Blind: max(f.blind/100, any), Cost: f.cost / 100}, nil
}

// own reports whether a flag sets a goal.
func (f *tuneFlags) own(cmd *cobra.Command) bool {
	fl := cmd.Flags()
	return fl.Changed("keep-identifiers") || fl.Changed("keep-lines") || fl.Changed("max-blind") || fl.Changed("spend")
}

// tunable returns the policies that a tuning tries if none is named.
func (f *replayFlags) tunable(set *policy.Set) []string {
	if len(f.policies) > 0 || !f.tune.on {
		return f.policies
	}
	return set.Variants()
}

// printTuning prints the policies that no other beats, as a table and a plot,
// and the chosen one.
func printTuning(w io.Writer, t *replay.Tuning) {
	cols := cmdline.Width(w)
	fmt.Fprintln(w)
	cmdline.PrintWrapped(w, fmt.Sprintf("The best of %s: no other is cheaper and keeps as much visible.", numbers.Count(len(t.Settings), "tried setting")), cols)
	fmt.Fprintln(w)
	tab := cmdline.NewTable(w, cmdline.Text("setting"), cmdline.Number("% of\nrecorded"), cmdline.Number("identifiers\nstill visible"), cmdline.Number("quoted lines\nstill visible"), cmdline.Number("blind\nedits"), cmdline.Text(""))
	marks := frontMarks(t)
	for i := range t.Settings {
		s := &t.Settings[i]
		if !s.Front && s.Policy != t.Chosen {
			continue
		}
		chosen := ""
		if s.Policy == t.Chosen {
			chosen = "← chosen"
		}
		tab.Add(strings.TrimSpace(marks[s.Policy]+" "+replay.PolicyLabel(s.Policy)), percent(s.Cost), tenths(s.Names), tenths(s.Lines), tenths(s.Blind), chosen)
	}
	tab.Print()
	fmt.Fprintln(w)
	for _, l := range plot(t, marks, cols) {
		fmt.Fprintln(w, l)
	}
}

// frontMarks gives each setting that no other beats, and the chosen one, a letter,
// cheapest first.
func frontMarks(t *replay.Tuning) map[string]string {
	marks := make(map[string]string)
	for i := range t.Settings {
		if n := len(marks); (t.Settings[i].Front || t.Settings[i].Policy == t.Chosen) && n < 26 {
			marks[t.Settings[i].Policy] = string(rune('a' + n))
		}
	}
	return marks
}

// Size of the plot, in characters.
const (
	plotRows = 10
	plotCols = 60
)

// plot draws the settings: the cost grows to the right, the share of quoted
// lines still visible grows upwards. Settings with a mark are letters, others are
// dots.
func plot(t *replay.Tuning, marks map[string]string, cols int) []string {
	across := plotCols
	if cols > 0 {
		across = max(20, min(across, cols-8))
	}
	most, least := 1.0, 1.0
	for i := range t.Settings {
		most, least = max(most, t.Settings[i].Cost), min(least, t.Settings[i].Lines)
	}
	least = max(0, least-0.02)
	grid := make([][]rune, plotRows)
	for y := range grid {
		grid[y] = []rune(strings.Repeat(" ", across))
	}
	for _, front := range []bool{false, true} { // letters over dots
		for i := range t.Settings {
			s := &t.Settings[i]
			if (marks[s.Policy] != "") != front {
				continue
			}
			x := int(s.Cost / most * float64(across-1))
			y := int((1 - s.Lines) / (1 - least + 1e-9) * (plotRows - 1))
			mark := '·'
			if m := marks[s.Policy]; m != "" {
				mark = rune(m[0])
			}
			if mark != '·' && 'a' <= grid[y][x] && grid[y][x] <= 'z' { // next to the other letter
				x = min(x+1, across-1)
			}
			grid[y][x] = mark
		}
	}
	lines := []string{"quoted lines still visible"}
	for y := range grid {
		label := ""
		switch y {
		case 0:
			label = "100%"
		case plotRows - 1:
			label = percent(least)
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%5s │%s", label, string(grid[y])), " "))
	}
	end := percent(most) + " of the recorded cost"
	lines = append(lines, "      └"+strings.Repeat("─", across), "       0%"+strings.Repeat(" ", max(1, across-2-len(end)))+end)
	return lines
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

func tenths(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// writable returns an error if --write cannot change the configuration file.
func (f *replayFlags) writable() error {
	if !f.tune.write {
		return nil
	}
	_, _, err := config.Load(f.config, f.program.Policies)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // keep creates it
	}
	return err
}

// keep sets the chosen policy in the configuration file. variant is one that
// reaches the goal if no preset does.
func (f *replayFlags) keep(w io.Writer, t *replay.Tuning, variant string) error {
	switch {
	case t.Chosen != "":
	case variant != "":
		return fmt.Errorf("nothing was written: no preset reaches the goal; the variant %s does: choose it with --policy %s", variant, variant)
	default:
		return errors.New("nothing was written: no setting fits; change --keep-identifiers, --keep-lines, --max-blind or --spend")
	}
	file := f.config
	if file == "" {
		var err error
		if file, err = config.Path(); err != nil {
			return fmt.Errorf("find the configuration file: %w; name one with --config", err)
		}
	}
	if err := config.SetPolicy(file, t.Chosen, f.program.Policies); err != nil {
		return err
	}
	if !f.json {
		fmt.Fprintf(w, "Set policy: %s in %s\n", t.Chosen, visible.QuoteArg(file))
	}
	return nil
}

// betterVariant returns the policy that would be chosen among all settings, if it is
// not the chosen one.
func betterVariant(rep *replay.Report) string {
	all := rep.Tuning.Wish
	all.Among = nil
	if i, fits := replay.Recommend(rep.Totals, rep.Tuning.Window, all); fits && rep.Totals[i].Policy != rep.Tuning.Chosen {
		return rep.Totals[i].Policy
	}
	return ""
}
