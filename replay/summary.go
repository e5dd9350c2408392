package replay

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/token"
)

// summarizer replaces the model that writes summaries. It returns an extract of
// the hidden messages, as long as the recording's own summaries. Its cost is that
// of the request and the output of a model.
type summarizer struct{ r *run }

// The text that requests a summary.
const (
	promptTokens = 400 // about
	promptID     = 1   // no message has this id
)

func (z *summarizer) Summarize(_ context.Context, req policy.SummaryRequest) (policy.Summary, error) {
	r, q := z.r, z.r.current
	r.summarized = true
	extract := policy.Extract{MaxTokens: r.s.summary}
	text := extract.Text(req.View, req.Hide, r.s.counter)
	written := r.s.sizes.Added(token.Part{Tokens: r.s.counter.Count(text)})
	if err := r.render(req.View); err != nil {
		return policy.Summary{}, err
	}
	pieces := append(r.pieces(req.View, q), piece{ID: promptID, Tokens: promptTokens, Positions: 1})
	s := r.cache.summary(q.model.Caching, q.ex.Model, pieces, q.at)
	prices := price.For(&q.model, s.prompt())
	r.own.dollars += bill(&q.model, s).Input() + float64(written)*prices.Output/1e6
	r.own.tokens += s.prompt() + written
	return policy.Summary{
		Text:  text,
		Model: q.ex.Model,
		Usage: furl.Usage{Input: s.Fresh, CacheRead: s.Read, CacheWrite: s.Write, CacheWrite1h: s.WriteLong, Output: written},
	}, nil
}
