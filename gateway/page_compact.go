package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/summary"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// Compactor writes summaries that a person requests on the page or by the API.
type Compactor = operation.Compactor

// compactor implements Compactor.
type compactor struct{ g *Gateway }

// compactorFor returns the Compactor of the page and the API, nil if there is no provider, or if summaries are off.
func (g *Gateway) compactorFor() Compactor {
	if g.summaries.o.Off || g.up.Anthropic == nil && g.up.OpenAI == nil && g.up.Gemini == nil {
		return nil
	}
	return compactor{g}
}

// upstreamOf returns the provider of a wire format, nil if there is none.
func (g *Gateway) upstreamOf(format furl.Format) *upstream.Client {
	switch format {
	case furl.FormatAnthropic:
		return g.up.Anthropic
	case furl.FormatGemini:
		return g.up.Gemini
	}
	return g.up.OpenAI
}

// WritesNow implements Compactor. Users of a shared gateway do not use the key of its
// operator.
func (c compactor) WritesNow(s *session.Session) (model string, ok bool) {
	meta := s.Meta()
	model = cmp.Or(c.g.o.Summaries.Model, meta.Model)
	ok = c.g.o.Summaries.Key != "" && len(c.g.o.TenantSecret) == 0 && model != "" &&
		wire.For(meta.Format) != nil && c.g.upstreamOf(meta.Format) != nil
	return model, ok
}

// Compact implements Compactor.
func (c compactor) Compact(ctx context.Context, s *session.Session, what operation.Compaction) (furl.Seq, error) {
	model, now := c.WritesNow(s)
	if !now {
		return 0, c.g.summaries.want(s.Info().SessionKey, what)
	}
	// The summary is paid for, so it is recorded even if the browser disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.g.summaries.o.Timeout)
	defer cancel()
	a, err := c.g.keyedSummarizer(s, model)
	if err != nil {
		return 0, err
	}
	if !c.g.summaries.begin(a, cancel, c.g.o.Now()) {
		return 0, errors.New("too many summaries are being written, or the last one failed; try again in a few minutes")
	}
	defer c.g.summaries.end(a)
	b, err := s.Internal().NextBudget(ctx)
	if err != nil {
		return 0, err
	}
	rec, err := s.Internal().Compact(ctx, summary.Stage(a, what.Focus, what.Spans), b)
	c.g.summaryFinished(s, a, rec != 0, err)
	return rec, err
}

// Wanted implements Compactor.
func (c compactor) Wanted(s *session.Session) (what operation.Compaction, ok bool) {
	c.g.summaries.mu.Lock()
	defer c.g.summaries.mu.Unlock()
	what, ok = c.g.summaries.wanted[s.Info().SessionKey]
	return what, ok
}

// Cancel implements Compactor.
func (c compactor) Cancel(s *session.Session) bool {
	_, ok := c.g.summaries.takeWanted(s.Info().SessionKey)
	return ok
}

// maxWanted is how many sessions may wait for a summary that a person requested.
const maxWanted = 4096

// want has a summary written after the next request of a session.
func (s *summaries) want(key furl.SessionKey, what operation.Compaction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wanted) >= maxWanted {
		return fmt.Errorf("%d sessions already wait for a summary", len(s.wanted))
	}
	if s.wanted == nil {
		s.wanted = make(map[furl.SessionKey]operation.Compaction)
	}
	s.wanted[key] = what
	return nil
}

// takeWanted returns a summary that a person requested, once.
func (s *summaries) takeWanted(key furl.SessionKey) (what operation.Compaction, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what, ok = s.wanted[key]
	delete(s.wanted, key)
	return what, ok
}

// compactWanted writes the summary that a person requested, with the credentials of the
// request that has just ended. It reports whether there was one to write.
func (g *Gateway) compactWanted(r *http.Request, rt *route, x *session.Exchange, reply *protocol.Reply) bool {
	key := x.Session.Info().SessionKey
	what, ok := g.summaries.takeWanted(key)
	if !ok {
		return false
	}
	a := g.newSummarizer(r, rt, x, reply)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), g.summaries.o.Timeout)
	if !g.summaries.begin(a, cancel, g.o.Now()) {
		cancel()
		_ = g.summaries.want(key, what) // at the request after this one
		return true
	}
	s, b, path := x.Session, x.Fit.Budget, upstream.Path(r.URL)
	b.Size = cmp.Or(x.Fit.Plan.After, b.Size)
	g.summaries.work.Go(func() {
		defer g.summaries.end(a)
		defer g.recoverSummary(path)
		rec, err := s.Internal().Compact(ctx, summary.Stage(a, what.Focus, what.Spans), b)
		g.summaryFinished(s, a, rec != 0, err)
	})
	return true
}

// keyedSummarizer returns a summarizer that asks the provider of a session with the key
// of the configuration. It sends the messages to summarize and nothing else, because the
// client's last request may be unknown, and its prompt cache has most likely expired.
func (g *Gateway) keyedSummarizer(s *session.Session, model string) (*summarizer, error) {
	meta := s.Meta()
	api := wire.For(meta.Format)
	body, err := api.NewRequest(&protocol.Params{Model: model})
	if err != nil {
		return nil, fmt.Errorf("request a summary: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for name, value := range api.Headers(g.o.Summaries.Key) {
		header.Set(name, value)
	}
	path, _, _ := strings.Cut(api.RequestPath(model, false), "?")
	return &summarizer{
		g: g, rt: &route{codec: api, up: g.upstreamOf(meta.Format)}, session: s.Info().SessionKey, start: g.o.Now(),
		url: &url.URL{Path: path}, header: header, requestModel: model,
		of: summary.Conversation{
			API: api, Name: meta.Model, Model: s.Model(meta.Model),
			Other: &summary.Other{Name: model, Model: g.sessions.Model(model, meta.Format), API: api, Body: body},
		},
	}, nil
}
