package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/quota"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// call observes one request to a model for metrics, traces and the log. It also
// runs the work that remains after the response. It does not change the request.
type call struct {
	statusWriter     // of the client
	g                *Gateway
	format           furl.Format
	model            string // the catalog's name, or "other"
	start            time.Time
	decode, overhead time.Duration      // from the start until the request was decoded, and until it was ready to send
	sentAt           time.Time          // when the exchange was ready to send, by the wall clock
	paused           *pausedSession     // to be kept alive after the request
	firstByte        time.Duration      // time to the first byte of the provider's latest response
	x                *exchange.Exchange // nil: the request is sent unchanged
	request          *protocol.Request  // of the client; nil: not decoded
	operation        string
	path             string
	responded        bool      // the provider has responded
	began            bool      // a new session was counted
	account          quota.Key // that the provider's response is about
	allowed          bool      // no limit in dollars or tokens refuses the request
	recording        bool      // the reply is to be recorded after the response
	trace            requestSpan
	received         *receivedBody
	r                *http.Request
	rt               *route
	took             time.Duration // until the response to the client ended
	cleanups         []func()      // run when all work has ended
	buffers          [][]byte      // with the body of the request, as received and decompressed
	unread           atomic.Int32  // bodies sent to the provider that are not read to their end yet
	lent             bool          // the body may be used after the call
	clean            bool          // the work that has ended did not panic
}

type callKey struct{}

// newCall returns the call of a request, and the request with the call in its
// context.
func (g *Gateway) newCall(w http.ResponseWriter, r *http.Request, rt *route) (*call, *http.Request) {
	g.inFlight.Add(1)
	c := &call{statusWriter: statusWriter{ResponseWriter: w}, g: g, rt: rt, format: rt.codec.Format(), model: otherModel, start: time.Now(), operation: operationName(rt), path: upstream.Path(r.URL)}
	r = c.trace.start(g, r, rt)
	c.r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	return c, c.r
}

// callOf returns the call in a request's context. newCall must have been called.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// otherModel is the metrics label of all models that are not in the catalog.
const otherModel = "other"

// bytes returns the size of the request and of its response so far, 0 if the request was
// not read.
func (c *call) bytes() int64 {
	if c.received == nil {
		return 0
	}
	return int64(len(c.received.data)) + c.written
}

// receive observes the decoded request.
func (c *call) receive(x *exchange.Exchange) {
	switch x.Passed {
	case session.PassedUndecoded:
		c.g.metrics.undecoded.Inc()
		c.g.log.Info("request sent unchanged and not recorded: it could not be decoded", "path", c.path, "error", upstream.Text(x.Err))
	case session.PassedTooLarge:
		c.g.metrics.undecoded.Inc()
		c.g.log.Warn("request sent unchanged and not recorded: too many messages and blocks, or too large", "path", c.path, "bytes", len(x.Body), "max_parts", maxParts, "max_memory", maxDecoded)
	case session.PassedAuxiliary:
		c.g.metrics.auxiliary.Inc()
	case session.PassedCommand:
		c.g.log.Info("answered a command to furl", "path", c.path)
	case session.PassedPanic:
		c.lent = true
		c.g.logPanicError(c.path, x.Err)
	}
	req := x.Request()
	if req == nil {
		return
	}
	if req.Ambiguous != "" {
		c.g.metrics.undecoded.Inc()
	}
	if name := c.g.sessions.KnownModel(req.Model); name != "" {
		c.model = name
	}
	c.trace.decoded(req, c.operation)
}

// prepare observes the request before it is sent.
func (c *call) prepare(x *exchange.Exchange) {
	c.x, c.overhead = x, time.Since(c.start)
	if !x.Reads() {
		return
	}
	key := x.Session.Info().SessionKey
	c.sentAt = c.g.wallClock()
	c.g.keeper.begin(key)
	c.onEnd(func() { c.g.keeper.end(key, c.paused) })
}

