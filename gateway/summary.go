package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// Summaries are written in the background. When an exchange ends whose prompt was
// close to the trigger of its session's policy, the gateway requests a summary
// from the provider. The session uses it with its next reduction, so no request
// waits for it. A failed summary changes nothing; its session is retried after a
// backoff.

// SummaryOptions configure the writing of summaries. The zero value is useful.
type SummaryOptions struct {
	// Off disables summaries.
	Off bool
	// Model is the model that writes summaries, by its name in requests. The
	// conversation's provider must serve it with the same credential. If empty,
	// the conversation's model writes them.
	Model string
	// Key is an API key for summaries that a person requests on the page or by the API. If empty,
	// or if there are tenants, these are written with the client's credential, after
	// the session's next request.
	Key string
	// AtOnce is the largest number of concurrent summaries. A summary above it
	// is left to a later request. If zero, defaults to 4.
	AtOnce int
	// Timeout is the timeout of a summary. If zero, defaults to 5 minutes.
	Timeout time.Duration
}

// summaries runs the requests for summaries and limits their number.
type summaries struct {
	o     SummaryOptions
	slots chan struct{}
	work  sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	cancels     map[*summarizer]context.CancelFunc
	backoffs    map[furl.SessionKey]backoff    // sessions whose last summary failed
	pausedUntil map[*upstream.Client]time.Time // when to ask an overloaded provider again

	// wanted are the summaries that people have requested, written after the session's
	// next request.
	wanted map[furl.SessionKey]operation.Compaction

	wasted float64 // US dollars, for failed summaries

	requested, succeeded, failed atomic.Int64
	inputTokens, outputTokens    atomic.Int64 // input and output tokens
}

// backoff is the backoff of a session.
type backoff struct {
	times int
	until time.Time
}

// Backoff of a session after a failed summary, doubled each time, and the shortest
// pause of an overloaded provider.
const (
	minBackoff  = 2 * time.Minute
	maxBackoff  = time.Hour
	maxBackoffs = 4096
)

func newSummaries(o SummaryOptions) *summaries {
	o.AtOnce = cmp.Or(max(0, o.AtOnce), 4)
	o.Timeout = cmp.Or(max(0, o.Timeout), 5*time.Minute)
	return &summaries{
		o: o, slots: make(chan struct{}, o.AtOnce),
		cancels:     make(map[*summarizer]context.CancelFunc),
		backoffs:    make(map[furl.SessionKey]backoff),
		pausedUntil: make(map[*upstream.Client]time.Time),
	}
}

// Close waits until the last replies are recorded, cancels the summaries that are
// being written, and records those that are ready. Call it when no requests are in
// flight. Requests that arrive later are still served.
func (g *Gateway) Close() {
	g.background.wait(context.Background())
	g.keeper.dropAll()
	g.summaries.close()
	ctx, cancel := context.WithTimeout(context.Background(), maxRecording)
	defer cancel()
	g.recordSummaries(ctx, true)
}

// Interval and timeout of recording summaries of idle sessions.
const (
	recordInterval = time.Minute
	maxRecording   = 10 * time.Second // in Close
)

// RecordSummaries records the ready summaries of idle sessions once a minute until
// ctx ends; see session.Sessions.RecordSummaries.
func (g *Gateway) RecordSummaries(ctx context.Context) error {
	tick := time.NewTicker(recordInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			g.recordSummaries(ctx, false)
		}
	}
}

func (g *Gateway) recordSummaries(ctx context.Context, ending bool) {
	n, err := g.sessions.RecordSummaries(ctx, ending)
	if n > 0 {
		g.log.Info("recorded summaries of idle sessions", "summaries", n)
	}
	if err != nil {
		g.log.Warn("could not record summaries of idle sessions", "error", upstream.Text(err))
	}
}

// summarize starts a summary for the session of an exchange that has ended, if one
// is due.
func (g *Gateway) summarize(r *http.Request, rt *route, x *session.Exchange, reply *protocol.Reply) {
	sum := g.summaries
	if sum.o.Off || g.draining.Load() || x.Fit == nil || x.Dry || x.AskNothing || !reply.Complete || reply.Refusal != nil {
		return
	}
	if g.compactWanted(r, rt, x, reply) {
		return
	}
	compact := x.Session.SummaryStage(x.Fit)
	if compact == nil {
		return
	}
	a := g.newSummarizer(r, rt, x, reply)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sum.o.Timeout) // it outlives the request
	if !sum.begin(a, cancel, g.o.Now()) {
		cancel()
		return
	}
	compact.Summarizer = a
	s, fit, path := x.Session, x.Fit, upstream.Path(r.URL)
	sum.work.Go(func() {
		defer sum.end(a)
		defer g.recoverSummary(path)
		ready, err := s.PrepareSummary(ctx, fit, compact)
		g.summaryFinished(s, a, ready, err)
	})
}

