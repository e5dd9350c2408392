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

// call observes one request to a model for metrics, traces and the log. It also
// runs the work that remains after the response. It does not change the request.
type call struct {
	statusWriter            // of the client
	g                       *Gateway
	format                  furl.Format
	model                   string // the catalog's name, or "other"
	start                   time.Time
	decode, overhead        time.Duration     // from the start until the request was decoded, and until it was ready to send
	sentAt                  time.Time         // when the exchange was ready to send, by the wall clock
	paused                  *pausedSession    // to be kept alive after the request
	firstByte               time.Duration     // time to the first byte of the provider's latest response
	x                       *session.Exchange // nil: the request is sent unchanged
	operation               string
	path                    string
	responded               bool // the provider has responded
	began                   bool // a new session was counted
	local                   bool // furl has responded, and the request is not sent
	trace                   requestSpan
	received                *receivedBody
	r                       *http.Request
	rt                      *route
	took                    time.Duration // until the response to the client ended
	afterResponse, cleanups []func()      // run after the response
}

type callKey struct{}

// newCall returns the call of a request, and the request with the call in its
// context.
func (g *Gateway) newCall(w http.ResponseWriter, r *http.Request, rt *route) (*call, *http.Request) {
	g.inFlight.Add(1)
	c := &call{statusWriter: statusWriter{ResponseWriter: w}, g: g, rt: rt, format: rt.codec.Format(), model: otherModel, start: time.Now(), operation: operation(rt), path: upstream.Path(r.URL)}
	r = c.trace.start(g, r, rt)
	c.r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	return c, c.r
}

// callOf returns the call in a request's context. newCall must have been called.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// otherModel is the metrics label of all models that are not in the catalog.
const otherModel = "other"

// decoded observes the decoded request.
func (c *call) decoded(req *protocol.Request) {
	c.decode = time.Since(c.start)
	if req.Ambiguous != "" {
		c.g.metrics.undecoded.Inc()
	}
	if name := c.g.sessions.KnownModel(req.Model); name != "" {
		c.model = name
	}
	c.trace.decoded(req, c.operation)
}

// hooks returns the hooks by which furlhttp reports to the call.
func (c *call) hooks() furlhttp.Hooks {
	return furlhttp.Hooks{
		Passed: c.passed, Decoded: c.decoded,
		Prepared:        c.prepared,
		Shortened:       func(*session.Exchange) { c.g.metrics.recovered.Inc() },
		ThinkingLeftOut: func(*session.Exchange) { c.g.metrics.thinking.Inc() },
		Sent:            c.sent, Replied: c.replied,
		Panicked: func(p any) { c.g.logPanic(c.path, p) },
	}
}

// prepared observes the request before it is sent.
func (c *call) prepared(x *session.Exchange) {
	c.x, c.overhead = x, time.Since(c.start)
	if x.Session == nil || c.rt.count {
		return
	}
	key := x.Session.Info().SessionKey
	c.sentAt = c.g.wallClock()
	c.g.keeper.begin(key)
	c.onEnd(func() { c.g.keeper.end(key, c.paused) })
}

// passed observes that the request is sent unchanged.
func (c *call) passed(why furlhttp.Passed, err error) {
	switch why {
	case furlhttp.PassedUndecoded:
		c.g.metrics.undecoded.Inc()
		c.g.log.Info("request sent unchanged and not recorded: it could not be decoded", "path", c.path, "error", upstream.Text(err))
	case furlhttp.PassedAuxiliary:
		c.g.metrics.auxiliary.Inc()
	case furlhttp.PassedCommand:
		c.local = true
		c.g.log.Info("answered a command to furl", "path", c.path)
	}
}

// RoundTrip sends a request to the provider. It implements http.RoundTripper.
func (c *call) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := c.beginSession(r.Context()); err != nil {
		return nil, err
	}
	began := time.Now()
	resp, err := c.rt.up.RoundTrip(c.received.asReceived(r))
	c.firstByte = time.Since(began)
	if m := c.g.o.Models; m != nil && err == nil && resp.StatusCode < 300 && !c.rt.count && c.x != nil && c.x.Fit != nil {
		m.Ask(c.rt.up, c.format, c.x.Fit.Model, r.Header)
	}
	return resp, err
}

