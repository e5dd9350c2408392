package gateway

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/onereply"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// Recall inside the gateway: the session's requests have two tools of furl's,
// whose calls the client never sees. A reply is relayed as it comes, but for
// such a call. Then furl answers it, sends the next request, and what comes back
// goes on where the reply stopped, so that the client has one reply.

// recall is relay for an exchange whose request has recall tools.
func (g *Gateway) recall(w http.ResponseWriter, r *http.Request, rt *route, x *session.Exchange, out *upstream.Request, resp *upstream.Response, err error) {
	if err != nil || resp.Status >= 300 || resp.Encoding != "" {
		g.relay(w, r, rt, resp, err, x)
		return
	}
	m := onereply.New(w, rt.codec, resp.Events(), x.IsRecall)
	for {
		reply, unread, cut := g.round(rt, m, resp)
		sent := x.Fit
		if !m.Called() {
			if cut == nil || m.Streams() || m.Rounds() == 0 {
				m.End(reply, false) // else nothing was sent, and an error can be
			}
			if unread != nil {
				g.metrics.unread.Inc()
				g.log.Warn("an answer could not be read", "session", x.Session.ID(), "error", upstream.Text(unread))
			}
			callOf(r.Context()).after(func() {
				if _, err := x.Answer(r.Context(), reply); err != nil {
					g.unrecorded(x, err)
				} else {
					g.summarize(r, rt, x, reply)
				}
				callOf(r.Context()).answered(sent, reply)
			})
			g.cutOff(w, r, rt, m, cut)
			return
		}
		answered := x.Recalls()
		again, err := x.Answer(r.Context(), reply)
		g.metrics.recalls.Add(float64(x.Recalls() - answered))
		callOf(r.Context()).answered(sent, reply)
		switch {
		case cut != nil:
			g.cutOff(w, r, rt, m, cut)
			return
		case err != nil || unread != nil:
			g.unrecorded(x, errors.Join(err, unread))
			g.breakOff(w, rt, m, &furl.Refusal{Status: http.StatusInternalServerError, Message: "furl: what the model asked memory for could not be answered"})
			return
		case !again:
			m.End(reply, true)
			g.summarize(r, rt, x, reply)
			return
		}
		m.Next(reply)
		if resp = g.goOn(w, r, rt, m, x, out); resp == nil {
			return
		}
	}
}

// round relays one answer, but for what the merger holds back, and gives what
// was understood, why it was not, and what cut the answer off.
func (g *Gateway) round(rt *route, m *onereply.Merger, resp *upstream.Response) (reply *furl.Reply, unread, cut error) {
	defer resp.Close()
	observer := upstream.Understand(rt.codec, resp, func(r *furl.Reply, err error) { reply, unread = r, err })
	relayed, cut := rt.up.Relay(m.Round(), resp, observer)
	<-relayed.Observed
	m.Flush()
	return reply, unread, cut
}

// goOn sends the request that has the answers of recall. It gives nil if the
// client has been told that it failed.
func (g *Gateway) goOn(w http.ResponseWriter, r *http.Request, rt *route, m *onereply.Merger, x *session.Exchange, out *upstream.Request) *upstream.Response {
	resp, err := g.send(r.Context(), rt, x, out)
	switch {
	case err != nil && r.Context().Err() != nil:
	case errors.Is(err, errUnrecorded):
		g.unrecorded(x, err)
		g.breakOff(w, rt, m, &furl.Refusal{Status: http.StatusInternalServerError, Message: "furl: what the model asked memory for could not be recorded"})
	case err != nil:
		g.metrics.failed.Inc()
		refusal := &furl.Refusal{Status: http.StatusBadGateway, Message: "furl: the provider could not be reached"}
		if e, ok := errors.AsType[*upstream.Error](err); ok {
			refusal = e.Refusal()
		}
		g.breakOff(w, rt, m, refusal)
	case resp.Status >= 300 && !m.Begun():
		g.relay(w, r, rt, resp, nil, nil) // the provider's own words
	case resp.Status >= 300, resp.Events() != m.Streams(), resp.Encoding != "":
		defer resp.Close()
		g.breakOff(w, rt, m, refusalIn(rt, resp))
	default:
		return resp
	}
	return nil
}

// refusalIn is what a provider refused a request with.
func refusalIn(rt *route, resp *upstream.Response) *furl.Refusal {
	if body, err := resp.ReadAll(); err == nil {
		if reply, err := rt.codec.DecodeReply(resp.Status, body); err == nil && reply.Refusal != nil {
			return reply.Refusal
		}
	}
	status := resp.Status
	if status < 400 {
		status = http.StatusBadGateway
	}
	return &furl.Refusal{Status: status, Message: "furl: the provider did not go on with its answer"}
}

// breakOff ends an answer that cannot be gone on with: by an error in the
// stream, or as the answer where nothing of it was sent.
func (g *Gateway) breakOff(w http.ResponseWriter, rt *route, m *onereply.Merger, refusal *furl.Refusal) {
	if !m.Begun() {
		g.refuse(w, rt, refusal)
		return
	}
	g.metrics.cut.Inc()
	writeErrorEvent(w, rt, refusal)
}

// cutOff tells the client of an answer that was cut off.
func (g *Gateway) cutOff(w http.ResponseWriter, r *http.Request, rt *route, m *onereply.Merger, cut error) {
	if cut == nil || errors.Is(cut, upstream.ErrClientGone) {
		return
	}
	g.metrics.cut.Inc()
	g.log.Warn("an answer was cut off", "path", upstream.Path(r.URL), "error", upstream.Text(cut))
	refusal := &furl.Refusal{Status: http.StatusBadGateway, Message: "furl: the provider's answer was cut off"}
	switch {
	case m.Streams():
		writeErrorEvent(w, rt, refusal)
	case m.Begun():
		_ = http.NewResponseController(w).Flush() // what came is the client's
		panic(http.ErrAbortHandler)
	default:
		g.refuse(w, rt, refusal)
	}
}

func (g *Gateway) unrecorded(x *session.Exchange, err error) {
	g.metrics.unrecorded.Inc()
	g.log.Error("an answer was not recorded", "session", x.Session.ID(), "error", upstream.Text(err))
}

// writeErrorEvent ends a stream so that no client takes it for whole.
func writeErrorEvent(w http.ResponseWriter, rt *route, refusal *furl.Refusal) {
	if event, data := rt.codec.ErrorEvent(refusal); event != "" {
		fmt.Fprintf(w, "\n\nevent: %s\ndata: %s\n\n", event, data)
	} else {
		fmt.Fprintf(w, "\n\ndata: %s\n\n", data)
	}
}
