// Package numbers writes numbers for people.
package numbers

import (
	"fmt"
	"strconv"
)

// Thousands returns a number with commas between thousands.
func Thousands[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count returns a number with its noun, such as "1 message" and "1,204 messages".
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Change compares two figures, as in " (75% less)". It returns "" if they are about equal,
// or if there is nothing to compare with.
func Change(is, was float64) string {
	if was <= 0 {
		return ""
	}
	switch change := 100 * (is - was) / was; {
	case change <= -0.5:
		return fmt.Sprintf(" (%.0f%% less)", -change)
	case change >= 0.5:
		return fmt.Sprintf(" (%.0f%% more)", change)
	}
	return ""
}

// Between writes an interval of US dollars in few characters, such as $2.65–2.99 or $149–163.
func Between(low, high float64) string {
	decimals := 2
	switch {
	case high >= 100:
		decimals = 0
	case high >= 10:
		decimals = 1
	}
	return fmt.Sprintf("$%.*f–%.*f", decimals, low, decimals, high)
}
