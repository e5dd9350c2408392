package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/summary"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/session"
)

// Compaction is a summary that a person, a program or a model requests.
type Compaction struct {
	// Spans are the messages that it replaces, whole steps of them. If empty, all old ones.
	Spans []furl.Span
	// Focus is what it pays attention to, in the words of who requests it, or "".
	Focus string
}

// Compactor has a model write summaries.
type Compactor interface {
	// WritesNow returns the model that Compact asks at once. If ok is false, there is no key
	// for that, and Compact waits for the session's next request, whose key it uses.
	WritesNow(s *session.Session) (model string, ok bool)
	// Compact replaces messages of a session by a summary and returns its record, or 0 if
	// the summary is written after the session's next request.
	Compact(ctx context.Context, s *session.Session, what Compaction) (furl.Seq, error)
	// Wanted returns the summary that waits for the session's next request.
	Wanted(s *session.Session) (what Compaction, ok bool)
	// Cancel forgets it, and reports whether there was one.
	Cancel(s *session.Session) bool
}

// AtOnce is the part of a Compactor whose summaries never wait.
type AtOnce struct{}

// Wanted implements Compactor.
func (AtOnce) Wanted(*session.Session) (Compaction, bool) { return Compaction{}, false }

// Cancel implements Compactor.
func (AtOnce) Cancel(*session.Session) bool { return false }

// CompactInput is the input of compact.
type CompactInput struct {
	Handles []string `json:"handles,omitempty" arg:"[HANDLE...]" help:"handles, record numbers of messages, or ranges of them such as 40-120 (default all old messages)"`
	Focus   string   `json:"focus,omitempty" flag:"focus" help:"'text' that says what to pay attention to"`
	// Cancel forgets a summary that waits for the session's next request.
	Cancel bool `json:"cancel,omitempty"`
	preview
}

type compacted struct {
	Reduction furl.Seq `json:"reduction_id,omitempty"`
	// Waits reports that the summary is written after the session's next request.
	Waits    bool   `json:"waits,omitempty"`
	Model    string `json:"model,omitempty"` // that writes it
	Messages int    `json:"messages"`        // that it replaces
	Before   int    `json:"context_size_before"`
	After    int    `json:"context_size_after"` // estimated, until the summary is written
	Asking   int    `json:"request_tokens,omitempty"`
}

// NoProvider is why no summary can be written without a Compactor.
const NoProvider = "There is no model to ask here. Use furl chat, the page or the API of furl serve, or furl compact with ANTHROPIC_API_KEY, OPENAI_API_KEY or the key of a model in chat.models."

// maxFocus is the length of the longest focus of a summary, in bytes.
const maxFocus = 2000

var compact = define(Operation{
	Name: "compact", Aliases: []string{"summarize"}, Short: "Replace messages by a summary", Audit: Change, Optional: true,
	Long: `Has a model write a summary of messages, which the model of the session sees in their
place. With handles, record numbers or ranges, the summary replaces the steps and
messages that these touch, else all old ones. Instructions, the newest step, the newest
message of the user, and what is pinned or preferred stay. Originals stay in the session.`,
	Example: []string{"latest 40-120 --dry-run", `01jd5 40-120 --focus "the failing tests"`, "latest"},
}, func(c *Call, in *CompactInput) (*Result, error) {
	if in.Cancel {
		return cancelCompact(c)
	}
	what := Compaction{Focus: strings.TrimSpace(strings.ToValidUTF8(in.Focus, "\uFFFD"))}
	if len(what.Focus) > maxFocus {
		return nil, invalid(fmt.Sprintf("the focus is longer than %s bytes", numbers.Thousands(maxFocus)))
	}
	r := &Result{Title: "Compact the session", Did: "Compacted the session"}
	if len(in.Handles) > 0 || c.ByModel {
		blocks := Blocks{in.Handles}
		spans, err := blocks.spans(c)
		if err == nil && c.ByModel {
			err = allowed(c, spans)
		}
		if err != nil {
			return nil, err
		}
		what.Spans = spans
		r.Title, r.Did = "Compact "+blocks.what(c), "Compacted "+blocks.what(c)
	}
	if c.Compactor == nil && !c.Preview {
		return nil, Refusal(NoProvider)
	}
	if err := planCompact(c, r, what); err != nil || r.Nothing != "" || c.Preview {
		return r, err
	}
	return writeCompact(c, r, what)
})

