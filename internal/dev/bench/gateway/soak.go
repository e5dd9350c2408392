package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sim"
)

// soakOptions say how long a soak is.
type soakOptions struct {
	sessions int // at once
	requests int
	length   int // requests of a session, then its client begins another
	limit    time.Duration
}

// soak runs many agents through one gateway against the simulated provider, with
// injected faults, and checks their histories and the gateway's resources.
type soak struct {
	*bench
	soakOptions
	p    *process
	sent atomic.Int64
	done atomic.Int64 // sessions that were compared

	mu       sync.Mutex
	injected map[string]int // injected faults
	failed   []string       // other failures
	took     []time.Duration
	levels   []level
}

// level is what the gateway used at a time.
type level struct {
	at              time.Duration
	rss, goroutines float64
	sent            int64
}

func (b *bench) soak(o soakOptions) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Thinking: 20, Parallel: 2}), Keep: 1000, NoAuth: true})}
	go func() { _ = server.Serve(ln) }()
	defer server.Close()

	s := &soak{bench: b, soakOptions: o, injected: make(map[string]int)}
	if s.p, err = newGateway(b.dir, "soak", append([]string{"--window", "24k", "--log", "error"}, b.args...)...); err != nil {
		return err
	}
	if err := s.p.start(b.ctx, b.furl, "http://"+ln.Addr().String()); err != nil {
		return err
	}
	defer func() { _ = s.p.stop() }()
	before := s.level(0)
	began := time.Now()
	ctx, cancel := context.WithTimeout(b.ctx, o.limit)
	defer cancel()
	watched := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(began, stop)
	}()
	var work sync.WaitGroup
	for i := range o.sessions {
		work.Go(func() { s.agent(ctx, i) })
	}
	work.Wait()
	took := time.Since(began)
	close(stop)
	<-watched
	after := s.quiet(before)
	s.judge(took, before, after)
	return nil
}

// quiet waits until the gateway's background work has ended: idle connections to
// the provider are closed after 90 seconds.
func (s *soak) quiet(before level) level {
	after := s.level(0)
	for range 24 {
		if !(after.goroutines > before.goroutines+leaked) { // also if it is unknown
			break
		}
		time.Sleep(5 * time.Second)
		after = s.level(0)
	}
	return after
}

// leaked is how many more goroutines than at the beginning are allowed.
const leaked = 10

func (s *soak) level(at time.Duration) level {
	m, err := scrape(s.p.url)
	if err != nil {
		s.fail("read the gateway's metrics: " + err.Error())
	}
	var lack lacking
	l := level{at, lack.of(m, metricRSS), lack.of(m, metricGoroutines), s.sent.Load()}
	if err := lack.err("the gateway's metrics"); err != nil {
		s.note("soak: %v", err)
	}
	return l
}

func (s *soak) watch(began time.Time, stop <-chan struct{}) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	said := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		l := s.level(time.Since(began))
		s.levels = append(s.levels, l)
		if time.Since(said) > 30*time.Second {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "%s: %d requests, %d sessions compared, %.0f MB, %.0f goroutines\n", l.at.Round(time.Second), l.sent, s.done.Load(), l.rss/(1<<20), l.goroutines)
		}
	}
}

func (s *soak) fail(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failed) < 1000 {
		s.failed = append(s.failed, what)
	}
}

// agent has one session after the other.
func (s *soak) agent(ctx context.Context, n int) {
	formats := []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}
	for turn := 0; s.more(ctx); turn++ {
		a := &soakAgent{soak: s, rand: source(uint64(n), uint64(turn)), name: fmt.Sprintf("agent %d, session %d", n, turn)}
		a.client = &sim.Client{
			URL: s.p.url, Format: formats[n%3], Model: models[formats[n%3]], Stream: n%2 == 0,
			System: "You work on a repository.", HTTP: &http.Client{Transport: a}, Header: http.Header{},
		}
		if a.client.Format == furl.FormatAnthropic {
			a.client.Fields = map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 4000}}
		}
		if err := a.work(ctx); err != nil && ctx.Err() == nil {
			s.fail(a.name + ": " + err.Error())
		}
	}
}

func (s *soak) more(ctx context.Context) bool {
	return ctx.Err() == nil && s.sent.Load() < int64(s.requests)
}

func (s *soak) judge(took time.Duration, before, after level) {
	const mb = 1 << 20
	slices.Sort(s.took)
	s.note("%d requests of %d sessions, %d at once, in %s; p50 %s ms, p99 %s ms; faults: %v",
		s.sent.Load(), s.done.Load(), s.sessions, took.Round(time.Second), figure(asMS(at(s.took, 0.5)), 2), figure(asMS(at(s.took, 0.99)), 2), s.injected)
	s.note("store: %s MB, write-ahead log %s MB", figure(fileSize(s.p.store())/mb, 1), figure(fileSize(s.p.store()+"-wal")/mb, 1))
	for i, f := range s.failed {
		if i < 20 {
			s.note("failed: %s", f)
		}
	}
	s.mark(s.sent.Load() >= int64(s.requests), "requests sent", fmt.Sprintf("%d in %s", s.requests, s.limit), "%d in %s", s.sent.Load(), took.Round(time.Second))
	s.mark(len(s.failed) == 0, "failures that were not injected, histories that differ from the log", "0", "%d", len(s.failed))
	s.mark(after.goroutines <= before.goroutines+leaked, "goroutines before and after", fmt.Sprintf("at most %d more", leaked), "%.0f and %.0f", before.goroutines, after.goroutines)
	half, slope, mean, span := s.levels[len(s.levels)/2:], unknown, unknown, time.Duration(0)
	if len(s.levels) >= 10 {
		slope, mean = trend(half)
		span = half[len(half)-1].at - half[0].at
	} else {
		s.note("soak: too short to measure the growth of memory")
	}
	grown := slope * span.Minutes()
	s.mark(grown <= 0.1*mean, "growth of resident memory in the second half", "≤ 10%",
		"%+.1f MB in %s (%+.2f MB a minute), mean %.0f MB", grown/mb, span.Round(time.Second), slope/mb, mean/mb)
}

func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// trend is the slope of memory by least squares, in bytes a minute, and its
// mean.
func trend(levels []level) (slope, mean float64) {
	if len(levels) < 2 {
		return 0, 1
	}
	var t, tt, ty float64
	n := float64(len(levels))
	for _, l := range levels {
		m := l.at.Minutes()
		t, tt, mean, ty = t+m, tt+m*m, mean+l.rss, ty+m*l.rss
	}
	slope = (n*ty - t*mean) / (n*tt - t*t)
	return slope, mean / n
}

var errDrift = errors.New("the client's history differs from the log")
