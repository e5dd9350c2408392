package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// sessionPage is the data of a session's page.
type sessionPage struct {
	ID         furl.SessionID
	Info       listed
	Meter      *meter
	Model      bool // the transcript has what the model sees
	At         string
	Now        bool // the current state
	N, Of      int  // the request, of how many
	Rows       int
	Head       furl.Seq // the newest record
	Chunks     []chunk
	ChunkRows  int          // in each of them at most
	Acts       *sessionActs // that the page offers
	Inspection *inspection  // of the selected block, for browsers without scripts
	Branch     furl.Seq     // the head of the branch that is shown, 0 for the current one
}

// seesModel reports whether the transcript shows what the model sees.
func (v *visit) seesModel() bool { return v.r.FormValue("see") == "model" }

// showSession shows a session with its transcript.
func (p *Page) showSession(v *visit) error { return v.showTranscript("session.tmpl") }

// moveTo shows what of a session's page differs from moment to moment.
func (p *Page) moveTo(v *visit) error { return v.showTranscript("moment") }

// showTranscript shows a session with a template.
func (v *visit) showTranscript(template string) error {
	return v.atMoment(func(m *moment) error {
		data := &sessionPage{
			ID: v.s.ID(), Info: v.listed(v.s.Info()), Meter: v.meter(m), Model: v.seesModel(), At: v.r.FormValue("at"),
			Now: m.isNow(), N: m.request, Of: len(m.requests), Head: furl.Seq(m.snap.log.Len()),
		}
		rows := m.rows(data.Model)
		at := len(rows) - 1
		if data.At != "" {
			h, err := recall.ParseHandle(data.At)
			if err != nil {
				return badRequest("%v", err)
			}
			at = find(rows, h.Msg)
		}
		data.Branch = m.branch
		data.Acts = v.acts(m.branch)
		data.Inspection = v.inspection(m)
		data.Rows = len(rows)
		data.Chunks, data.ChunkRows = m.chunks(rows, data.Model, at, 2*chunkRows), chunkRows
		v.render(http.StatusOK, template, data)
		return nil
	})
}

// usage returns the sizes of the meter at a moment.
func (v *visit) usage(m *moment) session.Usage {
	u := v.s.Context(m.name)
	q := m.sent()
	if q == nil {
		return u
	}
	hidden, recorded := account.Hidden(m.state, m.view)
	u.Size, u.Limit, u.Hidden, u.Recorded, u.Percentage = q.Size, q.Window, q.Scale.Of(hidden, 0), q.Scale.Of(recorded, 0), 0
	u.Visible, u.Without = u.Recorded-u.Hidden, q.SizeWithout
	if u.Limit > 0 {
		u.Percentage = 100 * float64(u.Size) / float64(u.Limit)
	}
	return u
}

// showMessages shows one chunk of a transcript.
func (p *Page) showMessages(v *visit) error {
	n, err := strconv.Atoi(v.r.FormValue("chunk"))
	if err != nil || n < 0 {
		return badRequest("invalid chunk %.20q: expected a number", v.r.FormValue("chunk"))
	}
	return v.atMoment(func(m *moment) error {
		rows := m.rows(v.seesModel())
		if n*chunkRows >= len(rows) {
			return notFound("the transcript has no chunk %d", n)
		}
		v.render(http.StatusOK, "rows", m.render(rows[n*chunkRows:min(len(rows), (n+1)*chunkRows)], v.seesModel()))
		return nil
	})
}

// chunkOf responds with the number of the chunk of the row that the parameter "at" names.
func (p *Page) chunkOf(v *visit) error {
	h, err := recall.ParseHandle(v.r.FormValue("at"))
	if err != nil {
		return badRequest("%v", err)
	}
	return v.atMoment(func(m *moment) error {
		v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		v.send(http.StatusOK, []byte(strconv.Itoa(find(m.rows(v.seesModel()), h.Msg)/chunkRows)))
		return nil
	})
}

// blockAt returns the position that the request parameter "at" names.
func (v *visit) blockAt(m *moment) (furl.Pos, *furl.Message, *furl.Block, error) {
	fail := func(err error) (furl.Pos, *furl.Message, *furl.Block, error) { return furl.Pos{}, nil, nil, err }
	h, err := recall.ParseHandle(v.r.FormValue("at"))
	if err != nil {
		return fail(badRequest("%v", err))
	}
	if int(h.Msg) > m.snap.log.Len() {
		return fail(notFound("there is no record %d", h.Msg))
	}
	msg, ok := m.snap.log.At(h.Msg).Body.(*furl.Message)
	if !ok || h.Pos().Block >= len(msg.Blocks) {
		return fail(notFound("there is no message or block %s", h))
	}
	return h.Pos(), msg, &msg.Blocks[h.Pos().Block], nil
}

// address returns the address of a session's page at a request, 0 for now.
func (d *sessionPage) address(request int, model bool) string {
	query := make(url.Values)
	if request > 0 {
		query.Set("request", strconv.Itoa(request))
	}
	if model {
		query.Set("see", "model")
	}
	if d.Branch != 0 {
		query.Set("branch", seqKey(d.Branch))
	}
	if d.At != "" {
		query.Set("at", d.At)
	}
	text := fmt.Sprintf("%s/sessions/%s", prefix, d.ID)
	if len(query) > 0 {
		text += "?" + query.Encode()
	}
	return text
}

// Mode is the address of the same moment with all messages, or with what the model sees.
func (d *sessionPage) Mode(see string) string { return d.address(d.N, see == "model") }

// Moment is the address of another moment, seen in the same way.
func (d *sessionPage) Moment(request int) string { return d.address(request, d.Model) }
