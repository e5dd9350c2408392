package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// Headers that a client may send and that it gets. docs/api.md explains them.
const (
	headerSession    = session.HeaderSession
	headerBypass     = "X-Furl-Bypass"
	headerBefore     = "X-Furl-Tokens-Before"
	headerAfter      = "X-Furl-Tokens-After"
	headerReductions = "X-Furl-Reductions"
	headerThinking   = "X-Furl-Thinking-Left-Out"
	headerNote       = "X-Furl-Note"
)

// model serves a request to a model.
func (g *Gateway) model(w http.ResponseWriter, r *http.Request, rt *route) {
	c, r := g.follow(w, r, rt)
	defer c.end()
	w = c
	if !g.admitted(w, r, rt) {
		return
	}
	body, header, err := g.read(w, r)
	if err != nil {
		g.refuse(w, rt, refusalOf(err))
		return
	}
	// Only now: clients that never send their body must not keep others out.
	select {
	case g.slots <- struct{}{}:
		c.finally(func() { <-g.slots })
	default:
		g.refuse(w, rt, &furl.Refusal{Status: http.StatusServiceUnavailable, Message: "furl: too many requests are under way"})
		return
	}
	sessions, err := g.sessionsOf(r)
	if err != nil {
		g.refuse(w, rt, refusalOf(err))
		return
	}
	c.finally(g.busy.begin(sessions.Tenant()))
	c.trace.carry(r.Context(), header)
	out := &upstream.Request{Method: r.Method, URL: r.URL, Header: header, Body: body, Understand: true}
	x, err := g.exchange(r, rt, sessions, body)
	if refused, ok := errors.AsType[*statusError](err); ok {
		g.refuse(w, rt, refusalOf(refused))
		return
	}
	if err != nil {
		g.refuse(w, rt, unrecordedRefusal)
		return
	}
	if x == nil { // not furl's business: as it came
		out.Understand = false
		resp, err := rt.up.Do(r.Context(), out)
		c.upstream(resp, err)
		g.relay(w, r, rt, resp, err, nil)
		return
	}
	c.finally(x.Drop)
	own := time.Since(c.begun)
	resp, err := g.send(r.Context(), rt, x, out)
	if errors.Is(err, errUnrecorded) {
		g.refuse(w, rt, unrecordedRefusal)
		return
	}
	c.upstream(resp, err)
	g.tell(w.Header(), x)
	tellSession(w.Header(), r.Header.Get(headerSession))
	w.Header().Set("Server-Timing", c.timing(x, own, resp))
	g.note(r, x, own)
	if rt.count {
		g.relay(w, r, rt, resp, err, nil)
		return
	}
	if x.Offered() {
		g.recall(w, r, rt, x, out, resp, err)
		return
	}
	g.relay(w, r, rt, resp, err, x)
}

// unrecordedRefusal answers a request that may not go on unrecorded.
var unrecordedRefusal = &furl.Refusal{Status: http.StatusServiceUnavailable, Message: "furl: recording failed; request refused (gateway.refuse is set)"}

// errUnrecorded says that the provider has accepted a request which could not be
// recorded and must not go on without that.
var errUnrecorded = errors.New("recording failed")

// send sends what an exchange has to send. What the request brought is committed
// once the provider has accepted it, before the client gets any of the answer: a
// request that was refused, or that did not reach its provider, leaves nothing
// in the session. The answer to send on is the first one that is right: a prompt
// that was too long is sent again, shorter, and so is one that others have made
// wrong in the meantime.
func (g *Gateway) send(ctx context.Context, rt *route, x *session.Exchange, out *upstream.Request) (*upstream.Response, error) {
	for {
		out.Body = x.Body
		resp, err := rt.up.Do(ctx, out)
		if err == nil && !rt.count {
			resp, err = g.overflow(ctx, rt, x, out, resp)
		}
		if err != nil || resp.Status >= 300 {
			x.Drop()
			return resp, err
		}
		resend, err := x.Commit(ctx)
		if err == nil && !resend {
			return resp, nil
		}
		_ = resp.Close() // its answer is discarded
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnrecorded, err)
		}
	}
}