// finished logs and counts the result of a request for a summary.
func (g *Gateway) summaryFinished(s *session.Session, a *summarizer, ready bool, err error) {
	sum := g.summaries
	attrs := []any{"session", s.ID(), "model", a.requestModel, "tokens", a.used.Prompt(), "written", a.used.Output, "took", g.o.Now().Sub(a.start)}
	sum.inputTokens.Add(int64(a.used.Prompt()))
	sum.outputTokens.Add(int64(a.used.Output))
	switch {
	case ready:
		sum.succeeded.Add(1)
		sum.resetBackoff(s.Info().SessionKey)
		g.log.Info("summary ready", attrs...)
		return
	case err == nil && !a.sent:
		return // too little to summarize, or another one is being prepared
	case err == nil:
		err = errNoSmaller
	case errors.Is(err, context.Canceled):
		return // the gateway is closing
	}
	sum.failed.Add(1)
	sum.addWasted(a.cost())
	if _, ok := g.spendingLimits(a.session.Tenant); ok { // no ledger has it
		g.spending.Aside(a.session.Tenant, s.Info().Hint, a.cost(), a.used.Prompt()+a.used.Output, g.o.Now())
	}
	sum.backOff(s.Info().SessionKey, g.o.Now())
	if a.retry > 0 {
		sum.pauseProvider(a.rt.up, g.o.Now(), a.retry)
	}
	g.log.Warn("summary failed", append(attrs, "error", upstream.Text(err))...)
}

var errNoSmaller = errors.New("the summary is not shorter than the messages it replaces")

// begin takes a slot for a summary. It returns false if all are taken, or the
// session or the provider must wait.
func (s *summaries) begin(a *summarizer, cancel context.CancelFunc, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || stillWaiting(now, s.backoffs[a.session].until, maxBackoff) || stillWaiting(now, s.pausedUntil[a.rt.up], maxBackoff) {
		return false
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return false
	}
	s.cancels[a] = cancel
	return true
}

func (s *summaries) end(a *summarizer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancels[a]()
	delete(s.cancels, a)
	<-s.slots
}

// backOff starts or doubles the backoff of a session.
func (s *summaries) backOff(key furl.SessionKey, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.backoffs) >= maxBackoffs {
		for k, r := range s.backoffs {
			if now.After(r.until) || len(s.backoffs) >= maxBackoffs {
				delete(s.backoffs, k)
			}
		}
	}
	r := s.backoffs[key]
	r.until = now.Add(min(minBackoff<<min(r.times, 10), maxBackoff))
	r.times++
	s.backoffs[key] = r
}

// addWasted adds the cost of a failed summary.
func (s *summaries) addWasted(dollars float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wasted += dollars
}

// wastedCost returns the cost of summaries that were never used, in US dollars:
// they failed or came too late.
func (g *Gateway) wastedCost() float64 {
	late := g.sessions.Stats().LateCost
	g.summaries.mu.Lock()
	defer g.summaries.mu.Unlock()
	return g.summaries.wasted + late
}

// resetBackoff ends the backoff of a session.
func (s *summaries) resetBackoff(key furl.SessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.backoffs, key)
}

// pauseProvider sends a provider no requests for summaries for a while.
func (s *summaries) pauseProvider(up *upstream.Client, now time.Time, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := now.Add(wait); !stillWaiting(now, s.pausedUntil[up], maxBackoff) || s.pausedUntil[up].Before(until) {
		s.pausedUntil[up] = until
	}
}

// stillWaiting reports whether until is in the future. A wait above longest means
// that the clock was set back, and is ignored.
func stillWaiting(now, until time.Time, longest time.Duration) bool {
	left := until.Sub(now)
	return left > 0 && left <= longest
}

// close cancels the summaries that are being written and waits for their
// goroutines.
func (s *summaries) close() {
	s.mu.Lock()
	s.closed = true
	for _, cancel := range s.cancels {
		cancel()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// retryAfter returns how long to wait before the next request to an overloaded
// provider, 0 if the response does not report overload.
func retryAfter(resp *http.Response) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded:
	default:
		return 0
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		return min(max(time.Duration(n)*time.Second, minBackoff), maxBackoff)
	}
	return minBackoff
}

// statusOverloaded is Anthropic's status for an overloaded API.
const statusOverloaded = 529

// registerCounters registers the counters of summaries.
func (s *summaries) registerCounters(counter func(name, help string, n *atomic.Int64)) {
	counter("furl_summaries_asked_total", "Requests for summaries sent to providers.", &s.requested)
	counter("furl_summaries_prepared_total", "Summaries written successfully.", &s.succeeded)
	counter("furl_summaries_failed_total", "Summaries that failed.", &s.failed)
	counter("furl_summaries_tokens_read_total", "Input tokens of requests for summaries.", &s.inputTokens)
	counter("furl_summaries_tokens_written_total", "Output tokens of requests for summaries.", &s.outputTokens)
}
