package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/summary"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// Summaries say who writes the summaries of policies that show them. The zero value
// is useful.
type Summaries struct {
	// Off disables summaries.
	Off bool
	// Model writes the summaries. If nil, the model of the conversation, which has
	// the conversation in its prompt cache.
	Model *Model
	// Timeout limits the time of a request. If zero, defaults to 5 minutes.
	Timeout time.Duration
	// Ask, if not nil, is called before a summary is requested, with the size of the
	// context and its window in tokens. If it returns false, nothing is hidden while
	// the request fits the window.
	Ask func(ctx context.Context, size, window int) bool
	// Review, if not nil, returns the text to use in place of a summary, or false to
	// discard it. It is not called for a summary that waits for approval because of
	// the session's setting ask_first.
	Review func(ctx context.Context, text string) (string, bool)
	// Waiting, if not nil, is called before each request while a summary waits for
	// approval because of the session's setting ask_first, in the goroutine that reads
	// the events. It may decide with session.Session.DecideSummary.
	Waiting func(ctx context.Context) error
}

// summarizer is the policy.Summarizer of one run.
type summarizer struct {
	r     *run
	p     *provider // of the conversation
	head  []byte
	other *provider // nil: p
	of    *summary.Conversation
}

func (r *run) newSummarizer(p *provider, head []byte) (*summarizer, error) {
	of := &summary.Conversation{API: p.api, Body: head, Name: p.ID, Model: r.s.Model(p.ID), Usage: r.usage}
	z := &summarizer{r: r, p: p, head: head, of: of}
	m := r.summaryProvider
	if m == nil || m.ID == p.ID && m.BaseURL == p.BaseURL {
		return z, nil
	}
	z.other = m
	var err error
	of.Other, err = otherModel(r.s, m)
	return z, err
}

// otherModel returns a model that writes a session's summaries in requests of its own.
func otherModel(s *session.Session, p *provider) (*summary.Other, error) {
	model := s.Model(p.ID)
	model.Window = cmp.Or(p.Window, model.Window)
	body, err := p.api.NewRequest(p.params("", nil, defaultMaxTokens(model.MaxOutput)))
	return &summary.Other{Name: p.ID, Model: model, API: p.api, Body: body}, err
}

// Compact requests a summary of a session from a model, without an Agent: the request has
// only the messages to summarize. It replaces these messages by the summary and returns its
// record. focus and spans are those of Agent.Compact.
func Compact(ctx context.Context, s *session.Session, m Model, focus string, spans ...furl.Span) (furl.Seq, error) {
	p, err := newProvider(m, nil)
	if err != nil {
		return 0, err
	}
	z := &apart{p: p}
	meta := s.Meta()
	z.of = summary.Conversation{API: p.api, Name: meta.Model, Model: s.Model(meta.Model)}
	if z.of.Other, err = otherModel(s, p); err != nil {
		return 0, err
	}
	b, err := s.Internal().NextBudget(ctx)
	if err != nil {
		return 0, err
	}
	return s.Internal().Compact(ctx, summary.Stage(z, focus, spans), b)
}

// apart is a summarizer without a run.
type apart struct {
	p  *provider
	of summary.Conversation
}

// SummaryWindow implements policy.SummaryWindower.
func (z *apart) SummaryWindow() int { return z.of.Window() }

// Summarize implements policy.Summarizer.
func (z *apart) Summarize(ctx context.Context, req policy.SummaryRequest) (policy.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	body, model := z.of.Request(req)
	reply, err := exchange.Plain(z.p.api, z.p.ID, body).Ask(ctx, exchange.AskOptions{Post: z.p.post, Retries: 2, Retry: func(int, time.Duration, error) {}})
	if err != nil {
		return policy.Summary{}, err
	}
	return z.of.Summary(reply, model, time.Now())
}

// summaryTimeout is the default of Summaries.Timeout.
const summaryTimeout = 5 * time.Minute

// SummaryWindow implements policy.SummaryWindower.
func (z *summarizer) SummaryWindow() int { return z.of.Window() }

var errDiscarded = errors.New("the summary was discarded")

