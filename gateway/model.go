package gateway

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// serveModel serves a request to a model: it authorizes and reads the request, and
// sends it through furlhttp.
func (g *Gateway) serveModel(w http.ResponseWriter, r *http.Request, rt *route) {
	c, r := g.newCall(w, r, rt)
	defer c.end()
	r, ok := g.authorizeRequest(c, r, rt)
	if !ok {
		return
	}
	c.r = r
	end, refusal := g.begin(c.Header(), r)
	if refusal != nil {
		g.refuse(c, rt, refusal)
		return
	}
	c.onEnd(func() { end(c.bytes()) })
	received, err := g.readBody(c, r)
	if err != nil {
		g.refuse(c, rt, refusalOf(err))
		return
	}
	c.received = received
	header := received.header
	// The slot is taken after the body is read, so that clients that never send
	// their body do not use up the slots.
	select {
	case g.slots <- struct{}{}:
		c.onEnd(func() { <-g.slots })
	default:
		g.refuse(c, rt, &protocol.Refusal{Status: http.StatusServiceUnavailable, Message: "furl: too many concurrent requests; try again later"})
		return
	}
	sessions := g.sessionsOf(r)
	c.onEnd(g.inFlightByTenant.begin(sessions.Tenant()))
	c.trace.inject(r.Context(), header)
	r.Header, r.ContentLength = header, int64(len(received.data))
	if resp, err := g.exchange(c, r, sessions); err != nil {
		c.failed(err)
	} else if resp != nil {
		if !c.recording {
			c.countUnrecorded(resp)
		}
		c.relay(resp)
	}
	c.clean = true
}

// exchange sends a request to its provider, with the reductions of its session, and
// returns the response for the client, nil if furl has answered the request itself.
func (g *Gateway) exchange(c *call, r *http.Request, sessions *session.Sessions) (*http.Response, error) {
	ctx, body := r.Context(), c.received.data
	if furlhttp.IsTrue(r.Header, furlhttp.HeaderBypass) {
		return g.bypass(c, r, sessions)
	}
	begun := time.Since(c.start)
	x, err := exchange.Of(sessions).Receive(ctx, &exchange.Received{
		API: c.rt.codec, Endpoint: c.rt.endpoint, Path: r.URL.Path, Body: body, PassThreads: g.o.PassThreads,
		Hints:   func(req *protocol.Request) protocol.Hints { return furlhttp.HintsOf(r.Header.Get, req) },
		Reserve: func(n int64, parts int) error { return g.reserveDecoded(ctx, n, parts) },
	}, g.beginOptions(c, r))
	if e, ok := errors.AsType[*statusError](err); ok { // no memory
		g.refuse(c, c.rt, refusalOf(e))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.decode = begun + x.Took.Decode
	c.receive(x)
	c.request = x.Request()
	switch {
	case x.Local != nil:
		c.answer(x)
		return nil, nil
	case x.Passed != 0:
		return c.post(ctx, x.Body)
	}
	c.prepare(x)
	resp, err := x.Send(ctx, exchange.SendOptions{Post: c.post, Finish: g.o.Finish, Later: true})
	c.sent()
	if err != nil {
		return nil, err
	}
	furlhttp.Describe(resp.Header, &x.Exchange, r.Header.Get(furlhttp.HeaderSession))
	resp, err = x.Relay(resp)
	c.recording = x.Reads()
	return resp, err
}

// bypass sends a request unchanged. Nothing hides the images in it that the provider
// refuses, so a note says that there are some.
func (g *Gateway) bypass(c *call, r *http.Request, sessions *session.Sessions) (*http.Response, error) {
	g.metrics.bypassed.Inc()
	resp, err := c.post(r.Context(), c.received.data)
	if err == nil && g.tryReserveDecoded(r.Context(), c.received.data) {
		furlhttp.DescribeBypass(resp.Header, sessions, c.rt.codec, c.received.data)
	}
	return resp, err
}

func (g *Gateway) beginOptions(c *call, r *http.Request) exchange.BeginOptions {
	o := exchange.BeginOptions{
		Recall: exchange.KeepRecall, DryRun: g.o.DryRun || furlhttp.IsTrue(r.Header, furlhttp.HeaderDryRun), HourCache: g.hourCache(r),
		HoldBilling: g.o.HoldBilling && c.rt.up.Vendor() != upstream.Anthropic,
	}
	if g.o.Recall {
		o.Recall = exchange.OfferRecall
	}
	return o
}

// timing returns the value of the Server-Timing header: the time that furl took
// before the request was sent, its stages, and the time to the first byte of the
// provider's response.
func (c *call) timing() string {
	var t serverTiming
	t.add("furl", c.overhead)
	if c.decode > 0 {
		t.add("decode", c.decode)
	}
	for name, d := range stagesOf(&c.x.Exchange) {
		t.add(name, d)
	}
	if c.firstByte > 0 {
		t.add("upstream", c.firstByte)
	}
	return t.String()
}

// logRequest logs a request and what furl changed in it.
func (g *Gateway) logRequest(r *http.Request, x *session.Exchange, took time.Duration) {
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
	if x.Fit != nil && x.Fit.Repair != nil {
		r := x.Fit.Repair
		attrs = append(attrs, "repaired", oneLine(strings.Join(r.Files, ", ")), "repair_tokens", r.After-r.Before, "rewritten", r.Rewritten)
	}
	if x.Why != "" {
		attrs = append(attrs, "note", oneLine(x.Why))
	}
	g.log.Info("request", attrs...)
}

// oneLine returns a text without line breaks, for log lines and span attributes.
func oneLine(s string) string { return furlhttp.OneLine(s) }
