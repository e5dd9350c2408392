package replay

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/token"
)

// summarizer replaces the model that a policy would ask for a summary:
// what it writes is an extract of the hidden messages' own words, as long as
// the recording's own summaries are, and it is billed as the request and the
// output a model would have made of it.
type summarizer struct{ r *run }

// promptTokens is about what asking for a summary adds to the prompt. No
// message has the id.
const (
	promptTokens = 400
	promptID     = 1
)

func (z *summarizer) Summarize(_ context.Context, req policy.SummaryRequest) (policy.Summary, error) {
	r, q := z.r, z.r.current
	r.asked = true
	extract := policy.Extract{MaxTokens: r.s.summary}
	text := extract.Text(req.View, req.Hide, r.s.counter)
	written := r.s.sizes.Added(token.Part{Tokens: r.s.counter.Count(text)})
	if err := r.render(req.View); err != nil {
		return policy.Summary{}, err
	}
	asked := append(r.pieces(req.View, q), piece{ID: promptID, Tokens: promptTokens, Positions: 1})
	s := r.cache.aside(q.model.Caching, q.ex.Model, asked, q.at)
	prices := price.For(&q.model, s.prompt())
	r.own.dollars += bill(&q.model, s).Input() + float64(written)*prices.Output/1e6
	r.own.tokens += s.prompt() + written
	return policy.Summary{
		Text:  text,
		Model: q.ex.Model,
		Usage: furl.Usage{Input: s.Fresh, CacheRead: s.Read, CacheWrite: s.Write, Output: written},
	}, nil
}