// planCompact says what a summary would replace, and what it costs.
func planCompact(c *Call, r *Result, what Compaction) error {
	est := &estimate{}
	done, err := c.Session.Reduce(c, session.ReduceOptions{Stage: summary.Stage(est, what.Focus, what.Spans), DryRun: true})
	if err != nil {
		return err
	}
	out := compacted{Before: done.Before, After: done.After, Model: c.Session.Meta().Model}
	r.Value = out
	if len(done.Planned) == 0 {
		r.Nothing = "There is nothing to summarize: instructions, the newest step, and what is pinned, preferred or restored stay."
		if len(done.Steps) > 0 && done.Steps[0].Skipped != "" {
			r.Nothing = Sentence(done.Steps[0].Skipped)
		}
		return nil
	}
	out.Messages, out.Asking = len(done.Planned[0].Messages), est.prompt
	r.Notes = []string{"The originals stay in the session."}
	now := false
	if c.Compactor == nil {
		r.Notes = append(r.Notes, NoProvider)
	} else {
		if was, ok := c.Compactor.Wanted(c.Session); ok {
			r.Nothing = Sentence("a summary is already to be written after the session's next request" + wantedWords(was))
			return nil
		}
		var model string
		if model, now = c.Compactor.WritesNow(c.Session); model != "" {
			out.Model = model
		}
	}
	writer := visible.Line(out.Model)
	if writer == "" {
		writer = "the model"
	}
	r.Effects = []string{fmt.Sprintf("A summary by %s replaces %s.", writer, numbers.Count(out.Messages, "message"))}
	if what.Spans != nil && out.Messages < messagesIn(what.Spans) {
		r.Notes = append(r.Notes, "What is pinned, preferred or hidden already stays as it is, and so do instructions and the newest step.")
	}
	if !now && c.Compactor != nil {
		r.Notes = append(r.Notes, "It is written right after the session's next request, with the key of that request, because no key is configured (summaries.key_env). It is not written if furl is restarted before.")
	}
	r.Price, r.Value = &done.Price, out
	r.Notes = append(r.Notes, est.cost(c.Session.Model(out.Model), writer))
	return nil
}

// messagesIn counts the messages in spans.
func messagesIn(spans []furl.Span) int {
	seen := make(map[furl.Seq]bool)
	for _, sp := range spans {
		seen[sp.First.Msg] = true
	}
	return len(seen)
}

// wantedWords say what a summary that waits pays attention to.
func wantedWords(what Compaction) string {
	if what.Focus == "" {
		return ""
	}
	return ", with attention to: " + visible.Line(what.Focus)
}

// writeCompact has the summary written.
func writeCompact(c *Call, r *Result, what Compaction) (*Result, error) {
	out := r.Value.(compacted)
	rec, err := c.Compactor.Compact(c, c.Session, what)
	switch {
	case err != nil && c.Err() != nil:
		return nil, err
	case err != nil:
		return nil, Refusal(Sentence("no summary was written: " + visible.Line(err.Error())))
	case rec == 0:
		out.Waits, r.Value, r.Price = true, out, nil
		r.Did, r.Effects, r.Notes = "The summary is written right after the session's next request", nil, nil
		r.Undo = &Undo{"compact", &CompactInput{Cancel: true}}
		return r, nil
	}
	written, err := reductionOf(c, rec)
	if err != nil {
		return nil, err
	}
	out.Reduction, out.Messages, out.After = rec, written.Archived, c.Session.Context("").Size
	r.Effects = []string{fmt.Sprintf("Summary %d replaces %s. The context: %s → %s tokens.", written.Number, numbers.Count(written.Archived, "message"), numbers.Thousands(out.Before), numbers.Thousands(out.After))}
	r.Value, r.Price, r.Notes = out, nil, []string{"The originals stay in the session."}
	r.Undo = &Undo{"restore", &RestoreInput{Handles: []string{fmt.Sprint(rec)}}}
	return r, nil
}

func cancelCompact(c *Call) (*Result, error) {
	r := &Result{Title: "Do not compact", Did: "No summary is written after the session's next request", Value: compacted{}}
	var was Compaction
	waits := false
	if c.Compactor != nil {
		was, waits = c.Compactor.Wanted(c.Session)
	}
	if !waits || !c.Preview && !c.Compactor.Cancel(c.Session) {
		r.Nothing = "No summary is to be written."
		return r, nil
	}
	again := &CompactInput{Focus: was.Focus}
	for _, sp := range was.Spans {
		again.Handles = append(again.Handles, fmt.Sprint(sp.First.Msg))
	}
	r.Undo = &Undo{"compact", again}
	return r, nil
}

// estimate is a summarizer that asks no model: it writes as many words as a summary may
// have, and notes the size of the request.
type estimate struct{ prompt, output int }

// Summarize implements policy.Summarizer.
func (e *estimate) Summarize(_ context.Context, r policy.SummaryRequest) (policy.Summary, error) {
	hidden := 0
	for i := range r.Hide {
		hidden += r.Hide[i].Tokens
	}
	e.prompt, e.output = summary.Tokens(r), r.MaxTokens
	if r.MaxTokens <= 0 {
		return policy.Summary{}, errors.New("there is nothing to summarize")
	}
	return policy.Summary{Text: strings.Repeat("summary ", min(r.MaxTokens, max(1, r.Budget.Of(hidden, 0)/8)))}, nil
}

// cost says what it costs to ask the model.
func (e *estimate) cost(m furl.Model, name string) string {
	text := fmt.Sprintf("The summary costs one request to %s of about %s", name, Tokens(e.prompt))
	prices := price.For(&m, e.prompt, time.Now())
	if !price.Known(prices) {
		return text + ", and the tokens that it writes."
	}
	most := price.Of(price.Complete(prices), furl.Usage{Input: e.prompt, Output: e.output})
	return fmt.Sprintf("%s: up to %s, if none of it is cached and the summary has %s.", text, Money(most), Tokens(e.output))
}
