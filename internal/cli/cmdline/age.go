package cmdline

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
