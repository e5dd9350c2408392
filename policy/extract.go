package policy

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// Extract replaces old messages by an extract made of their own words, without a
// model (M9): the first sentence of each message of the user, the tools and
// targets of each step, what failed, the files written, and the last conclusion.
// A new extract replaces earlier ones and is made from the originals; a summary
// that a model wrote stays.
type Extract struct {
	// KeepSteps is how many of the newest steps stay, with everything after the
	// first of them.
	KeepSteps int `json:"keep_steps,omitempty"`
	// KeepFirst leaves the first message where it is.
	KeepFirst bool `json:"keep_first,omitempty"`
	// KeepSystem leaves instructions inside the list where they are.
	KeepSystem bool `json:"keep_system,omitempty"`
	// MaxChars and MaxTokens limit the extract, in characters and in counted
	// tokens. If both are zero, 1400 characters.
	MaxChars  int `json:"max_chars,omitempty"`
	MaxTokens int `json:"max_tokens,omitempty"`
	// Pick, if not nil, chooses the units to replace, oldest first. The keeps
	// above are ignored. Protected and kept units stay, and so do summaries
	// that a model wrote.
	Pick func(v *furl.View, b furl.Budget) []furl.Unit `json:"-"`
}

func (e *Extract) validate() error {
	return validate(number("keep_steps", e.KeepSteps), number("max_chars", e.MaxChars), number("max_tokens", e.MaxTokens))
}

// Name is "extract".
func (e *Extract) Name() string { return "extract" }

// Reduce extracts.
func (e *Extract) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	units := hideable(&furl.View{Units: v.Units[:firstNew(v, e.KeepSteps)]}, func(u *furl.Unit) bool {
		return !byModel(v, u) && !(e.KeepSystem && u.Kind == furl.UnitSystem)
	})
	reason := "everything outside " + newest(max(1, e.KeepSteps), "step")
	if e.KeepFirst {
		units = withoutFirst(v, units)
	}
	if e.Pick != nil {
		reason = "old messages"
		units = slices.DeleteFunc(e.Pick(v, b), func(u furl.Unit) bool { return u.Protected || u.Hold == furl.Keep || byModel(v, &u) })
	}
	if onlyMarks(units) {
		return nil, Nothing
	}
	text := e.Text(v, units, b.Counter)
	red := &furl.Reduction{
		Stage:  e.Name(),
		Reason: reason,
		Items:  []furl.Item{Marker(v, b, units, text)},
		Summary: &furl.Summary{
			Number: nextNumber(v.State),
			Text:   text,
		},
	}
	for i := range units {
		if units[i].Kind != furl.UnitMark {
			red.Summary.Messages += units[i].Messages
		}
	}
	return red, nil
}

// Text returns the extract of units of the view, made from the recorded messages
// that they show or hide. A nil counter counts four bytes a token.
func (e *Extract) Text(v *furl.View, units []furl.Unit, c furl.Counter) string {
	messages, _ := originals(units)
	x := extractor{measure: measureOf(e.MaxChars, e.MaxTokens, c), messages: messages}
	x.walk(v.State, v.Spans(units...))
	return x.text()
}

// byModel reports whether a unit is the marker of a summary that a model wrote.
func byModel(v *furl.View, u *furl.Unit) bool {
	if u.Kind != furl.UnitMark {
		return false
	}
	red, ok := v.State.Reduction(u.By)
	return ok && red.Summary != nil && red.Summary.Model != ""
}

// withoutFirst returns the units without the first message of the view that is
// neither instructions nor a marker.
func withoutFirst(v *furl.View, units []furl.Unit) []furl.Unit {
	for i := range v.Units {
		u := &v.Units[i]
		if u.Preamble || u.Kind == furl.UnitMark {
			continue
		}
		var rest []furl.Unit
		for j := range units {
			if units[j].First != u.First || units[j].Kind != u.Kind {
				rest = append(rest, units[j])
			}
		}
		return rest
	}
	return units
}

// nextNumber is the number of the next summary on the path (C4).
func nextNumber(s *furl.State) int {
	n := 0
	for red := range s.Reductions() {
		if red.Summary != nil {
			n = max(n, red.Summary.Number)
		}
	}
	return n + 1
}

// measure is how long a text may be, in characters or in counted tokens.
type measure struct {
	max  int
	cost func(line string) int // line break included
}

// measureOf combines both limits in one measure: a line costs its share of the
// limit that it uses up faster.
func measureOf(chars, tokens int, c furl.Counter) measure {
	runes := func(line string) int { return utf8.RuneCountInString(line) + 1 }
	counted := func(line string) int { return furl.InPlace(&furl.Block{}, line, c).Tokens - envelope + 1 }
	switch {
	case tokens <= 0:
		return measure{cmp.Or(max(0, chars), 1400), runes}
	case chars <= 0:
		return measure{tokens, counted}
	}
	return measure{chars, func(line string) int { return max(runes(line), (counted(line)*chars+tokens-1)/tokens) }}
}

// envelope is the size of a block without its text, in tokens.
var envelope = furl.InPlace(&furl.Block{}, "", nil).Tokens
