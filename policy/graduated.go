package policy

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// graduated is the name of the preset.
const graduated = "graduated"

// Graduated are the options of the preset graduated: it masks results, then
// extracts, then truncates, each on the view that the stage before it left, until
// the view fits its budget (M).
type Graduated struct {
	// Enabled, if false, makes it do nothing. If nil, true (M).
	Enabled *bool `json:"enabled,omitempty"`
	// MaxInputChars and MaxInputTokens are the budget; if both are set,
	// characters count. If both are zero, the window less the reserve (M;
	// tokens: furl).
	MaxInputChars  int `json:"max_input_chars,omitempty"`
	MaxInputTokens int `json:"max_input_tokens,omitempty"`
	// KeepSteps is how many of the newest steps stay as they are. If zero, 4 (M,
	// which calls them raw turns).
	KeepSteps int `json:"preserve_recent_raw_turns,omitempty"`
	// ObservationMasking, if false, leaves out the first stage. If nil, true (M).
	ObservationMasking *bool `json:"observation_masking,omitempty"`
	// MaxObservationChars is the longest placeholder, in characters; a result
	// that is not longer stays. If zero, 80 (M).
	MaxObservationChars int `json:"max_observation_chars,omitempty"`
	// Text is the template of the placeholders, see [Template]. If empty,
	// "[observation masked — {chars} chars]".
	Text string `json:"text,omitempty"`
	// DispatchBegin and DispatchEnd enclose the parts of dispatch results that
	// stay. If empty, BEGIN_DISPATCH_RESULT and END_DISPATCH_RESULT (M).
	DispatchBegin string `json:"dispatch_begin,omitempty"`
	DispatchEnd   string `json:"dispatch_end,omitempty"`
	// ExtractChars and ExtractTokens limit an extract; if both are set, both
	// apply. If both are zero, 1400 characters (M; tokens: furl).
	ExtractChars  int `json:"summary_max_chars,omitempty"`
	ExtractTokens int `json:"summary_max_tokens,omitempty"`
	// Fraction is the share of the messages after the first that a truncation
	// hides. If zero, 0.5 (T).
	Fraction float64 `json:"fraction,omitempty"`
}

func (o Graduated) validate() error {
	return validate(
		number("max_input_chars", o.MaxInputChars),
		number("max_input_tokens", o.MaxInputTokens),
		number("preserve_recent_raw_turns", o.KeepSteps),
		number("max_observation_chars", o.MaxObservationChars),
		number("summary_max_chars", o.ExtractChars),
		number("summary_max_tokens", o.ExtractTokens),
		shareOption("fraction", o.Fraction),
	)
}

func (o Graduated) build(name string, in *building) furl.Policy {
	if !isOn(o.Enabled, true) {
		return none{}.build(name, in)
	}
	budget := inputBudget{cmp.Or(in.InputChars, o.MaxInputChars), o.MaxInputTokens}
	keep := cmp.Or(o.KeepSteps, 4)
	p := &Pipeline{
		Label:   name,
		Trigger: func(v *furl.View, b furl.Budget) bool { return !budget.fits(v, b) },
		Fits:    budget.fits,
		Acts:    budget.acts,
		Check:   checkPairs,
	}
	if isOn(o.ObservationMasking, true) {
		mask := &Mask{KeepSteps: keep, LongerThan: cmp.Or(o.MaxObservationChars, 80)}
		// A text of your own is as long as it likes, unless its length is set
		// too.
		most := 0
		if o.Text == "" || o.MaxObservationChars > 0 {
			most = mask.LongerThan
		}
		mask.Text = dispatch(cmp.Or(o.DispatchBegin, "BEGIN_DISPATCH_RESULT"), cmp.Or(o.DispatchEnd, "END_DISPATCH_RESULT"),
			most, Template(cmp.Or(o.Text, textObservation)))
		p.Stages = append(p.Stages, mask)
	}
	p.Stages = append(p.Stages,
		&Extract{KeepSteps: keep, KeepSystem: true, MaxChars: o.ExtractChars, MaxTokens: o.ExtractTokens},
		&Truncate{KeepSteps: keep, KeepSystem: true, Fraction: o.Fraction, Fits: budget.holds},
	)
	return p
}

// inputBudget is the largest view: in characters, in tokens, or else what the
// window leaves. A view of exactly that size fits.
type inputBudget struct{ chars, tokens int }

func (i inputBudget) fits(v *furl.View, b furl.Budget) bool {
	if i.chars > 0 {
		return Chars(v) <= i.chars
	}
	return i.holds(b, b.Size, 0)
}

// acts is the size in tokens above which the budget is exceeded, 0 if it is in
// characters.
func (i inputBudget) acts(b *furl.Budget) int {
	switch {
	case i.chars > 0:
		return 0
	case i.tokens > 0:
		return i.tokens + 1
	case b.Window > 0:
		return b.Room() + 1
	}
	return 0
}

// holds is fits for sizes of a view that does not exist yet.
func (i inputBudget) holds(b furl.Budget, tokens, chars int) bool {
	switch {
	case i.chars > 0:
		return chars <= i.chars
	case i.tokens > 0:
		return tokens <= i.tokens
	case b.Window > 0:
		return tokens <= b.Room()
	}
	return true
}

// errPairs is what checkPairs finds.
var errPairs = errors.New("a call or a result has lost its partner")

// checkPairs returns an error if a view separates calls from results that the view
// before it showed together. Reductions cannot do that, but the origin checks it
// too (M6).
func checkPairs(before, after *furl.View) error {
	if unpaired(after) > unpaired(before) {
		return errPairs
	}
	return nil
}

// unpaired counts the calls without a result after them and the results without a
// call before them.
func unpaired(v *furl.View) int {
	open := make(map[string]int)
	calls, lost := 0, 0
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			switch b := v.Messages[i].Blocks[j].Block; b.Kind {
			case furl.KindCall:
				open[b.ID]++
				calls++
			case furl.KindResult:
				if open[b.ID] == 0 {
					lost++
					continue
				}
				open[b.ID]--
				calls--
			}
		}
	}
	return calls + lost
}

// dispatch writes the placeholder of a result that may contain dispatch results:
// text between the delimiters stays, everything else is replaced (M3). Without a
// complete pair of delimiters, all of it is replaced. The replacement has at most
// so many characters; 0 means no limit.
func dispatch(begin, end string, most int, whole Writer) Writer {
	return func(r *Result) string {
		text := r.Block.Block.Text
		var kept []string
		chars := utf8.RuneCountInString(text)
		for {
			from := strings.Index(text, begin)
			if from < 0 {
				break
			}
			to := strings.Index(text[from+len(begin):], end)
			if to < 0 {
				break
			}
			to += from + len(begin) + len(end)
			kept = append(kept, text[from:to])
			chars -= utf8.RuneCountInString(text[from:to])
			text = text[to:]
		}
		if len(kept) == 0 {
			return clipTo(whole(r), most)
		}
		return clipTo(fmt.Sprintf("[dispatch output masked — %d chars]", chars), most) + "\n" + strings.Join(kept, "\n")
	}
}

// clipTo shortens a placeholder to so many characters, ending with three dots if
// they fit, as the origin does.
func clipTo(text string, most int) string {
	runes := []rune(text)
	switch {
	case most <= 0 || len(runes) <= most:
		return text
	case most <= 3:
		return string(runes[:most])
	}
	return string(runes[:most-3]) + "..."
}
