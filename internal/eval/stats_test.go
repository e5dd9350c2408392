package eval

import (
	"math"
	"testing"
)

func near(t *testing.T, name string, got Interval, low, high float64) {
	t.Helper()
	if math.Abs(got.Low-low) > 0.00006 || math.Abs(got.High-high) > 0.00006 {
		t.Errorf("%s = %.4f to %.4f, want %.4f to %.4f", name, got.Low, got.High, low, high)
	}
}

// The published examples of Newcombe (1998), "Two-sided confidence intervals for the
// single proportion", method 3.
func TestWilson(t *testing.T) {
	near(t, "Wilson(81, 263)", Wilson(81, 263), 0.2553, 0.3662)
	near(t, "Wilson(15, 148)", Wilson(15, 148), 0.0624, 0.1605)
	near(t, "Wilson(0, 20)", Wilson(0, 20), 0, 0.1611)
	near(t, "Wilson(1, 29)", Wilson(1, 29), 0.0061, 0.1718)
	near(t, "Wilson(29, 29)", Wilson(29, 29), 1-0.1170, 1)
	if got := Wilson(0, 0); got != (Interval{0, 1}) {
		t.Errorf("Wilson(0, 0) = %v", got)
	}
}

// The published examples of Newcombe (1998), "Interval estimation for the difference
// between independent proportions", method 10.
func TestNewcombe(t *testing.T) {
	near(t, "56/70 - 48/80", Newcombe(56, 70, 48, 80), 0.0524, 0.3339)
	near(t, "9/10 - 3/10", Newcombe(9, 10, 3, 10), 0.1705, 0.8090)
	near(t, "6/7 - 2/7", Newcombe(6, 7, 2, 7), 0.0582, 0.8062)
	near(t, "5/56 - 0/29", Newcombe(5, 56, 0, 29), -0.0381, 0.1926)
	near(t, "0/10 - 0/20", Newcombe(0, 10, 0, 20), -0.1611, 0.2775)
	near(t, "10/10 - 0/20", Newcombe(10, 10, 0, 20), 0.6791, 1)
	if got := Newcombe(0, 0, 1, 2); got != (Interval{-1, 1}) {
		t.Errorf("without runs: %v", got)
	}
}

func TestNewcombePaired(t *testing.T) {
	// Bentur et al. (2009), in Fagerland, Lydersen and Laake (2014).
	if got := NewcombePaired(Pairs{1, 1, 7, 12}); math.Abs(got.Low+0.507) > 0.0005 || math.Abs(got.High+0.026) > 0.0005 {
		t.Errorf("1 1 7 12: %v, want -0.507 to -0.026", got)
	}
	if got := NewcombePaired(Pairs{}); got != (Interval{-1, 1}) {
		t.Errorf("without pairs: %v", got)
	}
	// Without a correlation it is the interval for independent proportions.
	if got, want := NewcombePaired(Pairs{5, 5, 5, 5}), Newcombe(10, 20, 10, 20); got != want {
		t.Errorf("without correlation: %v, want %v", got, want)
	}
	// Agreement narrows it, and a swap of the two reflects it.
	agree, apart := NewcombePaired(Pairs{9, 1, 1, 9}), NewcombePaired(Pairs{5, 5, 5, 5})
	if agree.High-agree.Low >= apart.High-apart.Low {
		t.Errorf("pairs that agree: %v, pairs that do not: %v", agree, apart)
	}
	a, b := NewcombePaired(Pairs{8, 5, 2, 5}), NewcombePaired(Pairs{8, 2, 5, 5})
	if math.Abs(a.Low+b.High) > 1e-12 || math.Abs(a.High+b.Low) > 1e-12 {
		t.Errorf("%v is not the reflection of %v", a, b)
	}
	// Runs that were all solved say little if there were few.
	if all := NewcombePaired(Pairs{Both: 4}); all.Low > -0.4 || all.High < 0.4 {
		t.Errorf("4 pairs that were all solved: %v", all)
	}
}

func TestBootstrap(t *testing.T) {
	mean := func(list []float64) float64 {
		sum := 0.0
		for _, x := range list {
			sum += x
		}
		return sum / float64(len(list))
	}
	groups := [][]float64{{0, 1, 0, 1}, {1, 1, 1, 0}, {}, {0, 0, 0, 1}, {1, 0, 1, 1}}
	i, ok := Bootstrap(groups, 7, mean)
	if !ok || !(i.Low > 0.1 && i.Low < 0.4 && i.High > 0.7 && i.High < 0.95) {
		t.Errorf("interval %v, %v", i, ok)
	}
	if again, _ := Bootstrap(groups, 7, mean); again != i {
		t.Errorf("the same seed gives %v and %v", i, again)
	}
	// Groups that differ more than their members widen it.
	apart := [][]float64{{0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}}
	if wide, _ := Bootstrap(apart, 7, mean); wide.High-wide.Low <= i.High-i.Low {
		t.Errorf("groups that differ: %v, groups that do not: %v", wide, i)
	}
	if _, ok := Bootstrap([][]float64{{1, 2}}, 1, mean); ok {
		t.Error("one group has an interval")
	}
	if _, ok := Bootstrap(groups, 1, func([]float64) float64 { return math.NaN() }); ok {
		t.Error("an interval of no number")
	}
}

func TestDetectable(t *testing.T) {
	for _, tt := range []struct {
		p    float64
		n    int
		want float64
	}{
		{0.5, 40, 9.0 / 40},
		{0.5, 1, 1},
		{0.5, 0, 1},
		{1, 40, 5.0 / 40}, // 40 of 40 and 35 of 40: close to the end, less is enough
	} {
		if got := Detectable(tt.p, tt.n); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("Detectable(%v, %d) = %v, want %v", tt.p, tt.n, got, tt.want)
		}
	}
	// More runs detect less, and what is detected is outside of the interval.
	last := 1.0
	for _, n := range []int{5, 10, 20, 50, 100, 500} {
		got := Detectable(0.5, n)
		if got >= last {
			t.Errorf("%d runs detect %v, fewer detect %v", n, got, last)
		}
		last = got
	}
	// The textbook's number of subjects for 50% and 60%: 388 to 392.
	if n := Needed(0.1); n < 388 || n > 393 {
		t.Errorf("Needed(0.1) = %d", n)
	}
}
