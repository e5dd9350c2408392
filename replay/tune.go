package replay

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Wish is the goal of a tuning. The zero value asks for the cheapest setting that
// keeps 95% of the identifiers and 75% of the quoted lines visible and makes at most 10% of
// the edits blind.
type Wish struct {
	// Names and Lines are the least shares of identifiers and quoted lines
	// that stay visible. If zero, 0.95 and 0.75.
	Names float64 `json:"names"`
	Lines float64 `json:"lines"`
	// Blind is the largest share of blind edits. If zero, 0.10.
	Blind float64 `json:"blind"`
	// Cost, if not zero, is the highest cost, as a share of that as recorded.
	// The other limits are then ignored: the tuning chooses the setting that
	// keeps the most quoted lines visible, then the most identifiers.
	Cost float64 `json:"cost,omitempty"`
	// Among, if not empty, lists the policies to choose from. The others are
	// only compared.
	Among []string `json:"-"`
}

// complete fills in the defaults.
func (w Wish) complete() Wish {
	w.Names, w.Lines, w.Blind = cmp.Or(w.Names, 0.95), cmp.Or(w.Lines, 0.75), cmp.Or(w.Blind, 0.10)
	return w
}

// String describes the goal as the end of a sentence: "keeps 95% of …".
func (w Wish) String() string {
	w = w.complete()
	if w.Cost > 0 {
		return fmt.Sprintf("costs at most %s of the cost as recorded", percent(w.Cost))
	}
	return fmt.Sprintf("keeps %s of the identifiers and %s of the quoted lines visible, with at most %s of the edits blind", percent(w.Names), percent(w.Lines), percent(w.Blind))
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
	// HeldOut is what the choice is worth on other projects. It is nil for recordings of fewer
	// than three projects.
	HeldOut *HeldOut `json:"held_out,omitempty"`
}

// String returns a few sentences: the chosen policy, the goal, how reliable
// the choice is, and what it is worth on other projects.
func (t *Tuning) String() string {
	i := t.find(t.Chosen)
	if i < 0 {
		return fmt.Sprintf("No policy that costs less than as recorded %s.", t.Wish)
	}
	best := "Cheapest policy that " + t.Wish.String()
	if t.Wish.Cost > 0 {
		best = "Policy that keeps the most quoted lines visible and " + t.Wish.String()
	}
	text := fmt.Sprintf("%s: %s, %s of the cost as recorded", best, t.Chosen, percent(t.Settings[i].Cost))
	if n := t.find(none); n >= 0 && t.Settings[n].unsent > 0 { // a request that does not fit has no price to compare with
		text = fmt.Sprintf("%s: %s", best, t.Chosen)
	}
	text += " (chosen and measured on the same recordings)."
	switch {
	case t.Resamples == 0:
		text += " One recording is too few for a reliable choice; add more."
	case t.Sure*10 >= t.Resamples*9:
		text += fmt.Sprintf(" %d of %d random samples of these recordings choose it too.", t.Sure, t.Resamples)
	default:
		text += fmt.Sprintf(" Only %d of %d random samples of these recordings choose it too: other settings do about as well.", t.Sure, t.Resamples)
	}
	if t.HeldOut != nil {
		text += " " + t.HeldOut.String()
	}
	return text
}

func (t *Tuning) find(policy string) int {
	return slices.IndexFunc(t.Settings, func(s Setting) bool { return s.Policy == policy })
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// Outcome is what one policy costs and keeps.
type Outcome struct {
	// Cost is the cost of all requests as a share of that as recorded
	// (Result.CostShare).
	Cost float64 `json:"cost"`
	// Names and Lines are the shares of identifiers and quoted lines that were
	// still visible, 1 if there were none.
	Names float64 `json:"names"`
	Lines float64 `json:"lines"`
	// Blind is the share of blind edits, 0 if there were no edits.
	Blind float64 `json:"blind"`
}

// Setting is the outcome of one policy.
type Setting struct {
	Policy string `json:"policy"`
	Outcome
	// Front says that no other setting is at least as good in all four and
	// better in one.
	Front bool `json:"front"`

	unsent int // requests over the window
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
	t.Chosen = t.Wish.choose(t.Settings)
	t.HeldOut = t.Wish.holdOut(rep.Recordings, table)
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
		if t.Wish.choose(settings(table, sample)) == t.Chosen {
			t.Sure++
		}
	}
	return t
}

// tally sums what one policy did on one or more recordings.
type tally struct {
	policy              string
	all, none           bought
	names, namesKept    int
	lines, linesKept    int
	edits, blind        int
	overflows, refusals int
	impossible          int
}

func (t *tally) add(o *tally) {
	t.policy = o.policy
	t.all.add(o.all)
	t.none.add(o.none)
	t.names, t.namesKept = t.names+o.names, t.namesKept+o.namesKept
	t.lines, t.linesKept = t.lines+o.lines, t.linesKept+o.linesKept
	t.edits, t.blind = t.edits+o.edits, t.blind+o.blind
	t.overflows, t.refusals = t.overflows+o.overflows, t.refusals+o.refusals
	t.impossible += o.impossible
}

// outcome returns the shares. ok is false if nothing was sent.
func (t *tally) outcome() (out Outcome, ok bool) {
	cost := t.all.share(t.none)
	if cost == nil {
		return out, false
	}
	return Outcome{
		Cost: *cost, Names: shareKept(t.namesKept, t.names), Lines: shareKept(t.linesKept, t.lines),
		Blind: 1 - shareKept(t.edits-t.blind, t.edits),
	}, true
}

// outcomes returns a tally for each recording and policy at a window.
func outcomes(rep *Report, window int) [][]tally {
	table := make([][]tally, len(rep.Recordings))
	for i := range rep.Recordings {
		table[i] = tallies(rep.Recordings[i].Results, window)
	}
	return table
}

