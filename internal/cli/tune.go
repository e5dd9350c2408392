package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
)

// tuneFlags say what furl replay --tune is to choose, and where to write it.
type tuneFlags struct {
	on    bool
	write bool
	names float64
	lines float64
	cost  float64
}

func (f *tuneFlags) add(fl *pflag.FlagSet) {
	fl.BoolVar(&f.on, "tune", false, "find the setting that fits these recordings best, among all presets and auto at each level")
	fl.BoolVar(&f.write, "write", false, "with --tune: write the setting into the configuration file")
	fl.Float64Var(&f.names, "keep-names", 95, "with --tune: least `percentage` of names kept")
	fl.Float64Var(&f.lines, "keep-lines", 75, "with --tune: least `percentage` of quoted lines kept")
	fl.Float64Var(&f.cost, "spend", 0, "with --tune: at most this `percentage` of the input cost of sending everything, and the most kept for it")
}

// wish is what the flags ask for.
func (f *tuneFlags) wish(cmd *cobra.Command) (replay.Wish, error) {
	for _, name := range []string{"write", "keep-names", "keep-lines", "spend"} {
		if cmd.Flags().Changed(name) && !f.on {
			return replay.Wish{}, badUsage("--%s goes with --tune", name)
		}
	}
	for name, v := range map[string]float64{"keep-names": f.names, "keep-lines": f.lines, "spend": f.cost} {
		if !(v >= 0 && v <= 100) { // NaN is not
			return replay.Wish{}, badUsage("--%s %g: a percentage from 0 to 100 is expected", name, v)
		}
	}
	if cmd.Flags().Changed("spend") && f.cost == 0 {
		return replay.Wish{}, badUsage("--spend 0: nothing costs nothing")
	}
	// Zero is the default of a Wish, and stays distinct from the least share.
	const any = 1e-12
	return replay.Wish{Names: max(f.names/100, any), Lines: max(f.lines/100, any), Cost: f.cost / 100}, nil
}

// tunable returns the policies that a tuning tries if none is named.
func (f *replayFlags) tunable(set *policy.Set) []string {
	if len(f.policies) > 0 || !f.tune.on {
		return f.policies
	}
	return set.Variants()
}

// printTuning prints the line of cost against what is kept, and the choice.
func printTuning(w io.Writer, t *replay.Tuning) {
	cols := width(w)
	fmt.Fprintln(w)
	printWrapped(w, fmt.Sprintf("Nothing else among the %d settings tried is cheaper than one of these and keeps as much:", len(t.Settings)), cols)
	fmt.Fprintln(w)
	tab := newTable(w, text("setting"), number("of none"), number("names kept"), number("lines kept"), text(""))
	marks := frontMarks(t)
	for i := range t.Settings {
		s := &t.Settings[i]
		if !s.Front {
			continue
		}
		chosen := ""
		if s.Policy == t.Chosen {
			chosen = "← chosen"
		}
		tab.add(strings.TrimSpace(marks[s.Policy]+" "+s.Policy), percent(s.Cost), tenths(s.Names), tenths(s.Lines), chosen)
	}
	tab.print()
	fmt.Fprintln(w)
	for _, l := range plot(t, marks, cols) {
		fmt.Fprintln(w, l)
	}
	fmt.Fprintln(w)
	printWrapped(w, t.String(), cols)
}

// frontMarks gives each setting on the line a letter, cheapest first.
func frontMarks(t *replay.Tuning) map[string]string {
	marks := make(map[string]string)
	for i := range t.Settings {
		if n := len(marks); t.Settings[i].Front && n < 26 {
			marks[t.Settings[i].Policy] = string(rune('a' + n))
		}
	}
	return marks
}

// Measures of the picture, in characters.
const (
	plotRows = 10
	plotCols = 60
)

// plot draws the settings by cost, to the right, and by quoted lines kept,
// upwards: those on the line by their letters, others as dots.
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
			if s.Front != front {
				continue
			}
			x := int(s.Cost / most * float64(across-1))
			y := int((1 - s.Lines) / (1 - least + 1e-9) * (plotRows - 1))
			mark := '·'
			if m := marks[s.Policy]; m != "" {
				mark = rune(m[0])
			}
			if mark != '·' && 'a' <= grid[y][x] && grid[y][x] <= 'z' { // beside the other
				x = min(x+1, across-1)
			}
			grid[y][x] = mark
		}
	}
	lines := []string{"lines kept"}
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
	end := percent(most) + " of none"
	lines = append(lines, "      └"+strings.Repeat("─", across), "       0%"+strings.Repeat(" ", max(1, across-2-len(end)))+end)
	return lines
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

func tenths(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// writable reports whether the file that is to be written can be read.
func (f *replayFlags) writable() error {
	if !f.tune.write {
		return nil
	}
	_, _, err := config.Load(f.config, f.program.policies)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it will be made
	}
	return err
}

// keep writes the chosen setting into the configuration, or says how to.
func (f *replayFlags) keep(w io.Writer, t *replay.Tuning) error {
	if t.Chosen == "" {
		if f.tune.write {
			return fmt.Errorf("nothing was written: no setting fits; --keep-names, --keep-lines and --spend say what is asked for")
		}
		return nil
	}
	file := f.config
	if file == "" {
		var err error
		if file, err = config.Path(); err != nil {
			return fmt.Errorf("find the configuration: %w; --config names a file", err)
		}
	}
	if !f.tune.write {
		if !f.json {
			fmt.Fprintf(w, "To use it, put this into %s, or add --write:\n\n    policy: %s\n", quoteArg(file), t.Chosen)
		}
		return nil
	}
	if err := config.SetPolicy(file, t.Chosen, f.program.policies); err != nil {
		return err
	}
	if !f.json {
		fmt.Fprintf(w, "Wrote policy: %s to %s\n", t.Chosen, quoteArg(file))
	}
	return nil
}
