package policy

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
)

// dial is a position between fidelity and money. docs/internals/cost-model.md has what
// each was measured to cost and to keep, and for each number what it was chosen by and what
// half and twice as much do ("How much each number matters"). The comments below give the
// extremes of that for auto, which costs 0.528 of doing nothing there. Ages are in newer requests of which the results
// are in the view; several calls at once have one age.
type dial struct {
	// keep is the age up to which every result stays, and inputs the age from
	// which a call's input may go, if inputs may go at all. keep 0: cost -0.003;
	// 2: +0.005. inputs: no effect unless they may go.
	keep, inputs int
	// reads is the age up to which the newest read of a file stays, and active
	// the same if a recent call had to do with that file. Both hold only since
	// the user's last words: a new task seldom edits what the last one read. reads:
	// cost -0.007 to +0.006, lines -0.011 to +0.004. active: no effect.
	reads, active int
	// unedited is the age up to which the newest read of a file stays while the
	// session has no edits: an agent explores before it edits. paused is the same
	// while no file was edited since the read, but some were before, and asked if
	// the user has spoken since the read. unedited: lines -0.046 to +0.027, cost
	// +0.003 at most. paused: half loses 0.036 of the lines. asked: cost -0.005 to +0.007.
	unedited, paused, asked int
	// edited is the age up to which the newest text of a file stays that the agent
	// edits or keeps coming back to, if a tool returned it, whatever the user said
	// since. written is the age up to which the step stays in which the agent wrote
	// the newest text of a file, and worked the same if the user has spoken since
	// and the agent still works on that file. edited: cost -0.008 to +0.006, half loses
	// 0.012 of the lines. written: half costs 0.007 less and makes more blind edits.
	// worked: +0.003 at most.
	edited, written, worked int
	// editedCold is edited, and readsCold the age for the newest reads of all other
	// files and after new words of the user, if the cache has expired, when a
	// rewrite is free. Of all other results only the newest stay then. editedCold: +0.001
	// at most. readsCold: twice costs 0.004 more for 0.012 of the lines.
	editedCold, readsCold int
	// names is the most that the names in one placeholder may take, in counted
	// tokens, share the most as a share of what is hidden, and worth the
	// least that a name must be worth, see worthOf. names: half costs 0.007 less.
	// share: twice costs 0.008 more. worth: cost ±0.002, identifiers ±0.002.
	names int
	share float64
	worth float64
	// fold is the age from which a step may be in one line, foldCold the same
	// when the cache has expired. foldShare is the most that names take there, as
	// a share of what is visible of the steps, foldWorth the least that such a
	// name must be worth. said is how much of what was said in such a step stays,
	// in characters, and replied the same for a reply without calls. fold is at a
	// minimum: half and twice cost 0.008 more and lose 0.015 of the lines. foldCold: no effect. foldShare:
	// cost -0.004 to +0.019. foldWorth: cost ±0.004, identifiers +0.008 to -0.011.
	// said: ±0.002. replied: cost -0.003 to +0.007.
	fold, foldCold       int
	foldShare, foldWorth float64
	said, replied        int
	// listed is the age from which such a list is shortened to names that are worth
	// listWorth, in at most listShare of its size. listed: half costs 0.009 less and
	// loses 0.009 of the identifiers. listShare: twice costs 0.006 more. listWorth: +0.001 at most.
	listed               int
	listShare, listWorth float64
	// clip is the size beyond which a result is cut to head and tail before
	// it is first sent, in the provider's tokens. Half costs 0.005 less. It was not
	// chosen by a search: a model makes little use of more (beyondUse).
	clip int
}

// The positions.
var (
	frugal = dial{keep: 1, inputs: 3, reads: 6, active: 10, unedited: 6, paused: 4, asked: 3, edited: 6, written: 4, worked: 4,
		editedCold: 2, readsCold: 1, names: 200, share: 0.15, worth: 0.15,
		fold: 3, foldShare: 0.2, foldWorth: 0.09, said: 40, replied: 200, listed: 60, listShare: 0.25, listWorth: 0.15, clip: 3_000}
	balanced = dial{keep: 1, inputs: 3, reads: 14, active: 24, unedited: 20, paused: 7, asked: 4, edited: 10, written: 32, worked: 10,
		editedCold: 6, readsCold: 2, names: 800, share: 0.25, worth: 0.06,
		fold: 8, foldShare: 0.3, foldWorth: 0.06, said: 120, replied: 800, listed: 60, listShare: 0.3, listWorth: 0.08, clip: beyondUse}
	faithful = dial{keep: 1, inputs: 10, reads: 18, active: 28, unedited: 40, paused: 12, asked: 8, edited: 20, written: 40, worked: 20,
		editedCold: 10, readsCold: 4, names: 800, share: 0.25, worth: 0.05,
		fold: 15, foldCold: 4, foldShare: 0.3, foldWorth: 0.055, said: 400, replied: 1200, listed: 80, listShare: 0.4, listWorth: 0.06, clip: beyondUse}
)