// tallies returns the results at a window as tallies.
func tallies(results []Result, window int) []tally {
	var out []tally
	for i := range results {
		r := &results[i]
		if r.Window != window {
			continue
		}
		out = append(out, tally{
			policy: r.Policy, all: r.all, none: r.noneAll,
			names: r.References, namesKept: r.ReferencesKept, lines: r.QuotedLines, linesKept: r.QuotedLinesKept,
			edits: r.Edits, blind: r.BlindEdits,
			overflows: r.Overflows, refusals: r.InvalidRequests, impossible: r.Impossible,
		})
	}
	return out
}

// sum returns the tally of each policy on a sample of the recordings.
func sum(table [][]tally, sample []int) []tally {
	var sums []tally
	for _, i := range sample {
		if sums == nil {
			sums = make([]tally, len(table[i]))
		}
		for j := range table[i] {
			sums[j].add(&table[i][j])
		}
	}
	return sums
}

// settings returns the settings on a sample of the recordings, cheapest first.
func settings(table [][]tally, sample []int) []Setting {
	sums := sum(table, sample)
	var list []Setting
	for i := range sums {
		t := &sums[i]
		out, ok := t.outcome()
		if !ok || t.refusals > 0 || t.overflows > 0 && t.policy != none {
			continue
		}
		list = append(list, Setting{Policy: t.policy, Outcome: out, unsent: t.overflows + t.impossible})
	}
	sortByCost(list)
	return list
}

func sortByCost(list []Setting) {
	slices.SortStableFunc(list, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(b.Lines, a.Lines), cmp.Compare(b.Names, a.Names))
	})
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
		s.Front = !slices.ContainsFunc(list[:i], func(o Setting) bool { return o.Names >= s.Names && o.Lines >= s.Lines && o.Blind <= s.Blind })
	}
}

// rounding is the share of the cost below which a policy is worth using: what
// is cheaper by less than half a percent costs as much.
const rounding = 0.995

// choices returns the settings that can be recommended: not none, cheaper than as
// recorded, or sending more requests that fit the window.
func (w Wish) choices(list []Setting) []*Setting {
	unsent := 0
	for i := range list {
		if list[i].Policy == none {
			unsent = list[i].unsent
		}
	}
	var out []*Setting
	for i := range list {
		s := &list[i]
		if s.Policy != none && (s.Cost < rounding || s.unsent < unsent) && (len(w.Among) == 0 || slices.Contains(w.Among, s.Policy)) {
			out = append(out, s)
		}
	}
	return out
}

// holds reports whether an outcome is within the limits.
func (w Wish) holds(o *Outcome) bool {
	if w.Cost > 0 {
		return o.Cost <= w.Cost
	}
	return atLeast(o.Names, w.Names) && atLeast(o.Lines, w.Lines) && atLeast(w.Blind, o.Blind)
}

// choose returns the policy that fits the wish best, "" if none does. The list is
// sorted by cost.
func (w Wish) choose(list []Setting) string {
	var found *Setting
	for _, s := range w.choices(list) {
		switch {
		case !w.holds(&s.Outcome):
		case w.Cost == 0:
			return s.Policy // the cheapest
		case found == nil || s.Lines > found.Lines || s.Lines == found.Lines && s.Names > found.Names:
			found = s
		}
	}
	if found == nil {
		return ""
	}
	return found.Policy
}

// closest returns the policy that comes closest to the wish: the one with the fewest blind edits,
// or the cheapest if the wish is a cost; "" if there is none to choose from.
func (w Wish) closest(list []Setting) string {
	choices := w.choices(list)
	if len(choices) == 0 {
		return ""
	}
	return slices.MinFunc(choices, func(a, b *Setting) int {
		if w.Cost > 0 {
			return cmp.Compare(a.Cost, b.Cost)
		}
		return cmp.Or(cmp.Compare(a.Blind, b.Blind), cmp.Compare(w.missing(a), w.missing(b)))
	}).Policy
}

// missing is how far a setting is below the limits of identifiers and quoted lines.
func (w Wish) missing(s *Setting) float64 {
	return max(0, w.Names-s.Names) + max(0, w.Lines-s.Lines)
}

// Recommend returns the index of the result at a window that fits the wish best. If
// none fits, it returns the one with the fewest blind edits and false, with index -1 if there
// is none to choose from. That one is not recommended.
func Recommend(results []Result, window int, wish Wish) (index int, fits bool) {
	wish = wish.complete()
	var list []Setting
	eligible := func(r Result) bool {
		return r.Window == window && r.CostShare != nil && *r.CostShare >= 0 && *r.CostShare <= math.MaxFloat64 && r.InvalidRequests == 0 && (r.Overflows == 0 || r.Policy == none)
	}
	for i := range results {
		if r := &results[i]; eligible(*r) {
			list = append(list, Setting{
				Policy: r.Policy, unsent: r.Unsent(), Outcome: Outcome{
					Cost: *r.CostShare, Names: shareKept(r.ReferencesKept, r.References), Lines: shareKept(r.QuotedLinesKept, r.QuotedLines),
					Blind: 1 - shareKept(r.Edits-r.BlindEdits, r.Edits),
				},
			})
		}
	}
	sortByCost(list)
	policy := wish.choose(list)
	fits = policy != ""
	if !fits {
		policy = wish.closest(list)
	}
	if policy == "" {
		return -1, false
	}
	return slices.IndexFunc(results, func(r Result) bool { return r.Policy == policy && eligible(r) }), fits
}

// atLeast compares shares with a tolerance for rounding.
func atLeast(share, least float64) bool { return share > least || math.Abs(share-least) < 1e-9 }
