package readable

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
)

// figure is one number of a session.
type figure struct{ Name, Value string }

// figures lists the numbers of the conversation. path is its records.
func (s *Session) figures(path []furl.Record, r *ribbon) []figure {
	var usage furl.Usage
	var first, last time.Time
	requests, reductions, largest := 0, 0, 0
	for _, rec := range path {
		if !rec.At.IsZero() {
			if last = rec.At; first.IsZero() {
				first = rec.At
			}
		}
		switch b := rec.Body.(type) {
		case *furl.Exchange:
			requests++
			largest = max(largest, b.Usage.Prompt())
			for _, p := range b.Passes.All(b.Usage) {
				usage.Input += p.Usage.Input
				usage.CacheRead += p.Usage.CacheRead
				usage.CacheWrite += p.Usage.CacheWrite + p.Usage.CacheWrite1h
				usage.Output += p.Usage.Output
			}
		case *furl.Reduction:
			reductions++
		}
	}
	list := []figure{{"Messages", numbers.Thousands(s.State.Len())}}
	add := func(name string, n int, unit string) {
		if n > 0 {
			list = append(list, figure{name, numbers.Thousands(n) + unit})
		}
	}
	add("Visible now", r.visible, " tokens")
	add("Hidden now", r.hidden, " tokens")
	add("Reductions", reductions, "")
	add("Requests", requests, "")
	add("Largest prompt", largest, " tokens")
	add("Read from the cache", usage.CacheRead, " tokens")
	add("Written to the cache", usage.CacheWrite, " tokens")
	add("Uncached input", usage.Input, " tokens")
	add("Output", usage.Output, " tokens")
	if d := last.Sub(first); d > 0 {
		list = append(list, figure{"Duration", lasted(d)})
	}
	return list
}
