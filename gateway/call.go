package gateway

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// call follows one request to a model: for metrics and traces, and for what is
// to be done behind its answer. It decides nothing about the request.
type call struct {
	noted        // the client's
	g            *Gateway
	format       furl.Format
	model        string // the catalogue's name, or "other"
	begun        time.Time
	decode       time.Duration
	operation    string
	path         string
	answers      bool // the provider has answered
	trace        traced
	took         time.Duration // until the client had its answer
	afters, last []func()      // see after.go
}

type callKey struct{}

// follow begins to follow a request.
func (g *Gateway) follow(w http.ResponseWriter, r *http.Request, rt *route) (*call, *http.Request) {
	g.underWay.Add(1)
	c := &call{noted: noted{ResponseWriter: w}, g: g, format: rt.codec.Format(), model: otherModel, begun: time.Now(), operation: operation(rt), path: upstream.Path(r.URL)}
	r = c.trace.begin(g, r, rt)
	return c, r.WithContext(context.WithValue(r.Context(), callKey{}, c))
}

// callOf is the call that a request's context belongs to: follow was called.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// otherModel stands for all models that the catalogue does not have.
const otherModel = "other"

// decoded notes what the request asks for.
func (c *call) decoded(req *furl.Request) {
	c.decode = time.Since(c.begun)
	if name := c.g.sessions.KnownModel(req.Model); name != "" {
		c.model = name
	}
	c.trace.decoded(req, c.operation)
}

// prepared notes what was done to the request before it went on.
func (c *call) prepared(x *session.Exchange) {
	c.g.metrics.prepared(x)
	c.trace.prepared(x)
}

// upstream notes the first byte of the provider's answer, or why there is none.
func (c *call) upstream(resp *upstream.Response, err error) {
	if c.answers = err == nil; c.answers {
		c.g.metrics.firstByte.WithLabelValues(string(c.format)).Observe(resp.FirstByte.Seconds())
		c.trace.firstByte(resp.FirstByte)
	}
	c.trace.failed(err)
}

// answered notes what came of what was sent.
func (c *call) answered(sent *session.Fit, reply *furl.Reply) {
	if reply != nil {
		c.g.metrics.answered(c.model, sent, reply.Usage)
		c.trace.answered(sent, reply)
	}
}

// stagesOf are the stages of furl's own part in order, those that took any
// time.
func stagesOf(x *session.Exchange) iter.Seq2[string, time.Duration] {
	return func(yield func(string, time.Duration) bool) {
		for _, s := range []struct {
			name string
			took time.Duration
		}{{"match", x.Took.Match}, {"plan", x.Took.Plan}, {"encode", x.Took.Encode}, {"store", x.Took.Store}} {
			if s.took > 0 && !yield(s.name, s.took) {
				return
			}
		}
	}
}

// timing is the Server-Timing header: all that furl took before the request
// went on, its stages, and the time to the first byte of the provider's answer.
func (c *call) timing(x *session.Exchange, all time.Duration, resp *upstream.Response) string {
	var b strings.Builder
	entry := func(name string, d time.Duration) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s;dur=%.2f", name, float64(d.Microseconds())/1000)
	}
	entry("furl", all)
	if c.decode > 0 {
		entry("decode", c.decode)
	}
	for name, d := range stagesOf(x) {
		entry(name, d)
	}
	if resp != nil {
		entry("upstream", resp.FirstByte)
	}
	return b.String()
}
