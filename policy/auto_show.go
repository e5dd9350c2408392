package policy

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	"github.com/furlhq/furl"
)

// autoTexts writes what one reduction of auto shows.
type autoTexts struct {
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
			hidden = append(hidden, &c.unit.Blocks[j])
		}
	}
	return &autoTexts{v: v, b: b, dial: &a.dial, shown: newShownNames(v, hidden)}
}

// show gives what is shown for a block and its size in counted tokens; false
// if it would be no smaller.
func (w *autoTexts) show(c *candidate) (show furl.Show, size int, ok bool) {
	var in furl.In
	sb := c.block
	switch c.kind {
	case aThought:
		return furl.Gone{}, 0, true
	case aResult:
		r := Result{View: w.v, Unit: c.unit, Block: sb, Newer: c.newer, Counter: w.b.Counter, shown: w.shown}
		in = furl.InPlace(sb.Block, r.standIn(w.dial.room(sb.Tokens))+mediaNote(sb.Block.Media), w.b.Counter)
		in.Note = fmt.Sprintf("%s, %d tokens, %d newer results", cmp.Or(r.Tool(), sb.Block.Name, "tool"), sb.Tokens, c.newer)
	case aCall:
		s := shortening{longer: minString, gain: minFreed, brief: true, shown: w.shown}
		s.room = func(bytes int) nameBudget { return w.dial.room(bytes / 4) }
		in, _ = s.call(sb, w.b.Counter)
		if in.Text == "" {
			return nil, 0, false
		}
	}
	return in, in.Tokens, in.Tokens < sb.Tokens
}

// fold shows one message in place of a run of steps, given from the newest
// back: a line for each of what was said and called, cut, and the names in
// them. It also gives how many counted tokens that frees.
func (w *autoTexts) fold(picked []candidate) (furl.Item, int) {
	var (
		units  []furl.Unit
		text   strings.Builder
		tokens int
	)
	first, last := picked[len(picked)-1].unit, picked[0].unit
	fmt.Fprintf(&text, "[hidden: %d %s; originals kept as %s to %s; what was said and called in short:", len(picked), plural(len(picked), "step"),
		handle(first.Blocks[0].Pos), handle(last.Blocks[len(last.Blocks)-1].Pos))
	told := make(map[string]bool)
	for i := len(picked) - 1; i >= 0; i-- {
		u := picked[i].unit
		units, tokens = append(units, *u), tokens+u.Tokens
		if line := w.line(u, told); line != "" {
			text.WriteString("\n" + line)
		}
	}
	w.shown.add(text.String())
	most := nameBudget{most: int(w.dial.foldShare * float64(tokens)), worth: w.dial.worth / 2}
	if names := w.shown.tell(textsOf(units), most, w.b.Counter); len(names) > 0 {
		text.WriteString("\nnames in them: " + strings.Join(names, " "))
	}
	text.WriteByte(']')
	item := mark(w.v, w.b, units, text.String())
	return item, tokens - item.Show.(furl.Mark).Messages[0].Tokens()
}

// textsOf gives all that units show.
func textsOf(units []furl.Unit) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range units {
			for j := range units[i].Blocks {
				for text := range units[i].Blocks[j].Texts() {
					if !yield(text) {
						return
					}
				}
			}
		}
	}
}

// line is a step in short; a call that was told is not told again.
func (w *autoTexts) line(u *furl.Unit, told map[string]bool) string {
	failed := make(map[string]bool)
	var media []furl.Media
	for j := range u.Blocks {
		b := u.Blocks[j].Block
		failed[b.ID] = failed[b.ID] || b.Kind == furl.KindResult && b.Error
		media = append(media, b.Media...)
	}
	var parts []string
	for j := range u.Blocks {
		b := u.Blocks[j].Block
		what := ""
		switch b.Kind {
		case furl.KindText:
			what = cut(fold(b.Text), w.dial.said)
		case furl.KindCall:
			what = strings.TrimSpace(b.Name + " " + target(b))
			if failed[b.ID] {
				what += " (failed)"
			}
			if told[what] {
				continue
			}
			told[what] = true
		}
		if what != "" {
			parts = append(parts, what)
		}
	}
	return strings.TrimPrefix(strings.Join(parts, "; ")+mediaNote(media), "\n")
}

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}
