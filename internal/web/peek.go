package web

import (
	"net/http"
	"time"

	"github.com/furlhq/furl/recall"
)

// peek is what the ribbon says of a block or a reduction under the pointer.
type peek struct {
	Title string // the call or the first words
	Time  time.Time
	// By describes the reduction that hides it, "" for none.
	By string
}

// peek shows what the block or the reduction is that the parameter "at" names, in two
// lines.
func (p *Page) peek(v *visit) error {
	h, err := recall.ParseHandle(v.r.FormValue("at"))
	if err != nil {
		return badRequest("%v", err)
	}
	return v.atMoment(func(m *moment) error {
		out := new(peek)
		if r := m.reduction(h.Msg); r != nil {
			out.Title, out.Time = reductionLine(r), r.Time
		} else {
			pos, msg, b, err := v.blockAt(m)
			if err != nil {
				return err
			}
			part := m.part(pos, msg, b)
			if out.Title = part.Title; out.Title == "" {
				out.Title = part.First()
			}
			out.Time = m.snap.log.At(pos.Msg).At
			if r := m.reduction(m.state.ShownBy(pos)); r != nil {
				out.By = reductionLine(r)
			}
		}
		v.render(http.StatusOK, "peek", out)
		return nil
	})
}
