package summary

import (
	"errors"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
)

// A summary is requested in one of two ways. A continued request is the client's
// request with the instructions appended: the provider's cache has its prefix,
// tools included, which the model is told not to use. A standalone request holds
// only the messages that the summary replaces, as text. It is cheaper if nothing
// is cached or another model writes the summary.

// Request returns the cheaper request and the name of the model it is for.
func (c *Conversation) Request(r policy.SummaryRequest) (body []byte, model string) {
	if o := c.Other; o != nil {
		if o.API != nil {
			return standaloneRequest(o.API, o.Body, r, o.Name), o.Name
		}
		return standaloneRequest(c.API, c.Body, r, o.Name), o.Name
	}
	whole, err := c.continuedRequest(r)
	own := standaloneRequest(c.API, c.Body, r, c.Name)
	if err != nil || r.Part || c.standaloneCheaper(r, own) {
		return own, c.Name
	}
	return whole, c.Name
}

// thinkingAllowance is the allowance for thinking in addition to the summary,
// in tokens.
const thinkingAllowance = 8_000

// errCannotAppend is the error for a request that instructions cannot be
// appended to.
var errCannotAppend = errors.New("cannot append instructions to the request")

// continuedRequest returns the client's request with the instructions for a summary
// appended. It returns an error if they cannot be appended, or if the request asks
// for something other than plain text.
func (c *Conversation) continuedRequest(r policy.SummaryRequest) ([]byte, error) {
	req, err := c.API.DecodeRequest(c.Body)
	if err != nil {
		return nil, err
	}
	body := c.API.Unforced(c.Body)
	if r.Lighter || len(req.Messages) == 0 || !c.API.AllowsPlainText(body) {
		return nil, errCannotAppend
	}
	if role := req.Messages[len(req.Messages)-1].Role; role != furl.RoleUser && role != furl.RoleTool {
		return nil, errCannotAppend
	}
	thinking := min(thinkingAllowance, max(0, r.Budget.Window-r.Budget.Size-2*r.MaxTokens))
	body, ok := c.API.WithLimit(body, r.MaxTokens, thinking, c.Model.MaxOutput)
	if !ok {
		return nil, errCannotAppend
	}
	if body, ok = c.API.Ask(body, r.Prompt); !ok {
		return nil, errCannotAppend
	}
	if req, err = c.API.DecodeRequest(body); err != nil {
		return nil, err
	}
	return body, c.API.Validate(req, c.Model)
}

// cachedTokens estimates how many tokens of the prompt are in the provider's
// cache, by the usage of the last request.
func (c *Conversation) cachedTokens(r policy.SummaryRequest) int {
	u, caching := c.Usage, c.Model.Caching
	switch {
	case caching.Lifetime <= 0:
		return 0
	case caching.Explicit:
		return min(r.Budget.Size, u.CacheRead+u.CacheWrite+u.CacheWrite1h)
	case u.Prompt() >= caching.MinPrefix:
		return min(r.Budget.Size, u.Prompt())
	}
	return 0
}

// standaloneCheaper reports whether the standalone request costs less than the
// continued one. The output costs the same.
func (c *Conversation) standaloneCheaper(r policy.SummaryRequest, apart []byte) bool {
	own := float64(estimateTokens(r, apart))
	p := price.Complete(price.For(&c.Model, r.Budget.Size, r.Budget.Now))
	if !price.Known(p) {
		return own < float64(r.Budget.Size)
	}
	hit := float64(c.cachedTokens(r))
	return own*p.Input < hit*p.CacheRead+(float64(r.Budget.Size)-hit)*p.Input
}

// estimateTokens estimates the size of a request in tokens.
func estimateTokens(r policy.SummaryRequest, body []byte) int {
	return r.Budget.Of(furl.InPlace(&furl.Block{}, string(body), r.Budget.Counter).Tokens, 0)
}
