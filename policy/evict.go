package policy

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

// Evict hides the oldest messages, whole steps at a time, until the view is at
// most a share of the window (R1 to R7). A note tells the model how to find them, if
// it can call recall tools.
type Evict struct {
	// Target is the share of the window to evict down to. If zero, 0.8.
	Target float64 `json:"target,omitempty"`
	// KeepMessages is how many of the newest messages stay, extended to a
	// whole step. If zero, 10.
	KeepMessages int `json:"keep_messages,omitempty"`
	// NoNote leaves the counts and the recall tool out of the note. A few words
	// remain, since a marker cannot be empty.
	NoNote bool `json:"no_note,omitempty"`
}

// defaultTarget is the share of the window that Evict evicts down to.
const defaultTarget = 0.8

func (e *Evict) validate() error {
	return validate(shareOption("target", e.Target), number("keep_messages", e.KeepMessages))
}

// Name is "evict".
func (e *Evict) Name() string { return event.StageEvict }

// Reduce evicts.
func (e *Evict) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if b.Window <= 0 {
		return nil, Skip("no window known")
	}
	target := part(b.Window, cmp.Or(e.Target, defaultTarget))
	units := hideable(&furl.View{Units: v.Units[:e.kept(v)]}, nil)
	if len(units) == 0 {
		return nil, Skip("all that is left is kept")
	}
	// The note has a size too: at most that of a note for all of them.
	freed := -furl.InPlace(&furl.Block{}, e.text(v, b, units), b.Counter).Tokens
	taken, items := 0, 0
	run := oldestRun(units, func(hidden []furl.Unit) bool {
		for ; taken < len(hidden); taken++ {
			freed += hidden[taken].Tokens
			items += hidden[taken].Items
		}
		return b.Size-b.Of(freed, items) <= target
	})
	if len(run) == 0 {
		return nil, Skip("nothing left to evict")
	}
	return &furl.Reduction{
		Stage:  e.Name(),
		Reason: fmt.Sprintf("down to %g of the window: %d of %d tokens", cmp.Or(e.Target, defaultTarget), target, b.Window),
		Items:  []furl.Item{markAs(noteRole(b.Model), v, b, run, e.text(v, b, run))},
	}, nil
}

// kept is the index of the first unit of the newest messages.
func (e *Evict) kept(v *furl.View) int {
	n, i := 0, len(v.Units)
	for ; i > 0 && n < cmp.Or(e.KeepMessages, 10); i-- {
		if u := &v.Units[i-1]; u.Kind != furl.UnitMark && !u.Fixed {
			n += u.Messages // fixed ones stay anyway
		}
	}
	return i
}

// noteRole is the role of the eviction note: system, where the model accepts it
// anywhere in the list, since the note may be first.
func noteRole(m furl.Model) furl.Role {
	if m.SystemInside && m.SystemFirst {
		return furl.RoleSystem
	}
	return furl.RoleUser
}

// text is the origin's note (R3). If it replaces the notes of earlier evictions,
// it counts them too and lists each.
func (e *Evict) text(v *furl.View, b furl.Budget, run []furl.Unit) string {
	all := evicted(v, run)
	if e.NoNote {
		return "[Context rolled]"
	}
	find := ""
	if b.Recall {
		find = "Full transcript available via memory_search. "
	}
	text := fmt.Sprintf("[Context rolled: %d messages evicted (%d tokens). %sEvicted range: %s]",
		all.messages, b.Of(all.tokens, 0), find, all.times())
	var parts []string
	for _, p := range history(v, run) {
		parts = append(parts, fmt.Sprintf("%d messages (%d tokens) %s", p.messages, b.Of(p.tokens, 0), p.times()))
	}
	if len(parts) > 1 {
		text += "\n[In turn: " + strings.Join(parts, "; ") + "]"
	}
	return text
}

// rolled is what one or several evictions hid.
type rolled struct {
	messages, tokens int
	from, to         time.Time
}

func (r rolled) times() string {
	return stamp(r.from) + " to " + stamp(r.to)
}

// stamp is a time as placeholders show it, in UTC.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format(time.RFC3339)
}

// evicted sums up what units show or hide.
func evicted(v *furl.View, units []furl.Unit) rolled {
	var r rolled
	r.messages, r.tokens = originals(units)
	r.from, r.to = times(v, units)
	return r
}

// times returns the times of the first and the last message that units show or
// hide. They are zero if the recording has no times there.
func times(v *furl.View, units []furl.Unit) (from, to time.Time) {
	s := v.State
	first, last := -1, -1
	for i := range units {
		for _, sp := range v.Spans(units[i]) {
			lo, ok1 := s.Find(sp.First.Msg)
			hi, ok2 := s.Find(sp.Last.Msg)
			if !ok1 || !ok2 {
				continue
			}
			if first < 0 || lo < first {
				first = lo
			}
			last = max(last, hi)
		}
	}
	if first < 0 {
		return from, to
	}
	return s.Time(first), s.Time(last)
}

// history splits what a note replaces by eviction, oldest first: each earlier note
// among the units is one part, everything else is the newest.
func history(v *furl.View, run []furl.Unit) []rolled {
	var parts []rolled
	var fresh []furl.Unit
	for i := range run {
		if u := &run[i]; u.Kind == furl.UnitMark {
			parts = append(parts, evicted(v, run[i:i+1]))
		} else {
			fresh = append(fresh, *u)
		}
	}
	if len(fresh) > 0 {
		parts = append(parts, evicted(v, fresh))
	}
	return parts
}
