package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// level says what auto may touch, each with all before it.
type level uint8

const (
	levelResults level = iota // tool results
	levelCalls                // long texts in the inputs of old calls
	levelFull                 // thinking from before the user's last words
)

// dial is a position between fidelity and money. docs/cost-model.md has what
// each was measured to cost and to keep.
type dial struct {
	// keep is how many of the newest results stay, whatever they are.
	keep int
	// reads is how many of the newest results stay if they are the newest
	// read of a file, and active the same if a recent call had to do with
	// that file. Both hold only since the user's last words: a new task
	// seldom edits what the last one read.
	reads, active int
	// names is the most that the names in one stand-in may take, in counted
	// tokens, and share the most as a share of what is hidden.
	names int
	share float64
}

// The positions.
var (
	frugal   = dial{keep: 2, names: 800, share: 0.2}
	balanced = dial{keep: 3, reads: 10, active: 30, names: 800, share: 0.2}
	faithful = dial{keep: 3, reads: 40, active: 80, names: 800, share: 0.2}
)

// auto hides what the model is unlikely to need again, when that pays: results,
// inputs of old calls and old thinking, from the position on from which most
// is saved. What it hides leaves a stand-in with the names in it. It is a pure
// function of the view and the budget, and never touches anything twice.
type auto struct {
	level level
	dial  dial
}

// Name is "auto".
func (*auto) Name() string { return "auto" }

// Reduce hides all candidates from one position on, or says why not.
func (a *auto) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	e := economyOf(v, b)
	picked, err := a.plan(v, b, e)
	if err != nil {
		return nil, err
	}
	w := newStandIns(v, b, a.dial, picked)
	red := &furl.Reduction{Stage: a.Name()}
	var sum tally
	for i := len(picked) - 1; i >= 0; i-- { // they were found from the newest back
		c := &picked[i]
		show, shown, ok := w.show(c)
		if !ok {
			continue
		}
		sum.add(c, b.Scaled(c.block.Tokens-shown))
		red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: c.block.Pos, Last: c.block.Pos}}, Show: show})
	}
	if len(red.Items) == 0 {
		return nil, Nothing
	}
	first := red.Items[0].Spans[0].First.Msg
	at, _ := v.State().Find(first)
	red.Reason = fmt.Sprintf("hid %s (%s) from message %d on: %s",
		sum, tokens(sum.tokens), at+1, e.words(b, b.Scaled(tokensFrom(v, first))-sum.tokens, sum.tokens))
	red.Cost.Remaining = e.remaining
	return red, nil
}

// tokensFrom is how many counted tokens of a view stand in a message and
// behind it.
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
	kinds  [3]int
	tokens int // freed, the provider's
}

func (t *tally) add(c *candidate, freed int) {
	t.kinds[c.kind]++
	t.tokens += freed
}

// String is such as "14 results and 2 inputs".
func (t tally) String() string {
	var parts []string
	for kind, one := range [...]string{"result", "input", "thought"} {
		switch n := t.kinds[kind]; {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, one))
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
		return fmt.Sprintf("%d tokens", n)
	}
	return fmt.Sprintf("%dk tokens", (n+500)/1000)
}
