package gateway

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/furlhq/furl/furlhttp"
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
	end, ok := g.begin(c, r, rt)
	if !ok {
		return
	}
	c.onEnd(end)
	tenant := identityOf(r.Context()).Tenant
	received, err := g.readBody(c, r)
	if err != nil {
		g.refuse(c, rt, refusalOf(err))
		return
	}
	c.received = received
	body, header := received.data, received.header
	size := int64(len(body))
	c.onEnd(func() { g.counts(tenant, size+c.written) })
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
	transport, err := g.transport(c, r, sessions, body)
	if err != nil {
		g.refuse(c, rt, refusalOf(err))
		return
	}
	r.Header = header
	r.ContentLength = int64(len(body))
	g.forward(&c.statusWriter, r, &forwarding{
		transport: transport, body: body, responseStarted: c.responseStarted, failed: c.failed,
		cutOff: func(err error) []byte { return g.cutOff(r, rt, err) },
	})
}

// transport returns the transport of a request: furlhttp, or the upstream if the
// request is sent unchanged.
func (g *Gateway) transport(c *call, r *http.Request, sessions *session.Sessions, body []byte) (http.RoundTripper, error) {
	if on, _ := strconv.ParseBool(r.Header.Get(furlhttp.HeaderBypass)); on {
		g.metrics.bypassed.Inc()
		if !g.tryReserveDecoded(r.Context(), body) {
			return c, nil
		}
		return furlhttp.New(sessions, &furlhttp.Options{Base: c, MaxBody: g.o.MaxBody, Hooks: c.hooks(), Logger: g.log}), nil
	}
	ok, err := g.reserveDecoded(r.Context(), body)
	if err != nil {
		return nil, err
	}
	if !ok {
		g.metrics.undecoded.Inc()
		g.log.Warn("request sent unchanged and not recorded: too many messages and blocks, or too large", "path", upstream.Path(r.URL), "bytes", len(body), "max_parts", maxParts, "max_memory", maxDecoded)
		return c, nil
	}
	return furlhttp.New(sessions, &furlhttp.Options{
		Base: c, Recall: g.o.Recall, PassThreads: g.o.PassThreads, DryRun: g.o.DryRun, HourCache: g.hourCache(r), MaxBody: g.o.MaxBody, Finish: g.o.Finish,
		HoldBilling: g.o.HoldBilling && c.rt.up.Vendor() != upstream.Anthropic,
		Background:  c.runAfterResponse, Hooks: c.hooks(), Logger: g.log,
	}), nil
}

// requestBody is the body of a request, in memory.
type requestBody struct {
	io.Reader
	data []byte
}

// Bytes returns the body. It saves furlhttp a copy.
func (b *requestBody) Bytes() []byte { return b.data }

func (b *requestBody) Close() error { return nil }

// timing returns the value of the Server-Timing header: the time that furl took
// before the request was sent, its stages, and the time to the first byte of the
// provider's response.
func (c *call) timing() string {
	var t serverTiming
	t.add("furl", c.overhead)
	if c.decode > 0 {
		t.add("decode", c.decode)
	}
	for name, d := range stagesOf(c.x) {
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
	if x.Why != "" {
		attrs = append(attrs, "note", oneLine(x.Why))
	}
	g.log.Info("request", attrs...)
}

// oneLine returns a text without line breaks, for log lines and span attributes.
func oneLine(s string) string { return furlhttp.OneLine(s) }
