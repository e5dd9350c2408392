package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// series is what was measured of one target in one phase.
type series struct {
	samples []sample
	used    usage
}

func (s *series) quantile(q float64, of func(sample) time.Duration) time.Duration {
	if s == nil || len(s.samples) == 0 {
		return 0
	}
	d := make([]time.Duration, len(s.samples))
	for i := range s.samples {
		d[i] = of(s.samples[i])
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

func total(s sample) time.Duration { return s.total }
func first(s sample) time.Duration { return s.first }
func relay(s sample) time.Duration { return s.relay }

// per is a part of what was used for each request.
func (s *series) per(n float64) float64 {
	if s == nil || len(s.samples) == 0 {
		return 0
	}
	return n / float64(len(s.samples))
}

// phase sends requests to all targets by turns, so that whatever else the
// machine does meets all of them.
type phase struct {
	targets []*target
	by      map[string]*series
}

// run sends n rounds. Next gives what each of the connections sends in a round,
// one after the other; every target gets the same.
func (ph *phase) run(n int, next func() [][]*request) error {
	ph.by = make(map[string]*series)
	before := make(map[*process]usage)
	for _, t := range ph.targets {
		ph.by[t.name] = &series{}
		if u, err := usageOf(t.p); err == nil {
			before[t.p] = u
		}
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
		if u, err := usageOf(t.p); err == nil {
			ph.by[t.name].used = u.minus(before[t.p])
		}
	}
	return nil
}

// settle waits until what the targets do in the background is done, so that it
// is counted too.
func settle(targets []*target) {
	last := 0.0
	for range 50 {
		sum := 0.0
		for _, t := range targets {
			if u, err := usageOf(t.p); err == nil {
				sum += u.CPU
			}
		}
		if sum-last < 0.01 {
			return
		}
		last = sum
		time.Sleep(100 * time.Millisecond)
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

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000) }