// post sends a body to the provider.
func (c *call) post(ctx context.Context, body []byte) (*http.Response, error) {
	reads := c.x != nil && c.x.Reads()
	if reads {
		if err := c.beginSession(ctx, c.x.Session); err != nil {
			return nil, err
		}
	}
	limited, err := c.checkSpending(ctx, reads)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	out := c.received.request(c.r, body, &c.unread)
	if reads || limited {
		out.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := c.rt.up.RoundTrip(out.WithContext(ctx))
	c.firstByte = time.Since(began)
	if err == nil {
		c.readPlan(resp.Header)
	}
	if m := c.g.o.Models; m != nil && err == nil && resp.StatusCode < 300 && !c.rt.endpoint.Count && c.x != nil && c.x.Fit != nil {
		m.Ask(c.rt.up, c.format, c.x.Fit.Model, out.Header)
	}
	return resp, err
}

// answer sends furl's own answer.
func (c *call) answer(x *exchange.Exchange) {
	h, l := c.Header(), x.Local
	h.Set("Content-Type", l.ContentType)
	h.Set("Content-Length", strconv.Itoa(len(l.Body)))
	furlhttp.Describe(h, &x.Exchange, "")
	c.WriteHeader(l.Status)
	_, _ = c.Write(l.Body) // fails only if the client has disconnected
}

// sent observes what furl changed in the request, once the provider has responded.
func (c *call) sent() {
	c.g.metrics.prepared(&c.x.Exchange)
	c.trace.prepared(&c.x.Exchange)
	c.g.logRequest(c.r, &c.x.Exchange, c.overhead)
}

// relay sends the provider's response to the client.
func (c *call) relay(resp *http.Response) {
	c.responseStarted(resp)
	resp.Body = &cutBody{ReadCloser: resp.Body, ctx: c.r.Context(), client: &c.statusWriter, stream: wire.IsStream(resp.Header.Get("Content-Type")), cutOff: func(err error) []byte { return c.g.cutOff(c.r, c.rt, err) }}
	c.g.relay(&c.statusWriter, resp)
}

// responseStarted observes the first byte of the provider's response.
func (c *call) responseStarted(resp *http.Response) {
	c.responded = true
	c.g.metrics.firstByte.WithLabelValues(string(c.format)).Observe(c.firstByte.Seconds())
	c.trace.firstByte(c.firstByte)
	if c.x != nil {
		resp.Header.Add("Server-Timing", c.timing())
	}
}

// failed writes the response to the client when the provider sent none.
func (c *call) failed(err error) {
	c.trace.failed(err)
	if c.x != nil {
		furlhttp.Describe(c.Header(), &c.x.Exchange, c.r.Header.Get(furlhttp.HeaderSession))
		c.Header().Add("Server-Timing", c.timing())
	}
	if errors.Is(err, exchange.ErrRecall) || errors.Is(err, exchange.ErrUnrecorded) && c.x != nil && c.x.Committed {
		c.g.metrics.unrecorded.Inc()
	}
	c.g.fail(c, c.r, c.rt, err)
}

// record records the last reply, observes all of them, and starts a summary if one is due.
func (c *call) record() {
	x, m := c.x, c.g.metrics
	x.Finish()
	for i := range x.Replies {
		r := &x.Replies[i]
		if r.DecodeErr != nil {
			m.unread.Inc()
			c.g.logPanicError(c.path, r.DecodeErr)
		}
		if r.RecordErr != nil {
			m.unrecorded.Inc()
		}
		m.recalls.Add(float64(r.Recalls))
		m.replied(c.model, r.Fit, r.Reply)
		c.spent(r)
		c.usedPlan(r)
		c.trace.replied(r.Fit, r.Reply)
	}
	if n := len(x.Replies); n > 0 && x.Replies[n-1].RecordErr == nil {
		last := x.Replies[n-1].Reply
		c.g.summarize(c.r, c.rt, &x.Exchange, last)
		c.paused = c.pausedAfter(&x.Exchange, last)
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
	if !c.recording {
		c.finish()
		return
	}
	c.g.background.run(func() {
		defer c.finish()
		defer c.g.recoverAfter(c.path)
		was := c.clean
		c.clean = false
		c.record()
		c.clean = was
	})
}

// finish releases the resources of the call, and ends its span and metrics.
func (c *call) finish() {
	defer c.g.recoverAfter(c.path)
	defer func() {
		c.g.inFlight.Add(-1)
		c.trace.end(c.status)
		c.g.metrics.ended(string(c.format), c.model, c.status, c.took)
		c.g.metrics.recoveries(c.x)
		c.keepBuffers()
	}()
	for _, f := range c.cleanups {
		defer f()
	}
}
