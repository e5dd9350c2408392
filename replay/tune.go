package replay

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Wish says how much fidelity against how much money a tuning is to choose.
// The zero value asks for the cheapest setting that keeps 95 of 100 names and
// 75 of 100 quoted lines.
type Wish struct {
	// Names and Lines are the least shares that are to be kept. If zero,
	// 0.95 and 0.75.
	Names float64 `json:"names"`
	Lines float64 `json:"lines"`
	// Cost, if not zero, is the most that may be spent, as a share of what
	// sending everything costs. Names and Lines then only break ties: chosen
	// is what keeps most lines, of those the most names.
	Cost float64 `json:"cost,omitempty"`
}

// complete fills in the defaults.
func (w Wish) complete() Wish {
	w.Names, w.Lines = cmp.Or(w.Names, 0.95), cmp.Or(w.Lines, 0.75)
	return w
}

// Tuning is what a replay says about which setting to take.
type Tuning struct {
	Wish   Wish `json:"wish"`
	Window int  `json:"window"` // in tokens; 0: each model's own
	// Settings are all that were tried, cheapest first, but those whose cost
	// is not known or that made requests the provider would not take.
	Settings []Setting `json:"settings"`
	// Chosen is the policy that fits the wish best, "" if none does.
	Chosen string `json:"chosen"`
	// Sure is in how many of Resamples draws of the recordings, with
	// replacement, the same one is chosen. Both are 0 for less than two
	// recordings.
	Sure      int `json:"sure"`
	Resamples int `json:"resamples"`
}