// auto hides what the model is unlikely to need again, when that pays: results,
// old thinking, inputs of old calls if that is wanted, and later whole steps, by a
// marker, from the position on from which most is saved. What it hides leaves a
// placeholder with the names in it. It is a pure function of the view and the
// budget. What it showed in place it touches once more at most, when the step
// is replaced by a marker or carries the list of those that do. A marker stays as it
// is; its list is shortened once, when it is old.
type auto struct {
	dial dial
	// onlyResults says that nothing but results is hidden: no old thinking, and no
	// steps as a whole.
	onlyResults bool
	// inputs says that long texts in the inputs of old calls are shortened.
	inputs bool
}

// Name is "auto".
func (*auto) Name() string { return stageAuto }

const stageAuto = "auto"

// Reduce hides all candidates from one position on, or says why not.
func (a *auto) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	e := economyOf(v, b)
	picked, err := a.plan(v, b, e)
	if err != nil {
		return nil, err
	}
	a.pickCarrier(picked, b.Model)
	w := a.texts(v, b, picked)
	red := &furl.Reduction{Stage: a.Name()}
	var sum tally
	folded := false
	for i := len(picked) - 1; i >= 0; i-- { // they were found from the newest back
		c := &picked[i]
		if c.kind == aStep {
			if folded {
				continue
			}
			folded = true
			steps := stepsOf(picked)
			if items, freed := w.fold(steps); freed >= minFreed {
				sum.fold(steps, b.Of(freed, 0))
				red.Items = append(red.Items, items...)
			}
			continue
		}
		show, shown, ok := w.show(c)
		if !ok {
			continue
		}
		sum.add(c, 1, b.Of(c.block.Tokens-shown, 0))
		red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: c.block.Pos, Last: c.block.Pos}}, Show: show})
	}
	if len(red.Items) == 0 {
		return nil, Nothing
	}
	first := red.Items[0].Spans[0].First.Msg
	for i := range red.Items { // the step that carries a list may be older than what it lists
		first = min(first, red.Items[i].Spans[0].First.Msg)
	}
	red.Reason = fmt.Sprintf("hid %s (%s) from record %d on: %s",
		sum, tokens(sum.tokens), first, e.words(b, b.Of(tokensFrom(v, first), 0)-sum.tokens, sum.tokens))
	red.Cost.Remaining = e.remaining
	return red, nil
}

// stepsOf gives the steps among the candidates.
func stepsOf(picked []candidate) []*candidate {
	var steps []*candidate
	for i := range picked {
		if picked[i].kind == aStep {
			steps = append(steps, &picked[i])
		}
	}
	return steps
}

// tokensFrom is how many counted tokens of a view are in a message and
// after it.
func tokensFrom(v *furl.View, seq furl.Seq) int {
	n := 0
	for i := len(v.Messages) - 1; i >= 0; i-- {
		sh := &v.Messages[i]
		for j := range sh.Blocks {
			n += sh.Blocks[j].Tokens
		}
		if sh.Seq == seq {
			break
		}
	}
	return n
}

// tally counts what a reduction hides.
type tally struct {
	kinds  [5]int
	tokens int // freed, the provider's
}

func (t *tally) add(c *candidate, n, freed int) {
	t.kinds[c.kind] += n
	t.tokens += freed
}

// fold counts steps; of the one that carries the list the result is hidden.
func (t *tally) fold(steps []*candidate, freed int) {
	for i := range steps {
		if steps[i].carries {
			t.kinds[aResult]++
		} else {
			t.kinds[aStep]++
		}
	}
	t.tokens += freed
}

// String is such as "14 results and 2 inputs".
func (t tally) String() string {
	var parts []string
	for kind, one := range [...]string{"result", "input", "thought", "step", "list"} {
		if n := t.kinds[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, plural(n, one)))
		}
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// tokens is a number of tokens in words.
func tokens(n int) string {
	if n < 10_000 {
		return thousands(n) + " tokens"
	}
	return fmt.Sprintf("%dk tokens", (n+500)/1000)
}

// thousands formats a number with a comma between thousands.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}
