package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// call follows one request to a model, for metrics, traces and the log, and has
// what is left done after its answer. It decides nothing about the request.
type call struct {
	noted        // the client's
	g            *Gateway
	format       furl.Format
	model        string // the catalogue's name, or "other"
	begun        time.Time
	decode, own  time.Duration     // until the request was decoded, and until it was sent
	firstByte    time.Duration     // of the provider's newest answer
	x            *session.Exchange // nil: the request is sent unchanged
	operation    string
	path         string
	answers      bool // the provider has answered
	trace        traced
	r            *http.Request
	rt           *route
	took         time.Duration // until the client had its answer
	afters, last []func()      // run after the answer
}

type callKey struct{}

// follow begins to follow a request.
func (g *Gateway) follow(w http.ResponseWriter, r *http.Request, rt *route) (*call, *http.Request) {
	g.underWay.Add(1)
	c := &call{noted: noted{ResponseWriter: w}, g: g, rt: rt, format: rt.codec.Format(), model: otherModel, begun: time.Now(), operation: operation(rt), path: upstream.Path(r.URL)}
	r = c.trace.begin(g, r, rt)
	c.r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	return c, c.r
}

// callOf is the call that a request's context belongs to: follow was called.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// otherModel is used for all models that the catalogue does not have.
const otherModel = "other"

// decoded notes what the request asks for.
func (c *call) decoded(req *protocol.Request) {
	c.decode = time.Since(c.begun)
	if req.Ambiguous != "" {
		c.g.metrics.undecoded.Inc()
	}
	if name := c.g.sessions.KnownModel(req.Model); name != "" {
		c.model = name
	}
	c.trace.decoded(req, c.operation)
}

// hooks tell the call what furlhttp does.
func (c *call) hooks() furlhttp.Hooks {
	return furlhttp.Hooks{
		Passed: c.passed, Decoded: c.decoded,
		Begun:     func(x *session.Exchange) { c.x, c.own = x, time.Since(c.begun) },
		Shortened: func(*session.Exchange) { c.g.metrics.recovered.Inc() },
		Sent:      c.sent, Replied: c.replied,
		Panicked: func(p any) { c.g.panicked(c.path, p) },
	}
}

// passed notes that the request is sent unchanged.
func (c *call) passed(why furlhttp.Passed, err error) {
	switch why {
	case furlhttp.PassedUndecoded:
		c.g.metrics.undecoded.Inc()
		c.g.log.Info("request sent unchanged: it could not be decoded", "path", c.path, "error", upstream.Text(err))
	case furlhttp.PassedAside:
		c.g.metrics.aside.Inc()
	}
}

// RoundTrip implements http.RoundTripper: it sends a request to the provider.
func (c *call) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := c.rt.up.RoundTrip(r)
	c.firstByte = time.Since(began)
	return resp, err
}

// sent notes what was done to the request.
func (c *call) sent(x *session.Exchange, _ error) {
	c.g.metrics.prepared(x)
	c.trace.prepared(x)
	c.g.note(c.r, x, c.own)
}

// answered notes the first byte of the provider's answer.
func (c *call) answered(resp *http.Response) {
	c.answers = true
	c.g.metrics.firstByte.WithLabelValues(string(c.format)).Observe(c.firstByte.Seconds())
	c.trace.firstByte(c.firstByte)
	if c.x != nil {
		resp.Header.Add("Server-Timing", c.timing())
	}
}

// failed answers the client when there is no answer of the provider's.
func (c *call) failed(w http.ResponseWriter, err error) {
	c.trace.failed(err)
	if c.x != nil {
		furlhttp.Describe(w.Header(), c.x, c.r.Header.Get(furlhttp.HeaderSession))
		w.Header().Add("Server-Timing", c.timing())
	}
	if errors.Is(err, furlhttp.ErrRecall) || errors.Is(err, furlhttp.ErrUnrecorded) && c.x != nil && c.x.Committed {
		c.g.metrics.unrecorded.Inc()
	}
	c.g.fail(w, c.r, c.rt, err)
}

