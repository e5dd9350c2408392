package policy

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
)

// Hide hides the blocks that a person has selected. Results show a placeholder, and
// long texts in the inputs of calls are shortened. With Steps, markers replace the
// whole steps that contain the blocks. It does not hide pinned blocks, the newest
// step and the newest message of the user.
type Hide struct {
	// Spans are the blocks.
	Spans []furl.Span `json:"-"`
	// Steps hides whole steps and messages of the user.
	Steps bool `json:"-"`
	// Again, if not 0, is an undone reduction to repeat, with the same placeholders
	// or the same summary. Spans and Steps are ignored.
	Again furl.Seq `json:"-"`
}

// Name is "hide".
func (h *Hide) Name() string { return "hide" }

// The Skips of Hide.
const (
	skipPinned = Skip("it is pinned; unpin it first")
	skipFixed  = Skip("it defines tools, or furl does not know its type; it is always sent")
	skipNewest = Skip("the newest step and the newest message of the user cannot be hidden")
	skipHidden = Skip("it is hidden already")
	skipInside = Skip("only results and long inputs of calls can be hidden inside a step; hide the whole step instead")
	skipLarger = Skip("the placeholder would not be smaller")
)

// Reduce hides the blocks in one reduction.
func (h *Hide) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	switch {
	case h.Again != 0:
		return h.again(v)
	case h.Steps:
		return h.steps(v, b)
	}
	return h.inside(v, b)
}

// selected reports whether a block is in the spans.
func (h *Hide) selected(sb *furl.ShownBlock) bool {
	if sb.Pos.Msg == 0 {
		return false
	}
	for _, sp := range h.Spans {
		if !before(sb.Pos, sp.First) && !before(sp.Last, sb.Pos) {
			return true
		}
	}
	return false
}

// inside hides single results and inputs.
func (h *Hide) inside(v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	why := skipHidden // if the view shows none of the blocks
	var results []Result
	var calls []*furl.ShownBlock
	for i := range v.Units {
		u := &v.Units[i]
		for j := range u.Blocks {
			sb := &u.Blocks[j]
			switch {
			case !h.selected(sb):
			case sb.By != 0 && !isClip(v, sb):
				why = skipHidden
			case u.Fixed:
				why = skipFixed
			case sb.Hold == furl.Pin:
				why = skipPinned
			case u.Newest || u.Open:
				why = skipNewest
			case sb.Block.IsResult():
				results = append(results, Result{View: v, Unit: u, Block: sb, Counter: b.Counter, Recall: b.Recall, Age: v.Steps - u.Step})
			case sb.Block.Kind == furl.KindCall:
				calls = append(calls, sb)
			default:
				why = skipInside
			}
		}
	}
	if len(results)+len(calls) == 0 {
		return nil, why
	}
	red := &furl.Reduction{Stage: h.Name(), Reason: "hidden by a person"}
	write := Placeholder(handPickedNames)
	for i := range results {
		r := &results[i]
		red.Items = r.replace(red.Items, write(r)+mediaNote(r.Block.Block.Media), b)
	}
	in := shortening{longer: 80, gain: 1, recall: b.Recall, shown: newShownNames(v, calls), room: func(int) nameBudget { return nameBudget{} }}
	for _, sb := range calls {
		if show, ok := in.call(sb, b.Counter); ok {
			red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: show})
		}
	}
	if len(red.Items) == 0 {
		return nil, skipLarger
	}
	return red, nil
}

// handPickedNames is how many counted tokens the names in a placeholder may take.
const handPickedNames = 30

// steps hides whole units.
func (h *Hide) steps(v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	units, why := touched(v, h.Spans)
	if len(units) == 0 {
		return nil, why
	}
	messages := 0
	for i := range units {
		messages += units[i].Messages
	}
	spans := v.Spans(units...)
	text := "[hidden: " + countOf(max(1, messages), "message") + keptFromTo(spans[0].First, spans[len(spans)-1].Last, b.Recall) + "]"
	return &furl.Reduction{Stage: h.Name(), Reason: "hidden by a person", Items: []furl.Item{Marker(v, b, units, text)}}, nil
}

// touched returns the units that have blocks in the spans and can be hidden, without
// markers. If there are none, why says the reason.
func touched(v *furl.View, spans []furl.Span) (units []furl.Unit, why Skip) {
	why = skipHidden
	h := &Hide{Spans: spans}
	for i := range v.Units {
		u := &v.Units[i]
		found := false
		for j := range u.Blocks {
			found = found || h.selected(&u.Blocks[j])
		}
		switch {
		case !found || u.Kind == furl.UnitMark:
		case u.Fixed:
			why = skipFixed
		case u.Hold == furl.Pin:
			why = skipPinned
		case u.Newest || u.Open:
			why = skipNewest
		case u.Protected:
			why = "instructions at the start of a conversation stay"
		default:
			units = append(units, *u)
		}
	}
	return units, why
}

func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// again repeats an undone reduction.
func (h *Hide) again(v *furl.View) (*furl.Reduction, error) {
	was, ok := v.State.Reduction(h.Again)
	switch {
	case !ok:
		return nil, fmt.Errorf("hide again what reduction %d hid: %w", h.Again, furl.ErrNotOnPath)
	case !was.Undone:
		return nil, Skip(fmt.Sprintf("reduction %d was not undone", h.Again))
	}
	red := &furl.Reduction{Stage: was.Stage, Reason: fmt.Sprintf("reduction %d again, by a person", h.Again), Items: was.Items}
	if was.Summary != nil {
		sum := *was.Summary
		sum.Request, sum.Usage = "", furl.Usage{} // it was paid for once
		red.Summary = &sum
	}
	spans := spansOfItems(red.Items)
	for i := range v.Units {
		for j := range v.Units[i].Blocks {
			if sb := &v.Units[i].Blocks[j]; sb.Hold == furl.Pin && (&Hide{Spans: spans}).selected(sb) {
				if v.Units[i].Fixed {
					return nil, skipFixed
				}
				return nil, skipPinned
			}
		}
	}
	return red, nil
}

func spansOfItems(items []furl.Item) (spans []furl.Span) {
	for i := range items {
		spans = append(spans, items[i].Spans...)
	}
	return spans
}
