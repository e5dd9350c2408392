package transcript

import (
	"slices"

	"github.com/furlhq/furl"
)

// maxCuts bounds the recorded reductions of one session, and maxSeen the
// units examined for them, because each reduction costs a view. Later
// reductions are skipped and reported.
const (
	maxCuts = 1000
	maxSeen = 50_000_000
)

// hiddenText replaces a result that a compaction hides without its call.
const hiddenText = "[hidden]"

// hiddenBefore is the first message of a conversation that would otherwise
// start with a summary by the model, which Anthropic refuses.
const hiddenBefore = "[what came before is summarised below]"

// compact appends a recorded compaction. A step is hidden whole if any of the
// model's part is hidden, because a request must not separate a call from its
// result. If only the results are hidden, a short text replaces them.
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
		if !h.hidesUnit(u) {
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
		items = append(items, furl.Item{Spans: v.Spans(units...), Show: furl.Mark{Messages: show}})
	}
	f.in.measure(show...)
	if len(units) == 0 && c.exact && c.stage == "truncate" && f.covered(c.hide) {
		return // all was condensed before, and so is the marker
	}
	if len(units) == 0 {
		// The messages it hid are in another file, or hidden already. What it
		// showed is the conversation.
		for _, m := range show {
			if f.append(&entry{at: e.at, line: e.line}, m) {
				f.track(m)
			}
		}
		e.said = show
	}
	if len(items) == 0 {
		return
	}
	red := &furl.Reduction{
		Stage: c.stage, Reason: c.reason, Before: c.before, After: c.after,
		Items: items, Summary: numbered(c.summary, s, messages),
	}
	f.sizes(red, v)
	f.append(e, red)
}

// sizes computes the sizes of the context that the recording does not have,
// from counted tokens: the recorded one less what is hidden, if it has one of
// the two.
func (f *finisher) sizes(red *furl.Reduction, v *furl.View) {
	if f.in.counter == nil || red.Before != 0 && red.After != 0 {
		return
	}
	after, err := f.Log.State().With(red)
	if err != nil {
		return // append reports it
	}
	left := after.View(furl.Model{}).Tokens
	freed := v.Tokens - left
	fixed := 0
	f.in.measure(&furl.Message{Blocks: f.Preamble})
	for i := range f.Preamble {
		fixed += f.Preamble[i].Tokens
	}
	switch {
	case red.Before != 0:
		red.After = max(red.Before-freed, left)
	case red.After != 0:
		red.Before = red.After + max(freed, 0)
	default:
		red.Before, red.After = v.Tokens+fixed, left+fixed
	}
}

// covered reports whether markers hide all of the messages already.
func (f *finisher) covered(hide []ref) bool {
	n := 0
	for _, r := range hide {
		if seq := f.entries[r-1].seq; seq != 0 {
			if !f.underMark(furl.Pos{Msg: seq}) {
				return false
			}
			n++
		}
	}
	return n > 0
}

// numbered fills in the fields of a summary that the log determines.
func numbered(summary *furl.Summary, s *furl.State, messages int) *furl.Summary {
	if summary == nil {
		return nil
	}
	sum := *summary
	sum.Number, sum.Messages = 1, messages
	for old := range s.Reductions() {
		if old.Summary != nil {
			sum.Number = old.Summary.Number + 1
		}
	}
	return &sum
}

// cutting finds what a compaction hides of a view.
type cutting struct {
	*finisher
	c     *compaction
	v     *furl.View
	set   map[*furl.Message]bool // hidden; with c.all, kept
	words map[*furl.Message]bool // only the text after the results is hidden
	over  []furl.Seq
}

func (f *finisher) newCutting(c *compaction, v *furl.View) *cutting {
	h := &cutting{finisher: f, c: c, v: v, set: make(map[*furl.Message]bool), words: make(map[*furl.Message]bool)}
	refs := c.hide
	if c.all {
		refs = c.keep
	}
	for _, r := range refs {
		if r > 0 && int(r) <= len(f.entries) && f.entries[r-1].msg != nil {
			h.set[f.entries[r-1].msg] = true
		}
	}
	for _, r := range c.words {
		h.words[f.entries[r-1].msg] = true
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

// hidesUnit reports whether the compaction hides a unit of the view.
func (h *cutting) hidesUnit(u *furl.Unit) bool {
	if u.Kind == furl.UnitMark {
		return h.hidesMarker(u)
	}
	for i := u.First; i <= u.Last; i++ {
		m := h.v.Messages[i].Msg
		if u.Kind != furl.UnitStep && h.words[m] || (u.Kind != furl.UnitStep || m.Role == furl.RoleAssistant) && h.hides(m) {
			return true
		}
	}
	return false
}

// hidesMarker reports whether the compaction hides a marker of an earlier reduction.
func (h *cutting) hidesMarker(u *furl.Unit) bool {
	if h.c.exact {
		return slices.Contains(h.over, u.By)
	}
	s := h.v.State
	for _, sp := range h.v.Spans(*u) {
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

// results returns the results of a step whose calls stay visible.
func (h *cutting) results(u *furl.Unit) (items []furl.Item) {
	for i := range u.Blocks {
		b := &u.Blocks[i]
		if b.Block.Kind != furl.KindResult {
			continue
		}
		at, _ := h.v.State.Find(b.Pos.Msg)
		if _, m := h.v.State.Message(at); h.hides(m) {
			items = append(items, h.replacement(b.Pos, hiddenText))
		}
	}
	return items
}

// replacement returns an item that replaces a result by a text.
func (f *finisher) replacement(pos furl.Pos, text string) furl.Item {
	return furl.Item{
		Spans: []furl.Span{{First: pos, Last: pos}},
		Show:  furl.In{Text: text, Tokens: f.in.count(text)},
	}
}
