package replay

import (
	"sync"
	"time"
)

// Timing says where the time of a replay went, in seconds. What several workers do at a
// time is added up.
type Timing struct {
	Reading   float64        `json:"reading"`   // the recordings
	Preparing float64        `json:"preparing"` // counting, and finding what replies use again
	Policies  []PolicyTiming `json:"policies"`  // in the order of Options.Candidates
	// Known is the number of recordings that were not read, because their outcome was known.
	Known int `json:"known_recordings"`
}

// PolicyTiming is the time of all runs of one policy. What none takes, all others take too,
// for rebuilding requests and simulating the cache; the rest is planning.
type PolicyTiming struct {
	Policy  string  `json:"policy"`
	Seconds float64 `json:"seconds"`
}

// stopwatch adds up times. A nil one does nothing.
type stopwatch struct {
	mu                 sync.Mutex
	reading, preparing time.Duration
	policies           map[string]time.Duration
	known              int
}

// addKnown counts a recording that was not read.
func (s *stopwatch) addKnown() {
	if s != nil {
		s.known++
	}
}

func (s *stopwatch) addReading(since time.Time) {
	s.add(func(d time.Duration) { s.reading += d }, since)
}

func (s *stopwatch) addPreparing(since time.Time) {
	s.add(func(d time.Duration) { s.preparing += d }, since)
}

func (s *stopwatch) addPolicy(name string, since time.Time) {
	s.add(func(d time.Duration) { s.policies[name] += d }, since)
}

func (s *stopwatch) add(to func(time.Duration), since time.Time) {
	if s == nil {
		return
	}
	took := time.Since(since)
	s.mu.Lock()
	defer s.mu.Unlock()
	to(took)
}

// timing returns the sums for some policies.
func (s *stopwatch) timing(candidates []Candidate) *Timing {
	if s == nil {
		return nil
	}
	t := &Timing{Reading: s.reading.Seconds(), Preparing: s.preparing.Seconds(), Known: s.known, Policies: []PolicyTiming{}}
	for _, c := range candidates {
		t.Policies = append(t.Policies, PolicyTiming{Policy: c.Name, Seconds: s.policies[c.Name].Seconds()})
	}
	return t
}
