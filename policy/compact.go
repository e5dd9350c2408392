package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// Compact hides old messages behind a summary that a model writes
// (C). An earlier summary is merged into the new one. What is
// protected, kept or pinned stays, and so does a verbatim tail. A summary that
// fails, has no text, was cut off or is not smaller changes nothing, and none is
// asked for where it would stand for next to nothing.
type Compact struct {
	// Summarizer writes the summaries. If nil, the stage does nothing.
	Summarizer Summarizer `json:"-"`
	// Request asks for a summary. If empty, DefaultSummaryRequest.
	Request string `json:"request,omitempty"`
	// Continue tells the model behind the summary to go on. If empty,
	// DefaultContinue.
	Continue string `json:"continue,omitempty"`
	// TailTokens is how much of the newest messages stays, in the provider's
	// tokens, whole units only.
	TailTokens int `json:"tail_tokens,omitempty"`
	// MaxTokens is the longest summary of use, in the provider's tokens. If
	// zero, a quarter of what it stands for, 500 at least and 16,000 at most.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Levels is how many summaries may stand one behind the other before the
	// next one merges them all. If zero, 1: each merges the one before.
	Levels int `json:"levels,omitempty"`
	// Memory gives what the host keeps for the model, such as its plan or
	// its list of files: it is told again behind each summary. It may be nil.
	Memory func() []string `json:"-"`
}

func (c *Compact) validate() error {
	return validate(number("tail_tokens", c.TailTokens), number("max_tokens", c.MaxTokens), number("levels", c.Levels))
}

// Name is "compact".
func (c *Compact) Name() string { return "compact" }

// Reduce asks for a summary of what is old and shows it instead.
func (c *Compact) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if c.Summarizer == nil {
		return nil, Skip("no summarizer is set")
	}
	units := c.pick(v, b)
	if onlyMarks(units) {
		return nil, Nothing
	}
	if n := b.Scaled(newTokens(units)); float64(n) < minShare*float64(b.Size) {
		return nil, Skip(fmt.Sprintf("only %d of %d tokens are left to summarize", n, b.Size))
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

// ErrNoSummary is returned for a reply that was to be a summary and has no
// text.
var ErrNoSummary = errors.New("the summary has no text")

var errCutOff = errors.New("the summary was cut off before it was done")

// spent is an error of a stage that had asked a model before it failed.
type spent struct {
	error
	usage furl.Usage
}

func (e *spent) Unwrap() error { return e.error }

// SummaryText is the summary in a model's reply: its texts, with an empty line
// between them. Calls in it are not for execution and do not count. Without
// any text the error is ErrNoSummary.
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

// pick gives what the summary will stand for, oldest first.
func (c *Compact) pick(v *furl.View, b furl.Budget) []furl.Unit {
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

// minShare of a request must be there to be summarized anew: where what stays
// is too large, a summary of each step as it grows old would be paid for in
// vain.
const minShare = 0.05

// newTokens is the counted size of units that are no marks.
func newTokens(units []furl.Unit) int {
	n := 0
	for i := range units {
		if units[i].Kind != furl.UnitMark {
			n += units[i].Tokens
		}
	}
	return n
}

// reduction shows the summary in place of the units.
func (c *Compact) reduction(v *furl.View, b furl.Budget, units []furl.Unit, req SummaryRequest, sum Summary) *furl.Reduction {
	red := &furl.Reduction{
		Stage:  c.Name(),
		Reason: fmt.Sprintf("a summary of what was said before, at %d tokens", b.Size),
		Cost:   furl.Cost{Own: sum.Cost},
		Summary: &furl.Summary{
			Number:  nextNumber(v.State()),
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
	texts := []string{recordText(red.Summary, b), cmp.Or(c.Continue, DefaultContinue)}
	if c.Memory != nil {
		for _, text := range c.Memory() {
			if strings.TrimSpace(text) != "" {
				texts = append(texts, text)
			}
		}
	}
	red.Items = []furl.Item{mark(v, b, units, texts...)}
	return red
}

// maxSummary is how much of a summary is shown at most, in the provider's
// tokens. A model that is asked for one is told a limit too, but not every
// provider holds it to that.
const maxSummary = 16_000

// recordText is the compaction record as the model reads it, with the time
// where that is known. The summary may repeat what tools returned, so it ends
// where the record says and cannot say so itself.
func recordText(s *furl.Summary, b furl.Budget) string {
	at := ""
	if !b.Now.IsZero() {
		at = ", " + furl.Stamp(b.Now).String()
	}
	text := s.Text
	if most := unscaled(b, maxSummary); count(b.Counter, text) > most {
		text = strings.TrimRight(headOf(text, most, b.Counter), " \n") + "\n[the rest of the summary is cut off]"
	}
	text = strings.ReplaceAll(text, "[end of context_compaction", "(end of context_compaction")
	return fmt.Sprintf("[context_compaction %d: %d messages archived, %d tokens before%s]\n\n%s\n[end of context_compaction %d]",
		s.Number, s.Messages, b.Size, at, text, s.Number)
}
