package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/visible"
)

// Numbers for people.
var (
	thousands = numbers.Thousands[int]
	pluralOf  = numbers.Count[int]
)

// functions are available in all templates.
var functions = template.FuncMap{
	"count":       thousands,
	"plural":      pluralOf,
	"percent":     percent,
	"dollars":     dollars,
	"cents":       cents,
	"money":       operation.Money,
	"promptwords": promptWords,
	"savings":     operation.SavedWords,
	"over":        operation.OverWords,
	"minus":       func(s string) string { return strings.Replace(s, "-", "−", 1) },
	"breakname":   breakName,
	"pick":        newPick,
	"in":          rowIn,
	"short":       short,
	"line":        visible.Line,
	"oneline":     func(s string) string { return strings.Join(strings.Fields(s), " ") },
	"printable":   printable,
	"stamp":       func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"ago":         func(t time.Time) string { return ago(time.Since(t)) },
	"clock":       func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
	"add":         func(a, b int) int { return a + b },
	"isMarker": func(v any) bool {
		_, ok := v.(*marker)
		return ok
	},
}

// percent returns a percentage as tip.js does for the ribbon.
func percent(x float64) string {
	switch {
	case x <= 0:
		return "0%"
	case x < 1:
		return "<1%"
	case x < 10:
		return fmt.Sprintf("%.1f%%", x)
	}
	return thousands(int(math.Round(x))) + "%"
}

// short returns a number in a few characters, such as 1.2M.
func short(n int) string {
	a := math.Abs(float64(n))
	switch {
	case a >= 999_950_000:
		return fmt.Sprintf("%.1fB", float64(n)/1e9)
	case a >= 999_950:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case a >= 9_999.5:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	case a >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return strconv.Itoa(n)
}

// dollars returns an amount to the cent.
func dollars(x float64) string {
	cents := int(math.Round(100 * x))
	if cents < 0 {
		return "−" + dollars(-x)
	}
	return fmt.Sprintf("$%s.%02d", thousands(cents/100), cents%100)
}

// cents returns an amount to the cent in a few characters, and says so if it is less.
func cents(x float64) string {
	if x > 0 && x < 0.005 {
		return "<$0.01"
	}
	return dollars(x)
}

// promptWords says what a prompt consisted of; "" if the provider did not report it.
func promptWords(u furl.Usage) string {
	var parts []string
	for _, p := range []struct {
		tokens int
		word   string
	}{{u.CacheRead, "read from the cache"}, {u.CacheWrite + u.CacheWrite1h, "written to it"}, {u.Input, "fresh"}} {
		if p.tokens > 0 {
			parts = append(parts, thousands(p.tokens)+" "+p.word)
		}
	}
	if u.CacheRead == 0 && len(parts) > 0 {
		parts = append([]string{"none from the cache"}, parts...)
	}
	return strings.Join(parts, ", ")
}

// ago returns a duration as a person says it.
func ago(d time.Duration) string {
	say := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit + " ago"
		}
		return thousands(n) + " " + unit + "s ago"
	}
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return say(int(d.Minutes()), "minute")
	case d < 48*time.Hour:
		return say(int(d.Hours()), "hour")
	}
	return say(int(d.Hours()/24), "day")
}
