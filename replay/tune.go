package replay

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Wish is the goal of a tuning. The zero value asks for the cheapest setting that
// keeps 95% of the identifiers and 75% of the quoted lines visible.
type Wish struct {
	// Names and Lines are the least shares of identifiers and quoted lines
	// that stay visible. If zero, 0.95 and 0.75.
	Names float64 `json:"names"`
	Lines float64 `json:"lines"`
	// Cost, if not zero, is the highest input cost, as a share of that as
	// recorded. Names and Lines are then ignored: the tuning chooses the
	// setting that keeps the most quoted lines visible, then the most
	// identifiers.
	Cost float64 `json:"cost,omitempty"`
}

// complete fills in the defaults.
func (w Wish) complete() Wish {
	w.Names, w.Lines = cmp.Or(w.Names, 0.95), cmp.Or(w.Lines, 0.75)
	return w
}

// Tuning is the setting that a replay recommends.
type Tuning struct {
	Wish   Wish `json:"wish"`
	Window int  `json:"window,omitempty"` // in tokens; 0: each model's own
	// Settings are those that were tried, cheapest first. Settings without a
	// known cost or with invalid requests are left out.
	Settings []Setting `json:"settings"`
	// Chosen is the policy that fits the wish best, "" if none does.
	Chosen string `json:"chosen"`
	// Sure is in how many of Resamples random samples of the recordings, with
	// replacement, the same policy is chosen. Both are 0 for fewer than two
	// recordings.
	Sure      int `json:"sure"`
	Resamples int `json:"resamples"`
}

// String returns a few sentences: the chosen policy, the goal, and how reliable
// the choice is.
func (t *Tuning) String() string {
	wish := fmt.Sprintf("keeps %s of the identifiers and %s of the quoted lines visible", percent(t.Wish.Names), percent(t.Wish.Lines))
	best := "Cheapest setting that " + wish
	if t.Wish.Cost > 0 {
		wish = fmt.Sprintf("costs at most %s of the input cost as recorded", percent(t.Wish.Cost))
		best = "Setting that " + wish + " and keeps the most quoted lines visible"
	}
	i := slices.IndexFunc(t.Settings, func(s Setting) bool { return s.Policy == t.Chosen })
	if i < 0 {
		return "No setting is cheaper than as recorded and " + wish + "."
	}
	text := fmt.Sprintf("%s: %s, %s of the input cost.", best, t.Chosen, percent(t.Settings[i].Cost))
	switch {
	case t.Resamples == 0:
		return text + " One recording is too few for a reliable choice; add more."
	case t.Sure*10 >= t.Resamples*9:
		return text + fmt.Sprintf(" %d of %d random samples of these recordings choose it too.", t.Sure, t.Resamples)
	}
	return text + fmt.Sprintf(" Only %d of %d random samples of these recordings choose it too: other settings do about as well.", t.Sure, t.Resamples)
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// Setting is the outcome of one policy.
type Setting struct {
	Policy string `json:"policy"`
	// Cost is the input cost as a share of that as recorded.
	Cost float64 `json:"cost"`
	// Names and Lines are the shares of identifiers and quoted lines that were
	// still visible, 1 if there were none.
	Names float64 `json:"names"`
	Lines float64 `json:"lines"`
	// Front says that no other setting is at least as good in all three and
	// better in one.
	Front bool `json:"front"`
}

// resamples is the number of random samples that test a choice.
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
	rng := rand.New(rand.NewPCG(1, 2)) // a fixed seed, for the same result each time
	sample := make([]int, len(table))
	for range resamples {
		for i := range sample {
			sample[i] = rng.IntN(len(table))
		}
		list := settings(table, sample)
		if i := t.Wish.choose(list); i >= 0 && list[i].Policy == t.Chosen {
			t.Sure++
		}
	}
	return t
}

// tally sums what one policy did on one or more recordings.
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

// outcomes returns a tally for each recording and policy at a window.
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

// settings returns the settings on a sample of the recordings, cheapest first.
func settings(table [][]tally, sample []int) []Setting {
	var sums []tally
	for _, i := range sample {
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

// markFront marks the settings that no other beats. The list is sorted by cost.
func markFront(list []Setting) {
	for i := range list {
		s := &list[i]
		s.Front = !slices.ContainsFunc(list[:i], func(o Setting) bool { return o.Names >= s.Names && o.Lines >= s.Lines })
	}
}

// choose returns the index of the setting that fits best, or -1. It never
// chooses none or a setting that costs as much.
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

// atLeast compares shares with a tolerance for rounding.
func atLeast(share, least float64) bool { return share > least || math.Abs(share-least) < 1e-9 }