// String says what was chosen, why, and how sure that is.
func (t *Tuning) String() string {
	wish := fmt.Sprintf("the cheapest setting that keeps %s of the names and %s of the quoted lines", percent(t.Wish.Names), percent(t.Wish.Lines))
	if t.Wish.Cost > 0 {
		wish = fmt.Sprintf("what keeps most lines for at most %s of the input cost", percent(t.Wish.Cost))
	}
	i := slices.IndexFunc(t.Settings, func(s Setting) bool { return s.Policy == t.Chosen })
	if i < 0 {
		return "No setting fits: nothing here is " + wish + "."
	}
	text := fmt.Sprintf("%s: %s, at %s of the cost of sending everything.", strings.ToUpper(wish[:1])+wish[1:], t.Chosen, percent(t.Settings[i].Cost))
	switch {
	case t.Resamples == 0:
		return text + " One recording says little; give more."
	case t.Sure*10 >= t.Resamples*9:
		return text + fmt.Sprintf(" It would be chosen in %d of %d draws of these recordings.", t.Sure, t.Resamples)
	}
	return text + fmt.Sprintf(" It would be chosen in only %d of %d draws of these recordings, so others do about as well.", t.Sure, t.Resamples)
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// Setting is what a policy costs and keeps, as shares of what sending
// everything does; nothing that could have been lost counts as all kept.
type Setting struct {
	Policy string  `json:"policy"`
	Cost   float64 `json:"cost"`
	Names  float64 `json:"names"`
	Lines  float64 `json:"lines"`
	// Front says that no other is at least as good in everything and better
	// in something.
	Front bool `json:"front"`
}

// resamples is how many draws say how sure a choice is.
const resamples = 200

// Tune chooses among the policies of a report, at its first window.
func Tune(rep *Report, wish Wish) *Tuning {
	t := &Tuning{Wish: wish.complete()}
	if len(rep.Totals) == 0 {
		return t
	}
	t.Window = rep.Totals[0].Window
	table := outcomes(rep, t.Window)
	all := make([]int, len(table))
	for i := range all {
		all[i] = i
	}
	t.Settings = settings(table, all)
	markFront(t.Settings)
	if i := t.Wish.choose(t.Settings); i >= 0 {
		t.Chosen = t.Settings[i].Policy
	}
	if len(table) < 2 || t.Chosen == "" {
		return t
	}
	t.Resamples = resamples
	rng := rand.New(rand.NewPCG(1, 2)) // the same each time
	draw := make([]int, len(table))
	for range resamples {
		for i := range draw {
			draw[i] = rng.IntN(len(table))
		}
		list := settings(table, draw)
		if i := t.Wish.choose(list); i >= 0 && list[i].Policy == t.Chosen {
			t.Sure++
		}
	}
	return t
}

// tally is what one policy did on one recording, or on several.
type tally struct {
	policy              string
	dollars, none       float64
	tokens, noneTokens  int
	names, namesKept    int
	lines, linesKept    int
	overflows, refusals int
}

func (t *tally) add(o *tally) {
	t.policy = o.policy
	t.dollars, t.none = t.dollars+o.dollars, t.none+o.none
	t.tokens, t.noneTokens = t.tokens+o.tokens, t.noneTokens+o.noneTokens
	t.names, t.namesKept = t.names+o.names, t.namesKept+o.namesKept
	t.lines, t.linesKept = t.lines+o.lines, t.linesKept+o.linesKept
	t.overflows, t.refusals = t.overflows+o.overflows, t.refusals+o.refusals
}

// outcomes are the tallies of each recording at a window, by policy.
func outcomes(rep *Report, window int) [][]tally {
	table := make([][]tally, len(rep.Recordings))
	for i := range rep.Recordings {
		for j := range rep.Recordings[i].Results {
			r := &rep.Recordings[i].Results[j]
			if r.Window != window {
				continue
			}
			table[i] = append(table[i], tally{
				policy: r.Policy, dollars: r.dollars, none: r.noneDollars, tokens: r.tokens, noneTokens: r.noneTokens,
				names: r.References, namesKept: r.ReferencesKept, lines: r.QuotedLines, linesKept: r.QuotedLinesKept,
				overflows: r.Overflows, refusals: r.InvalidRequests,
			})
		}
	}
	return table
}

// settings sums the recordings drawn, cheapest policy first.
func settings(table [][]tally, draw []int) []Setting {
	var sums []tally
	for _, i := range draw {
		if sums == nil {
			sums = make([]tally, len(table[i]))
		}
		for j := range table[i] {
			sums[j].add(&table[i][j])
		}
	}
	var list []Setting
	for i := range sums {
		t := &sums[i]
		s := Setting{Policy: t.policy, Names: shareKept(t.namesKept, t.names), Lines: shareKept(t.linesKept, t.lines)}
		switch {
		case t.refusals > 0 || t.overflows > 0 && t.policy != none:
			continue
		case t.none > 0:
			s.Cost = t.dollars / t.none
		case t.noneTokens > 0:
			s.Cost = float64(t.tokens) / float64(t.noneTokens)
		default:
			continue
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(b.Lines, a.Lines), cmp.Compare(b.Names, a.Names))
	})
	return list
}

func shareKept(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// markFront marks the settings that no other beats. They are sorted by cost.
func markFront(list []Setting) {
	for i := range list {
		s := &list[i]
		s.Front = !slices.ContainsFunc(list[:i], func(o Setting) bool { return o.Names >= s.Names && o.Lines >= s.Lines })
	}
}

// choose gives the index of the setting that fits best, -1 if none does.
// Sending everything is never chosen: it is what there is without a choice.
func (w Wish) choose(list []Setting) int {
	found := -1
	for i := range list {
		s := &list[i]
		switch {
		case s.Policy == none || s.Cost >= 1:
		case w.Cost > 0:
			if s.Cost <= w.Cost && (found < 0 || s.Lines > list[found].Lines || s.Lines == list[found].Lines && s.Names > list[found].Names) {
				found = i
			}
		case atLeast(s.Names, w.Names) && atLeast(s.Lines, w.Lines):
			return i // the cheapest
		}
	}
	return found
}

// atLeast compares shares, up to rounding.
func atLeast(share, least float64) bool { return share > least || math.Abs(share-least) < 1e-9 }
