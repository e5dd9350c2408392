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
	s, err := z.prompt(req)
	if err != nil {
		return policy.Summary{}, err
	}
	prices := price.For(&q.model, s.prompt(), q.at)
	r.own.dollars += bill(&q.model, s, q.at).Input() + float64(written)*prices.Output/1e6
	r.own.tokens += s.prompt() + written
	return policy.Summary{
		Text:  text,
		Model: q.ex.Model,
		Usage: furl.Usage{Input: s.Fresh, CacheRead: s.Read, CacheWrite: s.Write, CacheWrite1h: s.WriteLong, Output: written},
	}, nil
}

// prompt is the prompt of the request for a summary, by billing class.
func (z *summarizer) prompt(req policy.SummaryRequest) (split, error) {
	r, q := z.r, z.r.current
	if req.Apart > 0 { // no other request has this text, so none of it is cached
		return split{Fresh: r.s.sizes.Added(token.Part{Tokens: req.Apart}) + promptTokens}, nil
	}
	if err := r.render(req.View); err != nil {
		return split{}, err
	}
	pieces := append(r.pieces(req.View, q), piece{ID: promptID, Tokens: promptTokens, Positions: 1})
	return r.cache.summary(q.model.Caching, q.ex.Model, pieces, q.at), nil
}
