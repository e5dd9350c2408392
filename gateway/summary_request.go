package gateway

import (
	"bytes"
	"errors"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
)

// A summary is asked for in one of two ways. The client's own request with the
// words that ask after it finds everything in the provider's cache, where
// there is one: tools and all, which the model is told not to use. A request of
// furl's request holds only what the summary replaces, as text, and is
// cheaper where nothing is cached or another model writes.

// request makes the request that costs less, and names the model it is for.
func (a *asker) request(r policy.SummaryRequest) (body []byte, model string, err error) {
	if a.other != "" {
		return a.apart(r, a.other), a.other, nil
	}
	whole, err := a.continued(r)
	own := a.apart(r, a.name)
	if err != nil || a.cheaper(r, own) {
		return own, a.name, nil
	}
	return whole, a.name, nil
}

// slack is what may be written beside the summary, in tokens: thinking.
const slack = 8_000

// errNotBehind says that a request cannot be asked for a summary.
var errNotBehind = errors.New("the request does not take further words")

// continued is the client's request with the words that ask for a summary after
// it. It is an error if they cannot be there, or what is asked for is not
// plain text.
func (a *asker) continued(r policy.SummaryRequest) ([]byte, error) {
	req, err := a.rt.codec.DecodeRequest(a.body)
	if err != nil {
		return nil, err
	}
	body := a.rt.codec.Unforced(a.body)
	if r.Lighter || len(req.Messages) == 0 || !plain(body) {
		return nil, errNotBehind
	}
	if role := req.Messages[len(req.Messages)-1].Role; role != furl.RoleUser && role != furl.RoleTool {
		return nil, errNotBehind
	}
	thinking := min(slack, max(0, r.Budget.Window-r.Budget.Size-2*r.MaxTokens))
	body, ok := a.rt.codec.WithLimit(body, r.MaxTokens, thinking, a.model.MaxOutput)
	if !ok {
		return nil, errNotBehind
	}
	if body, ok = a.rt.codec.Ask(body, r.Prompt); !ok {
		return nil, errNotBehind
	}
	if req, err = a.rt.codec.DecodeRequest(body); err != nil {
		return nil, err
	}
	return body, a.rt.codec.Validate(req, a.model)
}

// plain reports whether a request may be answered with plain text: no call is
// demanded, and no other form.
func plain(body []byte) bool {
	ok := true
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return false
	}
	for key := range r.Fields() {
		switch string(key) {
		case "tool_choice":
			switch choiceOf(r.Raw()) {
			case "", "auto", "none", "allowed_tools":
			default:
				ok = false
			}
		case "response_format", "output_format":
			if t := field(r.Raw(), "type"); t != "" && t != "text" {
				ok = false
			}
		case "text", "output_config":
			if t := field(rawjson.Field(r.Raw(), "format"), "type"); t != "" && t != "text" {
				ok = false
			}
		case "modalities":
			ok = ok && !bytes.Contains(r.Raw(), []byte("audio"))
		}
	}
	return ok && r.End() == nil
}

// choiceOf is a tool_choice that is a word, or the type of one that is not.
func choiceOf(raw []byte) string {
	if s := rawjson.Unquote(raw); s != "" {
		return s
	}
	return field(raw, "type")
}

func field(obj []byte, name string) string { return rawjson.Unquote(rawjson.Field(obj, name)) }

// inCache is how much of the prompt the provider's cache holds, going by what
// it said of the last request.
func (a *asker) inCache(r policy.SummaryRequest) int {
	u, c := a.usage, a.model.Caching
	switch {
	case c.Lifetime <= 0:
		return 0
	case c.Explicit:
		return min(r.Budget.Size, u.CacheRead+u.CacheWrite+u.CacheWrite1h)
	case u.Prompt() >= c.MinPrefix:
		return min(r.Budget.Size, u.Prompt())
	}
	return 0
}

// cheaper reports whether a request apart costs less than one after the
// client's. Both would be answered with as much.
func (a *asker) cheaper(r policy.SummaryRequest, apart []byte) bool {
	own := float64(a.tokens(r, apart))
	p := price.Complete(price.For(&a.model, r.Budget.Size))
	if !price.Known(p) {
		return own < float64(r.Budget.Size)
	}
	hit := float64(a.inCache(r))
	return own*p.Input < hit*p.CacheRead+(float64(r.Budget.Size)-hit)*p.Input
}

// tokens is about the size of a request.
func (a *asker) tokens(r policy.SummaryRequest, body []byte) int {
	return r.Budget.Of(furl.InPlace(&furl.Block{}, string(body), r.Budget.Counter).Tokens, 0)
}
