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
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// Summaries are written beside the requests: when an exchange that has come
// near the size at which its session's policy acts is over, the provider is
// asked for one, and the session shows it when it next hides something. No
// request waits. A summary that is of no use changes nothing, and its session
// rests for a while before the next try.

// SummaryOptions say who writes summaries. The zero value is useful.
type SummaryOptions struct {
	// Off sends no requests for summaries.
	Off bool
	// Model writes them, under the name that requests give it; the provider
	// of the conversation must serve it, with the same credential. If empty,
	// the conversation's own model.
	Model string
	// AtOnce bounds how many are written at the same time; what is more is
	// left to a later request. If zero, 4.
	AtOnce int
	// Timeout bounds how long one may take. If zero, 5 minutes.
	Timeout time.Duration
}

// summaries is the work that goes on beside the requests.
type summaries struct {
	o     SummaryOptions
	slots chan struct{}
	work  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	cancels map[*asker]context.CancelFunc
	resting map[furl.SessionKey]rest       // whose summary was of no use
	busy    map[*upstream.Client]time.Time // providers that want to be left alone

	wasted float64 // dollars, on summaries of no use

	asked, prepared, failed atomic.Int64
	read, written           atomic.Int64 // tokens of the requests for summaries
}

// rest is how long no summary is tried for.
type rest struct {
	times int
	until time.Time
}

// How long a session rests after a summary that was of no use, doubled each
// time, and a provider at least after it said that it has too much to do.
const (
	firstRest  = 2 * time.Minute
	longRest   = time.Hour
	maxResting = 4096
)

func newSummaries(o SummaryOptions) *summaries {
	o.AtOnce = cmp.Or(max(0, o.AtOnce), 4)
	o.Timeout = cmp.Or(max(0, o.Timeout), 5*time.Minute)
	return &summaries{
		o: o, slots: make(chan struct{}, o.AtOnce),
		cancels: make(map[*asker]context.CancelFunc),
		resting: make(map[furl.SessionKey]rest),
		busy:    make(map[*upstream.Client]time.Time),
	}
}

// Close waits until the last answers are recorded, gives up the summaries that
// are being written, waits for that, and records those that are ready. It is for
// when no request is under way any more; those that come all the same are
// served.
func (g *Gateway) Close() {
	g.afters.wait(context.Background())
	g.summaries.close()
	ctx, cancel := context.WithTimeout(context.Background(), maxPlacing)
	defer cancel()
	g.placeSummaries(ctx, true)
}

// Bounds of the recording of summaries that wait.
const (
	placeEvery = time.Minute
	maxPlacing = 10 * time.Second // at the end
)

// PlaceSummaries records, once a minute until ctx ends, the summaries that wait
// in sessions which rest (session.Sessions.PlaceSummaries).
func (g *Gateway) PlaceSummaries(ctx context.Context) error {
	tick := time.NewTicker(placeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			g.placeSummaries(ctx, false)
		}
	}
}

func (g *Gateway) placeSummaries(ctx context.Context, ending bool) {
	n, err := g.sessions.PlaceSummaries(ctx, ending)
	if n > 0 {
		g.log.Info("summaries that no request came for were recorded", "summaries", n)
	}
	if err != nil {
		g.log.Warn("summaries that wait were not recorded", "error", upstream.Text(err))
	}
}

// summarize has a summary prepared for the session of an exchange that is over,
// if one is due.
func (g *Gateway) summarize(r *http.Request, rt *route, x *session.Exchange, reply *protocol.Reply) {
	sum := g.summaries
	if sum.o.Off || g.draining.Load() || x.Fit == nil || x.Dry || !reply.Complete || reply.Refusal != nil {
		return
	}
	compact := x.Session.SummaryDue(x.Fit)
	if compact == nil {
		return
	}
	a := g.newAsker(r, rt, x, reply)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sum.o.Timeout) // it outlives the request
	if !sum.begin(a, cancel, g.o.Now()) {
		cancel()
		return
	}
	compact.Summarizer = a
	s, fit, path := x.Session, x.Fit, upstream.Path(r.URL)
	sum.work.Go(func() {
		defer sum.end(a)
		defer g.containSummary(path)
		err := s.PrepareSummary(ctx, fit, compact)
		if errors.Is(err, session.ErrPreparing) {
			return
		}
		g.prepared(s, a, err)
	})
}

