package web

import (
	"cmp"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// moment is what a page shows of a session: the current state, or the state that a
// request was sent for.
type moment struct {
	s       *session.Session
	snap    *snapshot
	state   *furl.State
	view    *furl.View
	model   furl.Model
	name    string   // of the model in requests
	request int      // its number from 1; 0: the current state
	branch  furl.Seq // the head of a branch that is not current; 0: the current one
	room    room     // of the rows that are rendered
	// requests are the requests of the current path, in order, nil unless the address names
	// one or the handler uses visit.readRequests.
	requests []session.Request
	scaled   *session.Scale // nil until scale is used
}

// sent returns the request that the moment is of, nil for the current state.
func (m *moment) sent() *session.Request {
	if m.request == 0 {
		return nil
	}
	return &m.requests[m.request-1]
}

// scale returns what converts the parts of the prompt into the provider's tokens.
func (m *moment) scale() session.Scale {
	if m.scaled == nil {
		m.scaled = new(session.Scale)
		if q := m.sent(); q != nil {
			*m.scaled = q.Scale
		} else {
			*m.scaled = m.s.Composition(m.name).Scale
		}
	}
	return *m.scaled
}

// tokens returns the size of a block in the provider's tokens, as the ribbon draws it:
// what a call or a result costs beyond its text stays visible when its text is hidden.
func (m *moment) tokens(counted int, b *furl.Block, hidden bool) int {
	if hidden {
		return m.scale().Of(counted, 0)
	}
	return m.scale().Of(counted, items(b))
}

// atMoment calls f with the moment that the request is about, while nothing changes it.
func (v *visit) atMoment(f func(*moment) error) error {
	return v.read(func(snap *snapshot) error {
		m, err := v.moment(snap)
		if err != nil {
			return err
		}
		return f(m)
	})
}

// moment reads the request parameter "request".
func (v *visit) moment(snap *snapshot) (*moment, error) {
	m := &moment{s: v.s, snap: snap, requests: v.requests}
	head := snap.log.Head()
	model := v.s.Meta().Model
	if v.r.FormValue("branch") != "" {
		to, err := v.recordParam("branch")
		if err != nil {
			return nil, err
		}
		m.branch = to
		if m.branch == head {
			m.branch = 0 // the current one
		} else {
			head = m.branch
		}
	} else if v.namesRequest() {
		text := v.r.FormValue("request")
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > len(m.requests) {
			return nil, badRequest("invalid request %.20q: expected a number from 1 to %d", text, len(m.requests))
		}
		r := &m.requests[n-1]
		m.request, head, model = n, r.Sent, cmp.Or(r.Model, model)
	}
	st, err := snap.stateAt(head)
	if err != nil {
		return nil, err
	}
	m.state, m.model, m.name = st, v.s.Model(model), model
	m.view = st.View(m.model)
	return m, nil
}

// namesRequest reports whether the address names a request, and not the current state.
func (v *visit) namesRequest() bool {
	if v.r == nil || v.r.FormValue("branch") != "" {
		return false
	}
	text := v.r.FormValue("request")
	return text != "" && text != "now"
}
