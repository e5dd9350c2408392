package transcript

import (
	"time"

	"github.com/furlhq/furl"
)

// masking is a recorded reduction in place: the agent sent a text other than
// the recorded one.
type masking struct {
	hide   []hiding
	reason string
}

// hiding is the replacement of one block: the result of a call, a block of a
// message, or its first text.
type hiding struct {
	call  string // the call whose result is replaced, or
	of    ref    // the message
	block int    // which of its blocks, from 1; 0 is the first text
	text  string // the replacement
	gone  bool   // the block is thinking, and nothing replaces it
}

// mask adds a recorded reduction in place.
func (b *builder) mask(at time.Time, line int, m masking) ref {
	return b.add(entry{at: at, line: line, mask: &m})
}

// clear adds a recorded reduction that replaces the results of some calls by
// one text. It is not counted as a compaction.
func (b *builder) clear(at time.Time, line int, calls []string, text string) ref {
	m := masking{reason: "the agent cleared old tool results"}
	for _, id := range calls {
		m.hide = append(m.hide, hiding{call: id, text: text})
	}
	return b.mask(at, line, m)
}

// mask appends a recorded reduction in place. Blocks that were skipped or are
// hidden already are ignored.
func (f *finisher) mask(e *entry) {
	if f.cuts++; f.cuts > maxCuts {
		f.in.skip(e.line, "more than %d recorded reductions", maxCuts)
		return
	}
	red := &furl.Reduction{Stage: "mask", Reason: e.mask.reason}
	results := f.resultsOf(e.mask.hide)
	for _, h := range e.mask.hide {
		pos, ok := results[h.call]
		if h.call == "" {
			pos, ok = f.blockOf(h.of, h.block)
		}
		if !ok || f.underMark(pos) {
			continue
		}
		item := f.replacement(pos, h.text)
		if h.gone {
			item.Show = furl.Gone{}
		}
		red.Items = append(red.Items, item)
	}
	if len(red.Items) > 0 {
		f.append(e, red)
	}
}

// resultsOf finds the results to hide on the path.
func (f *finisher) resultsOf(hide []hiding) map[string]furl.Pos {
	at := make(map[string]furl.Pos, len(hide))
	for _, h := range hide {
		if h.call != "" {
			at[h.call] = furl.Pos{}
		}
	}
	missing := len(at)
	s := f.Log.State()
	for i := s.Len() - 1; i >= 0 && missing > 0; i-- {
		seq, m := s.Message(i)
		for n := range m.Blocks {
			if b := &m.Blocks[n]; b.Kind == furl.KindResult {
				if pos, wanted := at[b.ID]; wanted && pos.Msg == 0 {
					at[b.ID] = furl.Pos{Msg: seq, Block: n}
					missing--
				}
			}
		}
	}
	for id, pos := range at {
		if pos.Msg == 0 {
			delete(at, id)
		}
	}
	return at
}

// blockOf finds a block of a message on the path, counted from 1; 0 is its first
// text.
func (f *finisher) blockOf(r ref, block int) (furl.Pos, bool) {
	if r <= 0 || int(r) > len(f.entries) {
		return furl.Pos{}, false
	}
	e := &f.entries[r-1]
	if _, ok := f.Log.State().Find(e.seq); !ok || e.msg == nil {
		return furl.Pos{}, false
	}
	for n := range e.msg.Blocks {
		if block == n+1 || block == 0 && e.msg.Blocks[n].Kind == furl.KindText {
			return furl.Pos{Msg: e.seq, Block: n}, true
		}
	}
	return furl.Pos{}, false
}

// underMark reports whether a block is hidden as part of a whole step.
func (f *finisher) underMark(pos furl.Pos) bool {
	red, ok := f.Log.State().Reduction(f.Log.State().ShownBy(pos))
	if !ok {
		return false
	}
	for _, it := range red.Items {
		if _, ok := it.Show.(furl.Mark); ok {
			return true
		}
	}
	return false
}

// count returns the size of a result with this text, 0 if nothing is
// measured.
func (in *input) count(text string) int {
	m := &furl.Message{Blocks: []furl.Block{{Kind: furl.KindResult, Text: text}}}
	in.measure(m)
	return m.Tokens()
}