// sent observes what furl changed in the request.
func (c *call) sent(x *session.Exchange, _ error) {
	c.g.metrics.prepared(x)
	c.trace.prepared(x)
	c.g.logRequest(c.r, x, c.overhead)
}

// responseStarted observes the first byte of the provider's response.
func (c *call) responseStarted(resp *http.Response) {
	if c.local {
		return
	}
	c.responded = true
	c.g.metrics.firstByte.WithLabelValues(string(c.format)).Observe(c.firstByte.Seconds())
	c.trace.firstByte(c.firstByte)
	if c.x != nil {
		resp.Header.Add("Server-Timing", c.timing())
	}
}

// failed writes the response to the client when the provider sent none.
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

// replied observes a reply, and starts a summary if one is due.
func (c *call) replied(x *session.Exchange, r furlhttp.Reply) {
	m := c.g.metrics
	if r.DecodeErr != nil {
		m.unread.Inc()
	}
	if r.RecordErr != nil {
		m.unrecorded.Inc()
	}
	m.recalls.Add(float64(r.Recalls))
	m.replied(c.model, r.Fit, r.Reply)
	c.trace.replied(r.Fit, r.Reply)
	if r.Last && r.RecordErr == nil {
		c.g.summarize(c.r, c.rt, x, r.Reply)
		c.paused = c.pausedAfter(x, r.Reply)
	}
}

// stagesOf returns the stages of furl's part of an exchange and their durations,
// in order, without those that took no time.
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

// serverTiming builds the value of a Server-Timing header.
type serverTiming struct{ strings.Builder }

func (t *serverTiming) add(name string, d time.Duration) {
	if t.Len() > 0 {
		t.WriteString(", ")
	}
	fmt.Fprintf(t, "%s;dur=%.2f", name, float64(d.Microseconds())/1000)
}

// The response to a client ends when its handler returns. So furl records the
// reply after that, on another goroutine. A session's next request waits for the
// record (package session), and so do readers of furl's API (Gateway.waitBriefly).

// background is the set of goroutines that work after the end of a response.
type background struct {
	mu   sync.Mutex
	open map[chan struct{}]struct{}
}

// run runs f on another goroutine.
func (a *background) run(f func()) {
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

// wait waits for the goroutines that run now, not for those started meanwhile,
// or until ctx ends.
func (a *background) wait(ctx context.Context) {
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

// maxRecordWait bounds how long a reader of the API waits for replies to be
// recorded.
const maxRecordWait = 5 * time.Second

// waitBriefly is Wait with a timeout, for readers of the API.
func (g *Gateway) waitBriefly(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxRecordWait)
	defer cancel()
	g.Wait(ctx)
}

// Wait waits until the replies that clients have received are recorded, or ctx
// ends. A client receives the end of a reply a moment before it is recorded.
func (g *Gateway) Wait(ctx context.Context) { g.background.wait(ctx) }

// runAfterResponse runs f once the response to the client has ended. Functions
// run in the order they were added, before those of onEnd.
func (c *call) runAfterResponse(f func()) { c.afterResponse = append(c.afterResponse, f) }

// onEnd runs f when all work of the request has ended. Functions run in
// reverse order, like deferred ones.
func (c *call) onEnd(f func()) { c.cleanups = append(c.cleanups, f) }

// end ends the call; the handler defers it. It logs error responses, whether of
// furl or of the provider.
func (c *call) end() {
	c.took = time.Since(c.start)
	if c.status >= 400 {
		by := "furl"
		if c.responded {
			by = "provider"
		}
		c.g.log.Info("request failed", "path", c.path, "status", c.status, "by", by, "model", c.model, "took", c.took)
	}
	if len(c.afterResponse) == 0 {
		c.finish()
		return
	}
	c.g.background.run(func() {
		defer c.finish()
		defer c.g.recoverAfter(c.path)
		for i := 0; i < len(c.afterResponse); i++ { // a function may add another
			c.afterResponse[i]()
		}
	})
}

// finish releases the resources of the call, and ends its span and metrics.
func (c *call) finish() {
	defer c.g.recoverAfter(c.path)
	defer func() {
		c.g.inFlight.Add(-1)
		c.trace.end(c.status)
		c.g.metrics.ended(string(c.format), c.model, c.status, c.took)
	}()
	for _, f := range c.cleanups {
		defer f()
	}
}
