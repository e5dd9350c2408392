package cmdline

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/storage"
)

// Undated returns the name of a model without the date at its end.
func Undated(model string) string {
	if n := len(model) - len("-20060102"); n > 0 && model[n] == '-' && strings.Trim(model[n+1:], "0123456789") == "" {
		return model[:n]
	}
	return model
}

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
		return numbers.Count(int(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return numbers.Count(int(d/time.Hour), "hour") + " ago"
	case d < 60*24*time.Hour:
		return numbers.Count(int(d/(24*time.Hour)), "day") + " ago"
	}
	return at.Local().Format("2006-01-02")
}

// BytesSize formats a number of bytes with a suitable unit.
func BytesSize(n int64) string {
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

// SavedWords says in a line what was saved. Subscriptions do not pay list prices, so
// tokens are first.
func SavedWords(s storage.Savings) string {
	sent := s.TokensSent()
	text := fmt.Sprintf("%s tokens sent instead of %s%s", numbers.Thousands(sent), numbers.Thousands(s.TokensWithout), numbers.Change(float64(sent), float64(s.TokensWithout)))
	if sent == s.TokensWithout {
		text = numbers.Thousands(sent) + " tokens sent, none saved"
	}
	if cost := s.Spent(); s.CostWithout > 0 && cost == s.CostWithout {
		text += "; list price " + Money(cost)
	} else if s.CostWithout > 0 {
		text += fmt.Sprintf("; list price %s instead of %s%s", Money(cost), Money(s.CostWithout), numbers.Change(cost, s.CostWithout))
	}
	return text
}

// ListPrice formats what was saved in dollars, "" if no price is known.
func ListPrice(s storage.Savings, saved float64) string {
	switch {
	case s.CostWithout <= 0:
		return ""
	case saved <= -0.005:
		return "-" + Money(-saved)
	}
	return Money(max(0, saved))
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
