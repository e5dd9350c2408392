package web

import (
	"html/template"
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/unidiff"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/recall"
)

// inspection is what the page shows of the selected block.
type inspection struct {
	ID   furl.SessionID
	Part part
	// Seen is what the model sees in its place: "" if that is the block as recorded.
	Seen template.HTML
	// Nothing reports that the model sees neither the block nor a text in its place.
	Nothing  bool
	Original template.HTML
	Diff     template.HTML
	More     int
	// Reduction hides it, nil if it is not hidden.
	Reduction *furl.Applied
	OnPath    bool
	At        string   // the selection
	Acts      []button // on it
	Held      string   // the hold on it, in words
}

// maxInspected is the number of bytes of an original that the inspector shows.
const maxInspected = 100 << 10

// inspect shows one block: what the model sees, the original, and why they differ.
func (p *Page) inspect(v *visit) error {
	return v.atMoment(func(m *moment) error {
		if r := m.reductionAt(v.r.FormValue("at")); r != nil {
			v.render(http.StatusOK, "inspect-reduction", m.marker(r))
			return nil
		}
		in, err := v.inspectBlock(m)
		if err != nil {
			return err
		}
		v.render(http.StatusOK, "inspect.tmpl", in)
		return nil
	})
}

// inspection returns the inspection of the block that the address names, nil if it names
// none.
func (v *visit) inspection(m *moment) *inspection {
	if v.r.FormValue("at") == "" {
		return nil
	}
	in, err := v.inspectBlock(m)
	if err != nil {
		return nil // the marker of a reduction has its actions itself
	}
	return in
}

// inspectBlock inspects the block that the parameter "at" names.
func (v *visit) inspectBlock(m *moment) (*inspection, error) {
	pos, msg, b, err := v.blockAt(m)
	if err != nil {
		return nil, err
	}
	in := &inspection{ID: v.s.ID(), At: v.r.FormValue("at"), Part: m.part(pos, msg, b)}
	_, in.OnPath = m.state.Find(pos.Msg)
	text, _ := cut(in.Part.Text(), maxInspected)
	in.More = len(in.Part.Text()) - len(text)
	in.Original = in.Part.format(text)
	if in.OnPath {
		in.Part.By = m.state.ShownBy(pos)
	}
	if red, ok := m.state.Reduction(in.Part.By); ok && in.Part.By != 0 {
		in.Reduction, in.Part.Hidden, in.Nothing = &red, true, true
		if seen, ok := m.placeholder(pos); ok {
			in.Seen, in.Nothing = plain(seen), false
			in.Diff = diff(unidiff.Between("original", ended(text), "what the model sees", ended(seen)))
		}
	}
	span := furl.Span{First: pos, Last: pos}
	if h, err := recall.ParseHandle(in.At); err == nil && h.Block < 0 {
		span.Last.Block = max(0, len(msg.Blocks)-1)
	}
	seen := operation.LookAt(m.state, m.view, func(f func(furl.Pos, *furl.Message, *furl.Block)) { m.blocksOf(span, f) })
	in.Acts, in.Held = m.blockActs(in.At, pos, &seen, in.OnPath), heldWords(seen.Strongest)
	return in, nil
}

// reductionAt returns the reduction that a handle names, nil if it names something else.
func (m *moment) reductionAt(at string) *policy.Reduced {
	h, err := recall.ParseHandle(at)
	if err != nil {
		return nil
	}
	return m.reduction(h.Msg)
}

// placeholder returns the text that the model sees in place of a block, false if it sees
// none.
func (m *moment) placeholder(pos furl.Pos) (string, bool) {
	for i := range m.view.Messages {
		if sh := &m.view.Messages[i]; sh.Seq == pos.Msg {
			for j := range sh.Blocks {
				if sh.Blocks[j].Pos == pos && sh.Blocks[j].By != 0 {
					return sh.Blocks[j].Text, true
				}
			}
		}
	}
	return "", false
}
