package numbers

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// ParseAge parses a duration such as 90m, 12h, 7d or 4w.
func ParseAge(s string) (time.Duration, error) {
	unit := time.Duration(0)
	switch {
	case strings.HasSuffix(s, "d"):
		unit = 24 * time.Hour
	case strings.HasSuffix(s, "w"):
		unit = 7 * 24 * time.Hour
	}
	if unit == 0 {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, errors.New("expected a duration such as 90m, 12h, 7d or 4w")
		}
		return d, nil
	}
	n, err := strconv.ParseFloat(s[:len(s)-1], 64)
	if err != nil || n < 0 || n > 10000 {
		return 0, errors.New("expected a duration such as 90m, 12h, 7d or 4w")
	}
	return time.Duration(n * float64(unit)), nil
}

// ParseTokens parses a number of tokens such as 128k or 1.5M, from 1 to a billion.
func ParseTokens(s string) (int, error) {
	unit := 1.0
	digits := strings.TrimRight(s, "kKmM")
	switch strings.ToLower(s[len(digits):]) {
	case "k":
		unit = 1e3
	case "m":
		unit = 1e6
	case "":
	default:
		return 0, errors.New("expected a number of tokens such as 128k")
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n*unit >= 1 && n*unit <= 1e9) { // NaN is neither
		return 0, errors.New("expected a number of tokens such as 128k")
	}
	return int(n * unit), nil
}