// exchange puts a request into its session. It is nil if the request is to go
// on as it came: it cannot be read, the client wants it so, or it stands beside
// the conversation. An error says that it is not to go on.
func (g *Gateway) exchange(r *http.Request, rt *route, sessions *session.Sessions, body []byte) (x *session.Exchange, err error) {
	defer g.survive(r, &x)
	if on, _ := strconv.ParseBool(r.Header.Get(headerBypass)); on {
		g.metrics.bypassed.Inc()
		return nil, nil
	}
	if ok, err := g.decodable(r.Context(), body); err != nil {
		return nil, err
	} else if !ok {
		g.metrics.undecoded.Inc()
		g.log.Warn("request sent unchanged: it has too many messages and blocks, or too many bytes", "path", upstream.Path(r.URL), "bytes", len(body), "max_parts", maxParts, "max_memory", maxDecoded)
		return nil, nil
	}
	req, err := sessions.Decode(rt.codec, body)
	if err != nil {
		// The provider says better what is wrong with it.
		g.metrics.undecoded.Inc()
		g.log.Info("a request could not be read and goes on as it came", "path", upstream.Path(r.URL), "error", upstream.Text(err))
		return nil, nil
	}
	if req.Ambiguous != "" {
		g.metrics.undecoded.Inc()
	}
	req.Model = cmp.Or(req.Model, r.PathValue("deployment"))
	callOf(r.Context()).decoded(req)
	hints := session.HintsOf(r.Header.Get, req)
	hints.Answers, hints.Recall = true, g.o.Recall
	if rt.count {
		x, err := g.begin(r.Context(), r, rt, sessions, req, hints)
		if err != nil {
			return nil, nil // its size can be had all the same
		}
		return x, nil
	}
	if req.Ambiguous == "" && aside(req, hints) {
		g.metrics.aside.Inc()
		return nil, nil
	}
	x, err = g.begin(r.Context(), r, rt, sessions, req, hints)
	if err != nil {
		g.log.Debug("a request was not begun", "path", upstream.Path(r.URL), "error", upstream.Text(err))
		return nil, err
	}
	return x, nil
}

// relay hands the answer to the client and then to the session.
func (g *Gateway) relay(w http.ResponseWriter, r *http.Request, rt *route, resp *upstream.Response, err error, x *session.Exchange) {
	if err != nil {
		g.fail(w, r, rt, err)
		return
	}
	defer resp.Close()
	var observer upstream.Observer
	if x != nil && x.Session != nil {
		observer = upstream.Understand(rt.codec, resp, func(reply *furl.Reply, err error) {
			g.record(r.Context(), x, reply, err)
			g.summarize(r, rt, x, reply)
		})
	}
	relayed, err := rt.up.Relay(w, resp, observer)
	if err == nil || errors.Is(err, upstream.ErrClientGone) {
		if observer != nil { // the client has all of it; what is left is furl's own
			callOf(r.Context()).after(func() { <-relayed.Observed })
		}
		return
	}
	<-relayed.Observed
	g.metrics.cut.Inc()
	g.log.Warn("an answer was cut off", "path", upstream.Path(r.URL), "error", upstream.Text(err))
	if !resp.Events() {
		panic(http.ErrAbortHandler)
	}
	// A stream that just ends looks whole to some clients.
	event, data := rt.codec.ErrorEvent(&furl.Refusal{Status: http.StatusBadGateway, Message: "furl: the provider's answer was cut off"})
	if event != "" {
		fmt.Fprintf(w, "\n\nevent: %s\ndata: %s\n\n", event, data)
	} else {
		fmt.Fprintf(w, "\n\ndata: %s\n\n", data)
	}
}

// record hands what was answered to the session.
func (g *Gateway) record(ctx context.Context, x *session.Exchange, reply *furl.Reply, err error) {
	if err != nil {
		g.metrics.unread.Inc()
		g.log.Warn("an answer could not be read", "session", x.Session.ID(), "error", upstream.Text(err))
	}
	if err := x.Done(ctx, reply); err != nil {
		g.metrics.unrecorded.Inc()
		g.log.Error("an answer was not recorded", "session", x.Session.ID(), "error", upstream.Text(err))
	}
	callOf(ctx).answered(x.Fit, reply)
}

// tell says in the answer's header what was done.
func (g *Gateway) tell(h http.Header, x *session.Exchange) {
	if x.Session != nil && x.Session.Stored() {
		h.Set(headerSession, string(x.Session.ID()))
	}
	if x.Fit != nil {
		h.Set(headerBefore, strconv.Itoa(x.Fit.Plan.Before))
		h.Set(headerAfter, strconv.Itoa(x.Fit.Plan.After))
		h.Set(headerReductions, strconv.Itoa(len(x.Fit.Plan.Reductions)))
		if n := x.Fit.View.Dropped; n > 0 {
			h.Set(headerThinking, strconv.Itoa(n))
		}
	}
	tellPlan(h, x)
	if x.Why != "" {
		h.Set(headerNote, oneLine(x.Why))
	}
}

// note logs and counts what was done.
func (g *Gateway) note(r *http.Request, x *session.Exchange, took time.Duration) {
	callOf(r.Context()).prepared(x)
	attrs := []any{"path", upstream.Path(r.URL), "took", took, "bytes", len(x.Body)}
	if x.Dry {
		attrs = append(attrs, "dry_run", true)
	}
	if x.Session != nil {
		attrs = append(attrs, "session", x.Session.ID())
	}
	if x.Fit != nil {
		attrs = append(attrs, "model", oneLine(x.Fit.Model), "tokens", x.Fit.Plan.After, "reductions", len(x.Fit.Plan.Reductions), "thinking_left_out", x.Fit.View.Dropped)
	}
	if x.Why != "" {
		attrs = append(attrs, "note", oneLine(x.Why))
	}
	g.log.Info("request", attrs...)
}

// oneLine makes words fit for a header or a line of a log.
func oneLine(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c < ' ' || c > '~' {
			out[i] = ' '
		}
	}
	return string(bytes.TrimSpace(out[:min(len(out), 300)]))
}
