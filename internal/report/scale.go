package report

import "math"

// scale maps values to [0, 1].
type scale struct{ lo, hi float64 }

func (s scale) at(v float64) float64 {
	if s.hi <= s.lo || !finite(v) {
		return 0
	}
	return min(1, max(0, (v-s.lo)/(s.hi-s.lo)))
}

// beyond is the same for values that may lie above the scale, up to ten times
// its height.
func (s scale) beyond(v float64) float64 {
	if s.hi <= s.lo || !finite(v) {
		return 0
	}
	return min(10, max(0, (v-s.lo)/(s.hi-s.lo)))
}

// ticks gives round values within the scale, about n of them.
func (s scale) ticks(n int) []float64 {
	step := roundStep((s.hi - s.lo) / float64(max(1, n)))
	if step <= 0 || !finite(step) {
		return nil
	}
	var out []float64
	for i := math.Ceil(s.lo/step - 1e-9); i*step <= s.hi+step*1e-9 && len(out) < 50; i++ {
		out = append(out, i*step+0) // not -0
	}
	return out
}

// roundStep is the next step of 1, 2, 2.5 or 5 times a power of ten.
func roundStep(x float64) float64 {
	if x <= 0 || !finite(x) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if x <= m*unit*(1+1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// widened is the scale with its ends moved out to the next round values.
func (s scale) widened(n int) scale {
	step := roundStep((s.hi - s.lo) / float64(max(1, n)))
	if step <= 0 {
		return s
	}
	return scale{math.Floor(s.lo/step+1e-9) * step, math.Ceil(s.hi/step-1e-9) * step}
}
