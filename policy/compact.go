package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// Compact replaces old messages by a summary that a model writes (C). A new
// summary merges an earlier one. Protected, kept and pinned messages stay, and so
// does a verbatim tail. If a summary fails, has no text, was cut off or is not
// smaller, nothing changes. No summary is requested if it would replace very
// little.
type Compact struct {
	// Summarizer writes the summaries. If nil, the one of the Settings; without
	// any, the stage does nothing.
	Summarizer Summarizer `json:"-"`
	// Request asks the model for a summary. If empty, DefaultSummaryRequest.
	Request string `json:"request,omitempty"`
	// Continue follows the summary and tells the model to continue. If empty,
	// DefaultContinue.
	Continue string `json:"continue,omitempty"`
	// TailTokens is how much of the newest messages stays verbatim, in the
	// provider's tokens, whole units only.
	TailTokens int `json:"tail_tokens,omitempty"`
	// MaxTokens is the longest summary to accept, in the provider's tokens. If
	// zero, a quarter of what the summary replaces, at least 500 and at most
	// 16,000.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Levels is how many summaries may follow one another before the next one
	// merges them all. If zero, 1: each summary merges the one before it.
	Levels int `json:"levels,omitempty"`
	// Memory returns texts that the program keeps for the model, such as its
	// plan or a list of files. They follow each summary. If nil, the
	// WorkingMemory of the Settings.
	Memory func() []string `json:"-"`
	// Spans, if there are some, are what a person or a model has chosen: the summary
	// replaces the whole steps and messages that they touch, however few. TailTokens,
	// Levels and Pick are ignored. Protected and kept units stay.
	Spans []furl.Span `json:"-"`
	// Pick, if not nil, chooses the units that the summary replaces, oldest
	// first. TailTokens and Levels are ignored. Protected and kept units stay.
	Pick func(v *furl.View, b furl.Budget) []furl.Unit `json:"-"`
	// Frame, if not nil, returns what the model sees: the summary with the words
	// around it. If nil, a compaction record and Continue.
	Frame func(v *furl.View, hidden []furl.Unit, summary string) string `json:"-"`
	// Apart, if not nil, returns the size of the request for a summary in
	// counted tokens, of an agent that sends the messages as one text, outside
	// of the cached prompt; see SummaryRequest.Apart.
	Apart func(v *furl.View, hidden []furl.Unit) int `json:"-"`
}

func (c *Compact) validate() error {
	return validate(number("tail_tokens", c.TailTokens), number("max_tokens", c.MaxTokens), number("levels", c.Levels))
}

// Name is "compact".
func (c *Compact) Name() string { return "compact" }

// Reduce requests a summary of old messages and replaces them by it.
func (c *Compact) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if c.Summarizer == nil {
		return nil, Skip("no summarizer is set")
	}
	units, err := c.units(v, b)
	if err != nil {
		return nil, err
	}
	req, err := c.request(ctx, v, b, units)
	if err != nil {
		return nil, err
	}
	sum, err := c.Summarizer.Summarize(ctx, req)
	switch text := strings.TrimSpace(sum.Text); {
	case err != nil:
		err = fmt.Errorf("ask for a summary: %w", err)
	case sum.CutOff:
		err = errCutOff
	case text == "":
		err = ErrNoSummary
	default:
		return c.reduction(v, b, units, req, sum), nil
	}
	return nil, &spent{err, sum.Usage}
}

// ErrNoSummary is the error for a summary without text.
var ErrNoSummary = errors.New("the summary has no text")

var errCutOff = errors.New("the summary was cut off before it was done")

// spent is an error of a stage that had called a model before it failed.
type spent struct {
	error
	usage furl.Usage
}

func (e *spent) Unwrap() error { return e.error }

// SummaryText returns the summary in a model's reply: its texts, with an empty
// line between them. It ignores tool calls in the reply; do not execute them. If
// there is no text, the error is ErrNoSummary.
func SummaryText(reply *furl.Message) (string, error) {
	var texts []string
	for i := range reply.Blocks {
		if b := &reply.Blocks[i]; b.Kind == furl.KindText && strings.TrimSpace(b.Text) != "" {
			texts = append(texts, strings.TrimSpace(b.Text))
		}
	}
	if len(texts) == 0 {
		return "", ErrNoSummary
	}
	return strings.Join(texts, "\n\n"), nil
}

// units returns the units that the summary will replace, or why there are none.
func (c *Compact) units(v *furl.View, b furl.Budget) ([]furl.Unit, error) {
	if len(c.Spans) > 0 {
		return c.chosen(v)
	}
	units := c.pick(v, b)
	if onlyMarks(units) {
		return nil, Nothing
	}
	if n := b.Of(newTokens(units), 0); float64(n) < minShare*float64(b.Size) {
		return nil, Skip(fmt.Sprintf("only %d of %d tokens are left to summarize", n, b.Size))
	}
	return units, nil
}

