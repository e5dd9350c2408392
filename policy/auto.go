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
// half and twice as much do ("How much each number matters"). Ages are in newer requests of
// which the results are in the view; several calls at once have one age.
type dial struct {
	// patience is by how much more the cost of waiting must exceed the cost of the
	// rewrite than economy.patience says: what stays is shown for longer, too.
	patience float64
	// keep is the age up to which every result stays, and inputs the age from
	// which a call's input may go, if inputs may go at all.
	keep, inputs int
	// reads is the age up to which the newest read of a file stays if other files were
	// edited since, and only since the user's last words: a new task seldom edits what the
	// last one read.
	reads int
	// planned is the same for a file that the user's words or a plan name and that was not
	// edited since the read: it is about to be edited. plannedAsked holds if the user has
	// spoken since the read, and plannedCold if the cache has expired.
	planned, plannedAsked, plannedCold int
	// unedited is the age up to which the newest read of a file stays while the
	// session has no edits: an agent explores before it edits. paused is the same
	// while no file was edited since the read, but some were before, and asked if
	// the user has spoken since the read.
	unedited, paused, asked int
	// edited is the age up to which the newest text of a file stays that the agent
	// edits or keeps coming back to, if a tool returned it, whatever the user said
	// since, and editing the same while the file's newest edit is no older than justEdited:
	// files are edited in bursts. written is the age up to which the step stays in which the
	// agent wrote the newest text of a file, worked the same if the user has spoken since
	// and the agent still works on that file, and writtenAsked if it does not.
	edited, justEdited, editing, written, worked, writtenAsked int
	// editedCold is edited, and readsCold the age for the newest reads of all other
	// files and after new words of the user, if the cache has expired, when a
	// rewrite is free. Of all other results only the newest stay then.
	editedCold, readsCold int
	// names is the most that the names in one placeholder may take, in counted
	// tokens, share the most as a share of what is hidden, and worth the
	// least that a name must be worth, see worthOf.
	names int
	share float64
	worth float64
	// fold is the age from which a step may be in one line, foldCold the same
	// when the cache has expired. foldShare is the most that names take there, as
	// a share of what is visible of the steps, foldWorth the least that such a
	// name must be worth. said is how much of what was said in such a step stays,
	// in characters, and replied the same for a reply without calls.
	fold, foldCold       int
	foldShare, foldWorth float64
	said, replied        int
	// listed is the age from which such a list is shortened to names that are worth
	// listWorth, in at most listShare of its size.
	listed               int
	listShare, listWorth float64
	// clip is the size beyond which a result is cut to head and tail before
	// it is first sent, in the provider's tokens. Half costs 0.005 less. It was not
	// chosen by a search: a model makes little use of more (beyondUse).
	clip int
}

// The positions.
var (
	frugal = dial{patience: 1.3, keep: 1, inputs: 3, reads: 6, planned: 30, plannedAsked: 6, plannedCold: 1, unedited: 6, paused: 4, asked: 3,
		edited: 6, justEdited: 3, editing: 20, written: 4, worked: 4, editedCold: 2, readsCold: 1,
		names: 200, share: 0.15, worth: 0.15,
		fold: 3, foldShare: 0.2, foldWorth: 0.09, said: 40, replied: 200, listed: 60, listShare: 0.25, listWorth: 0.15, clip: 3_000}
	balanced = dial{patience: 2, keep: 1, inputs: 3, reads: 8, planned: 60, plannedAsked: 20, plannedCold: 2, unedited: 50, paused: 6, asked: 2,
		edited: 10, justEdited: 4, editing: 60, written: 24, worked: 10, writtenAsked: 4, editedCold: 6,
		names: 800, share: 0.25, worth: 0.06,
		fold: 8, foldShare: 0.3, foldWorth: 0.06, said: 70, replied: 800, listed: 60, listShare: 0.3, listWorth: 0.08, clip: beyondUse}
	faithful = dial{patience: 2.5, keep: 1, inputs: 10, reads: 30, planned: 100, plannedAsked: 60, plannedCold: 30, unedited: 60, paused: 20, asked: 8,
		edited: 20, justEdited: 8, editing: 100, written: 60, worked: 40, writtenAsked: 30, editedCold: 30, readsCold: 4,
		names: 800, share: 0.25, worth: 0.05,
		fold: 12, foldCold: 4, foldShare: 0.3, foldWorth: 0.055, said: 400, replied: 1200, listed: 80, listShare: 0.4, listWorth: 0.06, clip: beyondUse}
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