// prepared notes what came of it.
func (g *Gateway) prepared(s *session.Session, a *asker, err error) {
	sum := g.summaries
	attrs := []any{"session", s.ID(), "model", a.name, "tokens", a.used.Prompt(), "written", a.used.Output, "took", g.o.Now().Sub(a.begun)}
	sum.read.Add(int64(a.used.Prompt()))
	sum.written.Add(int64(a.used.Output))
	switch {
	case err == nil && s.SummaryReady():
		sum.prepared.Add(1)
		sum.rested(s.Info().SessionKey)
		g.log.Info("a summary is ready", attrs...)
		return
	case err == nil && !a.asked:
		return // there is too little to summarize
	case err == nil:
		err = errNoSmaller
	case errors.Is(err, context.Canceled):
		return // the gateway is being closed
	}
	sum.failed.Add(1)
	sum.waste(a.cost())
	sum.rest(s.Info().SessionKey, g.o.Now())
	if a.retry > 0 {
		sum.leave(a.rt.up, g.o.Now(), a.retry)
	}
	g.log.Warn("no summary was made", append(attrs, "error", upstream.Text(err))...)
}

var errNoSmaller = errors.New("the summary is not smaller than what it replaces")

// begin takes a place for a summary, if there is one and nothing has to rest.
func (s *summaries) begin(a *asker, cancel context.CancelFunc, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || stillWaits(now, s.resting[a.session].until, longRest) || stillWaits(now, s.busy[a.rt.up], longRest) {
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

func (s *summaries) end(a *asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancels[a]()
	delete(s.cancels, a)
	<-s.slots
}

// rest lets a session be.
func (s *summaries) rest(key furl.SessionKey, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.resting) >= maxResting {
		for k, r := range s.resting {
			if now.After(r.until) || len(s.resting) >= maxResting {
				delete(s.resting, k)
			}
		}
	}
	r := s.resting[key]
	r.until = now.Add(min(firstRest<<min(r.times, 10), longRest))
	r.times++
	s.resting[key] = r
}

// waste adds up what was paid for in vain.
func (s *summaries) waste(dollars float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wasted += dollars
}

// inVain is what summaries cost that were never shown: of no use, or too late.
func (g *Gateway) inVain() float64 {
	late := g.sessions.Stats().LateCost
	g.summaries.mu.Lock()
	defer g.summaries.mu.Unlock()
	return g.summaries.wasted + late
}

// rested forgets what failed before.
func (s *summaries) rested(key furl.SessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.resting, key)
}

// leave lets a provider be for a while.
func (s *summaries) leave(up *upstream.Client, now time.Time, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := now.Add(wait); !stillWaits(now, s.busy[up], longRest) || s.busy[up].Before(until) {
		s.busy[up] = until
	}
}

// stillWaits reports whether a wait is not over. Most is the longest that such
// a wait can be: what is left of it when the clock was set back meanwhile is
// more, and is no reason to wait.
func stillWaits(now, until time.Time, most time.Duration) bool {
	left := until.Sub(now)
	return left > 0 && left <= most
}

// close gives up what is being written and waits for it.
func (s *summaries) close() {
	s.mu.Lock()
	s.closed = true
	for _, cancel := range s.cancels {
		cancel()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// retryAfter is how long a provider wants to be left alone that has refused a
// request, 0 if that was not the reason.
func retryAfter(resp *http.Response) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded:
	default:
		return 0
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		return min(max(time.Duration(n)*time.Second, firstRest), longRest)
	}
	return firstRest
}

// statusOverloaded is Anthropic's.
const statusOverloaded = 529

// counters names the counters of summaries.
func (s *summaries) counters(counter func(name, help string, n *atomic.Int64)) {
	counter("furl_summaries_asked_total", "summaries that a provider was asked for", &s.asked)
	counter("furl_summaries_prepared_total", "summaries that were ready to be shown", &s.prepared)
	counter("furl_summaries_failed_total", "summaries of no use", &s.failed)
	counter("furl_summaries_tokens_read_total", "tokens of the prompts that asked for summaries", &s.read)
	counter("furl_summaries_tokens_written_total", "tokens of the answers to them", &s.written)
}