// chosen returns the units that Spans touch, with the earlier summaries and markers that
// are inside them as a whole.
func (c *Compact) chosen(v *furl.View) ([]furl.Unit, error) {
	units, why := touched(v, c.Spans)
	if len(units) == 0 {
		return nil, why
	}
	if units = slices.DeleteFunc(units, func(u furl.Unit) bool { return u.Hold == furl.Keep }); len(units) == 0 {
		return nil, skipKept
	}
	for i := range v.Units {
		if u := &v.Units[i]; u.Kind == furl.UnitMark && !u.Protected && u.Hold != furl.Keep && covered(v.Spans(*u), c.Spans) {
			units = append(units, *u)
		}
	}
	slices.SortFunc(units, func(a, b furl.Unit) int { return cmp.Compare(a.First, b.First) })
	return units, nil
}

const skipKept = Skip("it is preferred or was restored by a person; unpin it first")

// covered reports whether both ends of each of some spans are in others.
func covered(spans, by []furl.Span) bool {
	in := func(pos furl.Pos) bool {
		return slices.ContainsFunc(by, func(sp furl.Span) bool { return !before(pos, sp.First) && !before(sp.Last, pos) })
	}
	return len(spans) > 0 && !slices.ContainsFunc(spans, func(sp furl.Span) bool { return !in(sp.First) || !in(sp.Last) })
}

// pick returns the units that the summary will replace, oldest first.
func (c *Compact) pick(v *furl.View, b furl.Budget) []furl.Unit {
	if c.Pick != nil {
		return slices.DeleteFunc(c.Pick(v, b), func(u furl.Unit) bool { return u.Protected || u.Hold == furl.Keep })
	}
	old := hideable(&furl.View{Units: v.Units[:c.tail(v, b)]}, nil)
	summaries := 0
	for i := range old {
		if byModel(v, &old[i]) {
			summaries++
		}
	}
	if summaries >= max(1, c.Levels) {
		return old
	}
	var rest []furl.Unit // from the newest summary on
	for i := range old {
		if byModel(v, &old[i]) {
			rest = nil
			continue
		}
		rest = append(rest, old[i])
	}
	return rest
}

// tail is the index of the first unit of the verbatim tail.
func (c *Compact) tail(v *furl.View, b furl.Budget) int {
	room, i := unscaled(b, c.TailTokens), len(v.Units)
	for ; i > 0 && v.Units[i-1].Tokens <= room; i-- {
		room -= v.Units[i-1].Tokens
	}
	return i
}

// minShare is the share of a request that a summary must newly replace. If what
// stays is too large, a summary of each single step would cost more than it
// saves.
const minShare = 0.05

// newTokens is the counted size of units that are not markers.
func newTokens(units []furl.Unit) int {
	n := 0
	for i := range units {
		if units[i].Kind != furl.UnitMark {
			n += units[i].Tokens
		}
	}
	return n
}

// reduction replaces the units by the summary.
func (c *Compact) reduction(v *furl.View, b furl.Budget, units []furl.Unit, req SummaryRequest, sum Summary) *furl.Reduction {
	red := &furl.Reduction{
		Stage:  c.Name(),
		Reason: fmt.Sprintf("a summary of what was said before, at %s tokens", thousands(b.Size)),
		Cost:   furl.Cost{Own: sum.Cost},
		Summary: &furl.Summary{
			Number:  nextNumber(v.State),
			Text:    strings.TrimSpace(sum.Text),
			Model:   cmp.Or(sum.Model, b.Model.ID, "unknown"),
			Usage:   sum.Usage,
			Request: req.Prompt,
		},
	}
	for i := range units {
		if units[i].Kind != furl.UnitMark {
			red.Summary.Messages += units[i].Messages
		}
	}
	then := DefaultContinue
	if len(c.Spans) > 0 {
		then, red.Reason = partContinue, "a summary of what was chosen by hand"
	}
	texts := []string{recordText(red.Summary, b), cmp.Or(c.Continue, then)}
	if c.Frame != nil {
		texts = []string{c.Frame(v, units, shownSummary(red.Summary.Text, b))}
	}
	if c.Memory != nil {
		for _, text := range c.Memory() {
			if strings.TrimSpace(text) != "" {
				texts = append(texts, text)
			}
		}
	}
	red.Items = []furl.Item{Marker(v, b, units, texts...)}
	return red
}

// maxSummary is the longest part of a summary that is shown, in the provider's
// tokens. The request to the model has a limit too, but not every provider
// enforces it.
const maxSummary = 16_000

// shownSummary returns a summary, cut to the longest part that is shown.
func shownSummary(text string, b furl.Budget) string {
	if most := unscaled(b, maxSummary); count(b.Counter, text) > most {
		return strings.TrimRight(headOf(text, most, b.Counter), " \n") + "\n[the rest of the summary is cut off]"
	}
	return text
}

// recordBegin is how a compaction record begins.
const recordBegin = "[context_compaction "

// recordText is the compaction record that the model reads, with the time if it is
// known. The summary may repeat output of tools, so its text cannot contain the
// line that ends the record.
func recordText(s *furl.Summary, b furl.Budget) string {
	at := ""
	if !b.Now.IsZero() {
		at = ", " + stamp(b.Now)
	}
	text := shownSummary(s.Text, b)
	text = strings.ReplaceAll(text, "[end of context_compaction", "(end of context_compaction")
	return fmt.Sprintf(recordBegin+"%d: %d messages archived, %d tokens before%s]\n\n%s\n[end of context_compaction %d]",
		s.Number, s.Messages, b.Size, at, text, s.Number)
}
