package numbers

import (
	"fmt"
	"math"
	"time"
)

// ShortAgo is ago in fewer columns.
func ShortAgo(now, at time.Time) string {
	switch d := now.Sub(at); {
	case at.IsZero() || d < time.Minute:
		return Ago(now, at)
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	}
	return Ago(now, at)
}

// Ago returns a text such as "5 minutes ago", or a date.
func Ago(now, at time.Time) string {
	if at.IsZero() {
		return "unknown"
	}
	switch d := now.Sub(at); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return Count(int(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return Count(int(d/time.Hour), "hour") + " ago"
	case d < 60*24*time.Hour:
		return Count(int(d/(24*time.Hour)), "day") + " ago"
	}
	return at.Local().Format("2006-01-02")
}

// Bytes formats a number of bytes with a suitable unit.
func Bytes(n int64) string {
	x := float64(n)
	for _, unit := range []string{"B", "kB", "MB"} {
		switch {
		case x < 9.95 && unit != "B":
			return fmt.Sprintf("%.1f %s", x, unit)
		case x < 999.5:
			return fmt.Sprintf("%.0f %s", x, unit)
		}
		x /= 1000
	}
	return fmt.Sprintf("%.1f GB", x)
}

// Cents formats dollars with at least two significant digits.
func Cents(d float64) string {
	digits := 2
	if d > 0 && d < 1 {
		digits = min(6, 2-int(math.Floor(math.Log10(d))))
	}
	return fmt.Sprintf("%.*f", digits, d)
}

// Money formats dollars, small amounts with more digits.
func Money(d float64) string {
	if d != 0 && d < 0.1 {
		return fmt.Sprintf("$%.3f", d)
	}
	return fmt.Sprintf("$%.2f", d)
}

// OneOrMore returns the word for one thing or for several.
func OneOrMore(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
