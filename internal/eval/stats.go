package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// z is the 97.5% quantile of the normal distribution, for intervals of 95%.
const z = 1.959963984540054

// Interval is a 95% confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Excludes reports whether the interval does not contain x.
func (i Interval) Excludes(x float64) bool { return x < i.Low || x > i.High }

// union is the smallest interval that contains both.
func (i Interval) union(o Interval) Interval {
	return Interval{min(i.Low, o.Low), max(i.High, o.High)}
}

// Wilson returns the Wilson score interval of a proportion of k in n. With n = 0 it is
// 0 to 1.
func Wilson(k, n int) Interval {
	if n == 0 {
		return Interval{0, 1}
	}
	p, m := float64(k)/float64(n), float64(n)
	center := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	i := Interval{max(0, center-half), min(1, center+half)}
	if k == 0 {
		i.Low = 0 // without rounding errors
	}
	if k == n {
		i.High = 1
	}
	return i
}

// Newcombe returns the interval of the difference of two independent proportions,
// k1 of n1 minus k2 of n2: method 10 of Newcombe (1998), from Wilson intervals.
func Newcombe(k1, n1, k2, n2 int) Interval {
	if n1 == 0 || n2 == 0 {
		return Interval{-1, 1}
	}
	return squareAndAdd(k1, n1, k2, n2, 0)
}

// Pairs counts pairs of runs by what the first and the second run of a pair did.
type Pairs struct {
	Both    int `json:"both_solved"`
	First   int `json:"first_only"`
	Second  int `json:"second_only"`
	Neither int `json:"neither"`
}

// N is the number of pairs.
func (p Pairs) N() int { return p.Both + p.First + p.Second + p.Neither }

// Difference is the proportion solved by the first minus that of the second.
func (p Pairs) Difference() float64 {
	if p.N() == 0 {
		return 0
	}
	return float64(p.First-p.Second) / float64(p.N())
}

// NewcombePaired returns the interval of the difference of two proportions over pairs:
// method 10 of Newcombe (1998) for paired data, which is Newcombe with a correction for
// the correlation in the pairs.
func NewcombePaired(p Pairs) Interval {
	n := p.N()
	if n == 0 {
		return Interval{-1, 1}
	}
	both, first, second, neither := float64(p.Both), float64(p.First), float64(p.Second), float64(p.Neither)
	phi := 0.0
	if under := (both + first) * (second + neither) * (both + second) * (first + neither); under > 0 {
		over := both*neither - first*second
		if over > 0 {
			over = max(over-float64(n)/2, 0) // the continuity correction
		}
		phi = over / math.Sqrt(under)
	}
	return squareAndAdd(p.Both+p.First, n, p.Both+p.Second, n, phi)
}

// squareAndAdd combines the Wilson intervals of two proportions with the correlation
// phi into one of their difference.
func squareAndAdd(k1, n1, k2, n2 int, phi float64) Interval {
	p1, p2 := float64(k1)/float64(n1), float64(k2)/float64(n2)
	i1, i2 := Wilson(k1, n1), Wilson(k2, n2)
	add := func(a, b float64) float64 { return math.Sqrt(max(0, a*a-2*phi*a*b+b*b)) }
	d := p1 - p2
	return Interval{max(-1, d-add(p1-i1.Low, i2.High-p2)), min(1, d+add(i1.High-p1, p2-i2.Low))}
}

// resamples is how often Bootstrap draws.
const resamples = 10_000

// Bootstrap returns the percentile interval of a statistic over pairs in groups. It
// draws groups with replacement, and pairs with replacement in each group drawn. The
// same groups and seed give the same interval. ok is false with fewer than two groups,
// or if the statistic is not a number in more than 1 of 20 draws.
func Bootstrap[P any](groups [][]P, seed uint64, statistic func([]P) float64) (i Interval, ok bool) {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g []P) bool { return len(g) == 0 })
	if len(groups) < 2 {
		return i, false
	}
	rng := rand.New(rand.NewPCG(seed, 0x6675726c))
	values := make([]float64, 0, resamples)
	var drawn []P
	for range resamples {
		drawn = drawn[:0]
		for range groups {
			g := groups[rng.IntN(len(groups))]
			for range g {
				drawn = append(drawn, g[rng.IntN(len(g))])
			}
		}
		if v := statistic(drawn); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	if len(values) < resamples*19/20 {
		return i, false
	}
	slices.Sort(values)
	at := func(q float64) float64 { return values[int(math.Round(q*float64(len(values)-1)))] }
	return Interval{at(0.025), at(0.975)}, true
}

// Detectable returns the smallest difference between two proportions of n runs each,
// around the rate p, whose Newcombe interval excludes 0. It is 1 if there is none.
func Detectable(p float64, n int) float64 {
	p = min(max(p, 0), 1)
	for k := 1; k <= n; k++ {
		low := int(math.Round(p*float64(n) - float64(k)/2))
		low = min(max(low, 0), n-k)
		if Newcombe(low+k, n, low, n).Excludes(0) {
			return float64(k) / float64(n)
		}
	}
	return 1
}

// power80 is the 80% quantile of the normal distribution.
const power80 = 0.8416212335729143

// Needed returns how many runs of each policy find a true difference d around the rate
// 1/2, where most runs are needed, in 4 of 5 evaluations.
func Needed(d float64) int {
	return int(math.Ceil((z + power80) * (z + power80) * 2 * 0.25 / (d * d)))
}
