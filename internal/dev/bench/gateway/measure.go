package main

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl/recall"
)

// series is what was measured of one target in one phase.
type series struct {
	samples []sample
	used    usage
	unread  error // why some of that is unknown
}

// unmeasured is a time that nothing was said of.
const unmeasured = time.Duration(math.MinInt64)

// quantile gives one of the samples' times in milliseconds. It is unknown if
// that of any sample is, or there is none.
func (s *series) quantile(q float64, of func(sample) time.Duration) float64 {
	if s == nil || len(s.samples) == 0 {
		return unknown
	}
	d := make([]time.Duration, len(s.samples))
	for i := range s.samples {
		d[i] = of(s.samples[i])
	}
	slices.Sort(d)
	if d[0] == unmeasured {
		return unknown
	}
	return asMS(d[min(len(d)-1, int(q*float64(len(d))))])
}

func total(s sample) time.Duration { return s.total }
func first(s sample) time.Duration { return s.first }
func relay(s sample) time.Duration { return s.relay }
func piece(s sample) time.Duration { return s.piece }

// per is a part of what was used for each request.
func (s *series) per(n float64) float64 {
	if s == nil || len(s.samples) == 0 {
		return unknown
	}
	return n / float64(len(s.samples))
}

// reductions counts those that were made.
func (s *series) reductions() (n int) {
	for i := range s.samples {
		n += s.samples[i].reductions
	}
	return n
}

// phase sends requests to all targets by turns, so that whatever else the
// machine does meets all of them.
type phase struct {
	targets []*target
	by      map[string]*series
	cpu     map[string]float64 // of a request in milliseconds, after pairRun
}

func (ph *phase) target(name string) *target { return named(ph.targets, name) }

// run sends n rounds. Next gives what each of the connections sends in a round,
// one after the other; every target gets the same.
func (ph *phase) run(n int, next func() [][]*request) error {
	ph.by = make(map[string]*series)
	before := make(map[*process]usage)
	for _, t := range ph.targets {
		ph.by[t.name] = &series{}
		before[t.p], ph.by[t.name].unread = usageOf(t.p)
	}
	for i := range n {
		round := next()
		for j := range ph.targets {
			t := ph.targets[(i+j)%len(ph.targets)]
			got, err := t.sendAll(round)
			if err != nil {
				return err
			}
			ph.by[t.name].samples = append(ph.by[t.name].samples, got...)
		}
	}
	settle(ph.targets)
	for _, t := range ph.targets {
		s := ph.by[t.name]
		u, err := usageOf(t.p)
		if s.used = u.minus(before[t.p]); err != nil {
			s.unread = err
		}
		t.reduced += s.reductions()
	}
	return nil
}

// indexed is how long after a request a gateway has begun to index it.
const indexed = recall.DefaultGather + 500*time.Millisecond

// settle waits until what the targets do in the background is done, so that it
// is counted too. Asking costs them something, so it is not done often.
func settle(targets []*target) {
	time.Sleep(indexed)
	last := 0.0
	for range 10 {
		sum := 0.0
		for _, t := range targets {
			if u, err := usageOf(t.p); err == nil {
				sum += u.CPU
			}
		}
		if sum-last < 0.02 {
			return
		}
		last = sum
		time.Sleep(time.Second / 2)
	}
}

// sendAll sends a round: each connection its own requests in order, all
// connections at once.
func (t *target) sendAll(round [][]*request) ([]sample, error) {
	if len(round) == 1 && len(round[0]) == 1 {
		s, err := t.send(round[0][0])
		return []sample{s}, err
	}
	var mu sync.Mutex
	var all []sample
	var failed error
	var work sync.WaitGroup
	for _, mine := range round {
		work.Go(func() {
			for _, r := range mine {
				s, err := t.send(r)
				mu.Lock()
				all = append(all, s)
				if err != nil && failed == nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return all, failed
}

func asMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// figure writes a number, or that there is none.
func figure(v float64, digits int) string {
	if math.IsNaN(v) {
		return "unknown"
	}
	return fmt.Sprintf("%.*f", digits, v)
}
