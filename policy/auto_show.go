package policy

import (
	"cmp"
	"fmt"

	"github.com/furlhq/furl"
)

// autoTexts writes what one reduction of auto shows.
type autoTexts struct {
	auto  *auto
	v     *furl.View
	b     furl.Budget
	dial  *dial
	shown *shownNames
}

func (a *auto) texts(v *furl.View, b furl.Budget, picked []candidate) *autoTexts {
	var hidden []*furl.ShownBlock
	for i := range picked {
		c := &picked[i]
		if c.kind != aStep {
			hidden = append(hidden, c.block)
			continue
		}
		for j := range c.unit.Blocks {
			sb := &c.unit.Blocks[j]
			if _, goes := a.carrierPart(c, sb, b.Model); !c.carries || goes || sb.Block.IsResult() {
				hidden = append(hidden, sb)
			}
		}
	}
	return &autoTexts{auto: a, v: v, b: b, dial: &a.dial, shown: newShownNames(v, hidden)}
}

// show gives what is shown for a block and its size in counted tokens; false
// if it would be no smaller.
func (w *autoTexts) show(c *candidate) (show furl.Show, size int, ok bool) {
	var in furl.In
	sb := c.block
	switch c.kind {
	case aThought:
		return furl.Gone{}, 0, true
	case aList:
		in = w.shorten(sb)
	case aResult:
		r := Result{View: w.v, Unit: c.unit, Block: sb, Newer: c.newer, Counter: w.b.Counter, Recall: w.b.Recall, shown: w.shown}
		in = furl.InPlace(sb.Block, r.placeholder(w.dial.room(sb.Tokens))+mediaNote(sb.Block.Media), w.b.Counter)
		in.Note = fmt.Sprintf("%s, %d tokens, %d newer requests", cmp.Or(r.Tool(), sb.Block.Name, "tool"), sb.Tokens, c.newer)
	case aCall:
		s := shortening{longer: minString, gain: minFreed, brief: true, recall: w.b.Recall, shown: w.shown}
		s.room = func(bytes int) nameBudget { return w.dial.room(bytes / 4) }
		in, _ = s.call(sb, w.b.Counter)
		if in.Text == "" {
			return nil, 0, false
		}
	}
	return in, in.Tokens, in.Tokens < sb.Tokens
}

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}
