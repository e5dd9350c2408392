package replay

import (
	"math"
	"testing"

	"github.com/furlhq/furl"
)

// twoAsk is a session of two requests, 20 minutes apart if late, with what the provider reported.
func twoAsk(t testing.TB, second string, usage ...furl.Usage) *tape {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user(words(96))
	b.asks("0s", usage[0])
	b.calls("c1", "read", `{"path":"src"}`)
	b.result("c1", words(9996))
	b.asks(second, usage[1])
	b.calls("c2", "read", `{"path":"src"}`)
	b.result("c2", words(96))
	b.asks(second, usage[2])
	b.says("two")
	return b
}

// The recorded requests cost what was billed, however the cache did. At the toy's prices a token
// written costs $1.25, one read $0.10, others $1, output $5.
func TestRecordedCostsAreBilled(t *testing.T) {
	for _, tt := range []struct {
		name, second string
		usage        []furl.Usage
		dollars      string
	}{
		{"as documented", "60s", []furl.Usage{{CacheWrite: 5000}, {CacheRead: 5000, CacheWrite: 10000}, {CacheRead: 15000, CacheWrite: 200}}, "21.000000"},
		{"entries of five minutes that were read after twenty", "20m", []furl.Usage{{CacheWrite: 5000}, {CacheRead: 5000, CacheWrite: 10000}, {CacheRead: 15000, CacheWrite: 200}}, "21.000000"},
		{"a lost entry", "60s", []furl.Usage{{CacheWrite: 5000}, {CacheRead: 5000, CacheWrite: 10000}, {CacheWrite: 15200}}, "38.250000"},
		{"a client that asks for no cache", "60s", []furl.Usage{{Input: 5000}, {Input: 15000}, {Input: 15200}}, "35.200000"},
		{"instructions that another session has in the cache", "60s", []furl.Usage{{CacheRead: 4900, CacheWrite: 100}, {CacheRead: 5000, CacheWrite: 10000}, {CacheRead: 15000, CacheWrite: 200}}, "15.365000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := play(t, Options{Candidates: presets(t, "none")}, twoAsk(t, tt.second, tt.usage...).recording()).Recordings[0]
			r := rec.Results[0]
			if got := money(r.Split.Input()); got != tt.dollars {
				t.Errorf("input $%s, want $%s", got, tt.dollars)
			}
			if rec.SimulatedError == nil || math.Abs(*rec.SimulatedError) > .01 {
				t.Errorf("error of the simulation: %v", rec.SimulatedError)
			}
			if *r.CostLow != *r.Cost || *r.CostHigh != *r.Cost {
				t.Errorf("what was billed is between %v and %v", *r.CostLow, *r.CostHigh)
			}
		})
	}
}

// A policy has the luck that the recorded request had.
func TestHits(t *testing.T) {
	written := []furl.Usage{{CacheWrite: 5000}, {CacheRead: 5000, CacheWrite: 10000}, {CacheRead: 15000, CacheWrite: 200}}
	mask := script{3: hide(2, "[gone]", 20)}
	for _, tt := range []struct {
		name   string
		second string
		usage  []furl.Usage
		read   []int // at the last request
	}{
		{"the prefix before what is hidden", "60s", written, []int{5000}},
		{"nothing, where the entries were lost", "60s", []furl.Usage{written[0], written[1], {CacheWrite: 15200}}, []int{0}},
		{"an old prefix, where it was still there", "20m", written, []int{5000}},
		{"nothing, where the client asks for no cache", "60s", []furl.Usage{{Input: 5000}, {Input: 15000}, {Input: 15200}}, []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := play(t, Options{Candidates: append(presets(t, "none"), mask.candidate("mask"))}, twoAsk(t, tt.second, tt.usage...).recording()).Recordings[0]
			r := rec.Results[1]
			points := r.Series[0].Points
			if last := points[2]; last.Tokens > 6000 || last.Read < tt.read[0]-150 || last.Read > tt.read[0]+150 {
				t.Errorf("the last prompt of %d tokens reads %d, want %d", last.Tokens, last.Read, tt.read[0])
			}
			if !(*r.CostLow <= *r.Cost && *r.Cost <= *r.CostHigh && *r.CostLow < *r.CostHigh) {
				t.Errorf("cost %v between %v and %v", *r.Cost, *r.CostLow, *r.CostHigh)
			}
		})
	}
}
