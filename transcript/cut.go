package transcript

import (
	"slices"

	"github.com/furlhq/furl"
)

// maxCuts bounds the recorded reductions of one session, and maxSeen the units
// looked at for them, since each costs a view. Later ones are skipped and
// reported.
const (
	maxCuts = 1000
	maxSeen = 50_000_000
)

// hiddenText is shown for a result that a compaction hides without its call.
const hiddenText = "[hidden]"

// hiddenBefore begins a conversation that would begin with a summary in the
// model's own words, which Anthropic refuses.
const hiddenBefore = "[what came before is summarised below]"

// compact appends a recorded compaction. Steps are hidden whole if any of the
// model's part is, because a view that parts a call from its result is no
// request; results hidden under a call that is not become a short text.
func (f *finisher) compact(e *entry) {
	c := e.cut
	if f.cuts++; f.cuts > maxCuts || f.seen > maxSeen {
		f.in.skip(e.line, "too many recorded reductions")
		return
	}
	s := f.Log.State()
	v := s.View(furl.Model{})
	f.seen += len(v.Units)
	h := f.newCutting(c, v)
	var units []furl.Unit
	var items []furl.Item
	messages := 0
	for i := range v.Units {
		u := &v.Units[i]
		if !h.whole(u) {
			items = append(items, h.results(u)...)
			continue
		}
		units = append(units, *u)
		if u.Kind != furl.UnitMark {
			messages += u.Messages
		}
	}
	show := c.show
	if len(units) > 0 {
		if show[0].Role == furl.RoleAssistant && f.Wire == furl.FormatAnthropic && units[0].First == 0 {
			show = append([]*furl.Message{furl.TextMessage(furl.RoleUser, hiddenBefore)}, show...)
		}
		items = append(items, furl.Item{Spans: v.Cover(units), Show: furl.Mark{Messages: show}})
	}
	f.in.measure(show...)
	if len(units) == 0 {
		// What it hid is in another file, or hidden already; what it
		// showed is the conversation.
		for _, m := range show {
			if f.append(&entry{at: e.at, line: e.line}, m) {
				f.noted(m)
			}
		}
		e.said = show
	}
	if len(items) == 0 {
		return
	}
	f.append(e, &furl.Reduction{
		Stage: c.stage, Reason: c.reason, Before: c.before, After: c.after,
		Items: items, Summary: numbered(c.summary, s, messages),
	})
}

// numbered completes what a compaction says about itself.
func numbered(summary *furl.Summary, s *furl.State, messages int) *furl.Summary {
	if summary == nil {
		return nil
	}
	sum := *summary
	sum.Number, sum.Messages = 1, messages
	for _, old := range s.Reductions() {
		if old.Summary != nil {
			sum.Number = old.Summary.Number + 1
		}
	}
	return &sum
}

// cutting is what a compaction hides of a view.
type cutting struct {
	*finisher
	c    *compaction
	v    *furl.View
	set  map[*furl.Message]bool // hidden, or with c.all kept
	over []furl.Seq
}

func (f *finisher) newCutting(c *compaction, v *furl.View) *cutting {
	h := &cutting{finisher: f, c: c, v: v, set: make(map[*furl.Message]bool)}
	refs := c.hide
	if c.all {
		refs = c.keep
	}
	for _, r := range refs {
		if r > 0 && int(r) <= len(f.entries) && f.entries[r-1].msg != nil {
			h.set[f.entries[r-1].msg] = true
		}
	}
	for _, r := range c.over {
		h.over = append(h.over, f.entries[r-1].seq)
		for _, m := range f.entries[r-1].said {
			h.set[m] = !c.all
		}
	}
	return h
}

func (h *cutting) hides(m *furl.Message) bool { return h.set[m] != h.c.all }

// whole reports whether the compaction stands for a unit of the view.
func (h *cutting) whole(u *furl.Unit) bool {
	if u.Kind == furl.UnitMark {
		return h.mark(u)
	}
	for i := u.First; i <= u.Last; i++ {
		m := h.v.Messages[i].Msg
		if (u.Kind != furl.UnitStep || m.Role == furl.RoleAssistant) && h.hides(m) {
			return true
		}
	}
	return false
}

// mark reports whether it stands for what an earlier one shows.
func (h *cutting) mark(u *furl.Unit) bool {
	if h.c.exact {
		return slices.Contains(h.over, u.By)
	}
	s := h.v.State()
	for _, sp := range h.v.Spans(u) {
		from, _ := s.Find(sp.First.Msg)
		to, _ := s.Find(sp.Last.Msg)
		for i := from; i <= to; i++ {
			if _, m := s.Message(i); h.hides(m) {
				return true
			}
		}
	}
	return false
}

// results hides the results of a step whose calls stay.
func (h *cutting) results(u *furl.Unit) (items []furl.Item) {
	for i := range u.Blocks {
		b := &u.Blocks[i]
		if b.Block.Kind != furl.KindResult {
			continue
		}
		at, _ := h.v.State().Find(b.Pos.Msg)
		if _, m := h.v.State().Message(at); h.hides(m) {
			items = append(items, h.instead(b.Pos, hiddenText))
		}
	}
	return items
}

// instead shows a text in the place of a result.
func (f *finisher) instead(pos furl.Pos, text string) furl.Item {
	return furl.Item{
		Spans: []furl.Span{{First: pos, Last: pos}},
		Show:  furl.In{Text: text, Tokens: f.in.count(text)},
	}
}
