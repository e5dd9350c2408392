package policy

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// Truncate replaces a share of the oldest messages after the first by a marker:
// the rewindable sliding window (T1 to T5). Protected and kept messages between
// them stay. If the marker of an earlier truncation is among them, the new marker
// replaces and counts it too; a summary stays.
type Truncate struct {
	// Fraction of the visible messages after the first to hide. If zero, 0.5.
	Fraction float64 `json:"fraction,omitempty"`
	// KeepSteps is how many of the newest steps stay whatever the fraction.
	KeepSteps int `json:"keep_steps,omitempty"`
	// KeepSystem leaves instructions inside the list where they are.
	KeepSystem bool `json:"keep_system,omitempty"`
	// Fits, if not nil, reports whether a view of so many of the provider's
	// tokens and so many characters fits. Messages beyond the fraction are
	// hidden until it does.
	Fits func(b furl.Budget, tokens, chars int) bool `json:"-"`
	// Pick, if not nil, chooses the units to hide, oldest first, and Reason says
	// why. The fields above are ignored. Protected and kept units stay.
	Pick   func(v *furl.View, b furl.Budget) []furl.Unit `json:"-"`
	Reason string                                        `json:"-"`
	// Marker is the text of the marker, in which {messages} is the number of
	// messages that it replaces. If empty, "[Sliding window truncation:
	// {messages} messages hidden to reduce context]".
	Marker string `json:"marker,omitempty"`
}

func (t *Truncate) validate() error {
	return validate(shareOption("fraction", t.Fraction), number("keep_steps", t.KeepSteps))
}

// Name is "truncate".
func (t *Truncate) Name() string { return "truncate" }

// Reduce truncates.
func (t *Truncate) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if t.Pick != nil {
		return t.picked(v, b)
	}
	fraction := t.Fraction
	if fraction == 0 {
		fraction = 0.5
	}
	rest, after := afterFirst(v)
	want := share(after, fraction)
	run := t.run(v, b, rest, want)
	n, _ := originals(run)
	if n == 0 || onlyMarks(run) {
		return nil, Skip("no whole step to hide")
	}
	return &furl.Reduction{
		Stage:  t.Name(),
		Reason: fmt.Sprintf("%g of the %d messages after the first", fraction, after),
		Items:  []furl.Item{Marker(v, b, run, t.text(n))},
	}, nil
}

// picked hides the units that Pick chooses.
func (t *Truncate) picked(v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	run := slices.DeleteFunc(t.Pick(v, b), func(u furl.Unit) bool { return !mayGo(v, &u) })
	if onlyMarks(run) {
		return nil, Nothing
	}
	n, _ := originals(run)
	return &furl.Reduction{Stage: t.Name(), Reason: t.Reason, Items: []furl.Item{Marker(v, b, run, t.text(n))}}, nil
}

// text is the text of a marker for so many messages.
func (t *Truncate) text(n int) string {
	if t.Marker == "" {
		return truncationText(n)
	}
	return strings.ReplaceAll(t.Marker, "{messages}", strconv.Itoa(n))
}

// share is how many of the messages after the first to hide: an even number, so
// that questions and answers are hidden together.
func share(after int, fraction float64) int {
	n := int(float64(after)*fraction + 1e-9) // 0.29×100 is 28.999…
	return n - n%2
}

// run returns units from the front, up to the wanted number of messages.
func (t *Truncate) run(v *furl.View, b furl.Budget, units []furl.Unit, want int) []furl.Unit {
	oldest := v.Steps - t.KeepSteps // the newest step that may go
	var run []furl.Unit
	// The marker has a size too.
	n, freed, items, chars := 0, -markTokens(b), 0, 0
	if t.Fits != nil {
		chars = Chars(v) + utf8.RuneCountInString(widest)
	}
	for i := range units {
		u := &units[i]
		if u.Step > oldest && t.KeepSteps > 0 {
			break
		}
		if t.KeepSystem && u.Kind == furl.UnitSystem {
			continue
		}
		if !mayGo(v, u) || u.Messages == 0 && !follows(run, u) {
			continue
		}
		if u.Kind != furl.UnitMark {
			if n+u.Messages > want && (t.Fits == nil || t.Fits(b, b.Size-b.Of(freed, items), chars)) {
				break
			}
			n += u.Messages
		}
		freed += u.Tokens
		items += u.Items
		if t.Fits != nil {
			chars -= unitChars(u)
		}
		run = append(run, *u)
	}
	// A marker at the end of the run would hide nothing new.
	for len(run) > 0 && run[len(run)-1].Kind == furl.UnitMark && !onlyMarks(run) {
		run = run[:len(run)-1]
	}
	return run
}

// follows reports whether a unit is the rest of the message at the end of the
// run: text of the user after results. It does not count as a message.
func follows(run []furl.Unit, u *furl.Unit) bool {
	return len(run) > 0 && run[len(run)-1].Last == u.First
}

// afterFirst returns the units after the first message, and how many recorded
// messages they show that are not fixed. A summary at the front counts as the first message.
func afterFirst(v *furl.View) (rest []furl.Unit, messages int) {
	i := 0
	for i < len(v.Units) && v.Units[i].Preamble {
		i++
	}
	for first := true; first && i < len(v.Units); i++ {
		first = v.Units[i].Kind == furl.UnitMark && !isSummary(v, &v.Units[i])
		if first {
			rest = append(rest, v.Units[i])
		}
	}
	rest = append(rest, v.Units[i:]...)
	for j := range rest {
		if u := &rest[j]; u.Kind != furl.UnitMark && !u.Fixed {
			messages += u.Messages // fixed ones are not among what may be hidden
		}
	}
	return rest, messages
}

// mayGo reports whether a marker without a summary may replace a unit.
func mayGo(v *furl.View, u *furl.Unit) bool {
	return !u.Protected && u.Hold != furl.Keep && !isSummary(v, u)
}

// isSummary reports whether a unit is the marker of a compaction or an extract.
func isSummary(v *furl.View, u *furl.Unit) bool {
	if u.Kind != furl.UnitMark {
		return false
	}
	red, ok := v.State.Reduction(u.By)
	return ok && red.Summary != nil
}
