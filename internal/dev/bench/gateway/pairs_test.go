package main

import (
	"math"
	"strings"
	"testing"
)

func TestPairing(t *testing.T) {
	for _, tt := range []struct {
		name          string
		old, new      []float64
		ratio, spread float64
		lost          bool
	}{
		{"equal", []float64{2, 2.1, 1.9, 2, 2}, []float64{2, 2.1, 1.9, 2, 2}, 1, 0, false},
		{"a loss in each round", []float64{2, 3, 2, 3, 2}, []float64{2.2, 3.3, 2.2, 3.3, 2.2}, 1.1, 0, true},
		{"a gain", []float64{2, 3, 2}, []float64{1, 1.5, 1}, 0.5, 0, false},
		{"a loss within twice the spread", []float64{1, 1, 1, 1, 1}, []float64{0.9, 1, 1.1, 1.3, 1.4}, 1.1, 0.15, false},
		{"a loss of less than 5%", []float64{100, 100, 100}, []float64{104, 104, 104}, 1.04, 0, false},
	} {
		p := &pairing{what: tt.name, unit: "ms", digits: 2, old: tt.old, new: tt.new}
		ratio, spread := p.ratio()
		if math.Abs(ratio-tt.ratio) > 1e-9 || math.Abs(spread-tt.spread) > 1e-9 || p.lost() != tt.lost || strings.Contains(p.line(), "LOSS") != tt.lost {
			t.Errorf("%s: ratio %v, spread %v, lost %v", tt.name, ratio, spread, p.lost())
		}
	}
	// Without a figure there is neither a ratio nor a loss.
	for _, p := range []*pairing{{old: []float64{unknown, 1}, new: []float64{1, 1}}, {old: []float64{-1}, new: []float64{1}}, {}} {
		if ratio, _ := p.ratio(); !math.IsNaN(ratio) || p.lost() {
			t.Errorf("%+v: ratio %v", p, ratio)
		}
	}
}