// Summarize implements policy.Summarizer. It runs in the goroutine of the run.
func (z *summarizer) Summarize(ctx context.Context, req policy.SummaryRequest) (policy.Summary, error) {
	p := cmp.Or(z.other, z.p)
	z.r.emit(SummaryStarted{Model: p.ID})
	sum, err := z.write(ctx, p, req)
	if err == nil && !sum.CutOff && z.r.o.Summaries.Review != nil {
		var use bool
		if sum.Text, use = z.r.o.Summaries.Review(ctx, sum.Text); !use {
			err = errDiscarded
		}
	}
	if err != nil && ctx.Err() == nil {
		z.r.o.Logger.Warn("summary failed", "session", z.r.s.ID(), "model", p.ID)
		z.r.emit(SummaryFailed{Err: err})
	}
	return sum, err
}

func (z *summarizer) write(ctx context.Context, p *provider, req policy.SummaryRequest) (policy.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(max(0, z.r.o.Summaries.Timeout), summaryTimeout))
	defer cancel()
	// The request would be the next one, so its beginning is in the provider's cache.
	if !req.Lighter && req.View != nil {
		next, err := exchange.ComposeView(z.p.api, z.head, req.View)
		if err != nil {
			return policy.Summary{}, err
		}
		z.of.Body = next.Body
	}
	body, model := z.of.Request(req)
	reply, err := exchange.Plain(p.api, p.ID, body).Ask(ctx, z.r.askOptions(p, nil))
	if err != nil {
		return policy.Summary{}, err
	}
	return z.of.Summary(reply, model, time.Now())
}

// prepareWaiting prepares a summary that waits for a person's approval, if the session
// asks for that. The run continues without it.
func (r *run) prepareWaiting(ctx context.Context, x *request) error {
	if r.o.Playback || r.o.Summaries.Off || !asksFirst(r.s) {
		return nil
	}
	stage := r.s.SummaryStage(x.Fit)
	if stage == nil {
		return nil
	}
	z, err := r.newSummarizer(x.provider, x.head)
	if err != nil {
		return err
	}
	stage.Summarizer, stage.Memory = unreviewed{z}, r.o.WorkingMemory
	if _, err = r.s.PrepareSummary(ctx, x.Fit, stage); err != nil && ctx.Err() != nil {
		return interruption(ctx)
	}
	return r.follow()
}

// decideWaiting lets the program decide about a summary that waits for approval.
func (r *run) decideWaiting(ctx context.Context) error {
	if r.o.Summaries.Waiting == nil || r.s.WaitingSummary() == nil {
		return nil
	}
	if err := r.o.Summaries.Waiting(ctx); err != nil {
		return err
	}
	return r.follow()
}

// unreviewed is a summarizer whose summaries a person reviews later.
type unreviewed struct{ *summarizer }

func (z unreviewed) Summarize(ctx context.Context, req policy.SummaryRequest) (policy.Summary, error) {
	z.r.emit(SummaryStarted{Model: cmp.Or(z.other, z.p).ID})
	sum, err := z.write(ctx, cmp.Or(z.other, z.p), req)
	if err != nil && ctx.Err() == nil {
		z.r.emit(SummaryFailed{Err: err})
	}
	return sum, err
}

func asksFirst(s *session.Session) bool {
	for _, set := range s.Settings() {
		if set.Name == "ask_first" {
			return set.Value == "on"
		}
	}
	return false
}

// compact replaces old or chosen messages by a summary.
func (r *run) compact(ctx context.Context, focus string, spans []furl.Span) error {
	if r.o.Playback {
		return errors.New("compact: the replies come from a recording, so nothing is hidden")
	}
	x, err := r.compose(ctx, func(context.Context) (bool, error) { return false, nil })
	if err != nil {
		return err
	}
	z, err := r.newSummarizer(x.provider, x.head)
	if err != nil {
		return err
	}
	stage := summary.Stage(z, focus, spans)
	stage.Memory = r.o.WorkingMemory
	b := x.Fit.Budget
	b.Size = x.Fit.Plan.After
	_, err = r.s.Internal().Compact(ctx, stage, b)
	switch {
	case err != nil && ctx.Err() != nil:
		return interruption(ctx)
	case err != nil:
		return fmt.Errorf("compact: %w", err)
	}
	if err := r.follow(); err != nil {
		return err
	}
	r.emit(Done{})
	return nil
}
