package policy

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// graduated masks, then extracts, then truncates, each on what the one before
// left, until the view fits its budget (M).
func graduated(name string, o Options) furl.Policy {
	if !o.Enabled.is(true) {
		return none(name, o)
	}
	budget := budgetOf(o)
	keep := cmp.Or(o.KeepSteps, 4)
	p := &Pipeline{
		Label:   name,
		Trigger: func(v *furl.View, b furl.Budget) bool { return !budget.fits(v, b) },
		Fits:    budget.fits,
		Check:   checkPairs,
	}
	if o.ObservationMasking.is(true) {
		mask := &Mask{KeepSteps: keep, LongerThan: cmp.Or(o.MaxObservationChars, 80)}
		// A text of one's own says as much as it likes, unless its length
		// was asked for too.
		most := 0
		if o.Text == "" || o.MaxObservationChars > 0 {
			most = mask.LongerThan
		}
		mask.Text = dispatch(cmp.Or(o.DispatchBegin, "BEGIN_DISPATCH_RESULT"), cmp.Or(o.DispatchEnd, "END_DISPATCH_RESULT"),
			most, Template(cmp.Or(o.Text, TextObservation)))
		p.Stages = append(p.Stages, mask)
	}
	p.Stages = append(p.Stages,
		&Extract{KeepSteps: keep, KeepSystem: true, MaxChars: o.ExtractChars, MaxTokens: o.ExtractTokens},
		&Truncate{KeepSteps: keep, KeepSystem: true, Fraction: o.Fraction, Fits: budget.holds},
	)
	return p
}

// inputBudget is what a view may have: characters, tokens, or what the window
// leaves. Exactly that still fits.
type inputBudget struct{ chars, tokens int }

func budgetOf(o Options) inputBudget { return inputBudget{o.MaxInputChars, o.MaxInputTokens} }

func (i inputBudget) fits(v *furl.View, b furl.Budget) bool {
	if i.chars > 0 {
		return viewChars(v) <= i.chars
	}
	return i.holds(b, b.Size, 0)
}

// holds is fits for sizes that are not a view's yet.
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

// checkPairs reports whether a view parts calls from results that the view
// before it showed together. Reductions cannot do that; the origin checks all
// the same (M6).
func checkPairs(before, after *furl.View) error {
	if unpaired(after) > unpaired(before) {
		return errPairs
	}
	return nil
}

// unpaired counts the calls without a result behind them and the results
// without a call before them.
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

// dispatch writes the stand-in of a result that may hold dispatch results:
// what stands between the delimiters stays, the rest is replaced
// (M3). Without a whole pair of delimiters it is masked whole. What stands for
// the rest has at most so many characters; 0: as many as it likes.
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

// clipTo shortens a stand-in to so many characters as the origin does: three
// dots end it where there is room for them.
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
