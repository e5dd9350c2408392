package report

import (
	"fmt"
	"math"
	"strconv"
)

// count writes a number with thousands separators.
func count(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// counted writes a number and its unit, in the plural if needed.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return count(n) + " " + what
}

// short writes a number of tokens in few characters: 950, 12.4k, 180k, 1.05M.
func short(n float64) string {
	switch a := math.Abs(n); {
	case a < 999.5:
		return strconv.FormatFloat(math.Round(n), 'f', -1, 64)
	case a < 99_950:
		return trimmed(n/1000, 1) + "k"
	case a < 999_500:
		return trimmed(n/1000, 0) + "k"
	case a < 99.5e6:
		return trimmed(n/1e6, 2) + "M"
	default:
		return count(int(math.Round(n/1e6))) + "M"
	}
}

// trimmed writes a number with at most so many decimals.
func trimmed(x float64, decimals int) string {
	scale := math.Pow10(decimals)
	return strconv.FormatFloat(math.Round(x*scale)/scale, 'f', -1, 64)
}

// most is more than any cost or ratio can be. Larger values are errors and are
// not shown.
const most = 1e15

// dollars writes an amount, with more decimals if it is small.
func dollars(x float64) string {
	if !finite(x) || math.Abs(x) >= most {
		return "–"
	}
	switch a := math.Abs(x); {
	case a == 0:
		return "$0"
	case a < 0.001:
		return "<$0.001"
	case a < 0.1:
		return fmt.Sprintf("$%.3f", x)
	case a < 1000:
		return fmt.Sprintf("$%.2f", x)
	default:
		return "$" + count(int(math.Round(x)))
	}
}

// ratio writes a cost as a multiple of that as recorded.
func ratio(r *float64) string {
	if r == nil || !finite(*r) || *r < 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", *r)
}

// share writes a part of a whole as a percentage. It writes 100% only if
// nothing is missing, and 0% only if the part is 0.
func share(part, whole int) string {
	if whole <= 0 {
		return "–"
	}
	p := 100 * float64(part) / float64(whole)
	switch {
	case part < whole && p > 99.9:
		return ">99.9%"
	case part > 0 && p < 0.1:
		return "<0.1%"
	case part == whole:
		return "100%"
	}
	return fmt.Sprintf("%.1f%%", p)
}

// fraction is part divided by whole; false if whole is not positive.
func fraction(part, whole int) (float64, bool) {
	if whole <= 0 {
		return 0, false
	}
	return float64(part) / float64(whole), true
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// percent writes a position in an SVG attribute.
func percent(x float64) string {
	if !finite(x) {
		x = 0
	}
	return trimmed(100*x, 2) + "%"
}

// window writes the size of a context window; 0 is the model's own.
func window(n int) string {
	if n <= 0 {
		return "each model's own"
	}
	return short(float64(n))
}