// replied notes a reply, and has a summary written if one is due.
func (c *call) replied(x *session.Exchange, r furlhttp.Reply) {
	m := c.g.metrics
	if r.Unread != nil {
		m.unread.Inc()
	}
	if r.Unrecorded != nil {
		m.unrecorded.Inc()
	}
	m.recalls.Add(float64(r.Recalls))
	m.answered(c.model, r.Fit, r.Usage)
	c.trace.answered(r.Fit, r.Reply)
	if r.Last && r.Unrecorded == nil {
		c.g.summarize(c.r, c.rt, x, r.Reply)
	}
}

// stagesOf are the stages of furl's part in order, those that took any
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

// serverTiming is the value of a Server-Timing header.
type serverTiming struct{ strings.Builder }

func (t *serverTiming) add(name string, d time.Duration) {
	if t.Len() > 0 {
		t.WriteString(", ")
	}
	fmt.Fprintf(t, "%s;dur=%.2f", name, float64(d.Microseconds())/1000)
}

// A client's answer ends when its handler returns, so what is left to do for
// furl itself, above all to record the answer, is done after that. A client
// that asks on meanwhile is waited for in package session; whoever looks at
// furl's API sees what was answered before.

// afters is the work that goes on after requests which are over.
type afters struct {
	mu   sync.Mutex
	open map[chan struct{}]struct{}
}

// run runs f on a goroutine of its own.
func (a *afters) run(f func()) {
	done := make(chan struct{})
	a.mu.Lock()
	if a.open == nil {
		a.open = make(map[chan struct{}]struct{})
	}
	a.open[done] = struct{}{}
	a.mu.Unlock()
	go func() {
		defer func() {
			a.mu.Lock()
			delete(a.open, done)
			a.mu.Unlock()
			close(done)
		}()
		f()
	}()
}

// wait waits for what is under way now, and not for what comes in the meantime.
func (a *afters) wait(ctx context.Context) {
	a.mu.Lock()
	open := make([]chan struct{}, 0, len(a.open))
	for done := range a.open {
		open = append(open, done)
	}
	a.mu.Unlock()
	for _, done := range open {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// maxAfter bounds how long whoever looks waits for what is being recorded.
const maxAfter = 5 * time.Second

// wait is Wait for who looks.
func (g *Gateway) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxAfter)
	defer cancel()
	g.Wait(ctx)
}

// Wait waits until what clients have been answered is recorded, or ctx ends: a
// client has the end of an answer a moment before that.
func (g *Gateway) Wait(ctx context.Context) { g.afters.wait(ctx) }

// after has something done once the client's answer has ended, in the order in
// which it was asked for and before what finally was given.
func (c *call) after(f func()) { c.afters = append(c.afters, f) }

// finally has something done when all of the request is over, last first.
func (c *call) finally(f func()) { c.last = append(c.last, f) }

// end ends what follow began. It is deferred by the handler. An error that the
// client was answered is told to the log, whoever it was from.
func (c *call) end() {
	c.took = time.Since(c.begun)
	if c.status >= 400 {
		by := "furl"
		if c.answers {
			by = "provider"
		}
		c.g.log.Info("answered with an error", "path", c.path, "status", c.status, "by", by, "model", c.model, "took", c.took)
	}
	if len(c.afters) == 0 {
		c.finish()
		return
	}
	c.g.afters.run(func() {
		defer c.finish()
		defer c.g.containAfter(c.path)
		for i := 0; i < len(c.afters); i++ { // one may ask for another
			c.afters[i]()
		}
	})
}

// finish is the end of the end.
func (c *call) finish() {
	defer c.g.containAfter(c.path)
	defer func() {
		c.g.underWay.Add(-1)
		c.trace.end(c.status)
		c.g.metrics.ended(string(c.format), c.model, c.status, c.took)
	}()
	for _, f := range c.last {
		defer f()
	}
}
