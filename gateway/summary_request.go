package gateway

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/policy"
)

// A summary is asked for in one of two ways. The client's own request with the
// words that ask behind it finds everything in the provider's cache, where
// there is one: tools and all, which the model is told not to use. A request of
// furl's own holds only what the summary is to stand for, as text, and is
// cheaper where nothing is cached or another model writes.

// request makes the request that costs less, and names the model it is for.
func (a *asker) request(r policy.SummaryRequest) (body []byte, model string, err error) {
	if a.other != "" {
		body, err = a.apart(r, a.other)
		return body, a.other, err
	}
	whole, err := a.behind(r)
	own, ownErr := a.apart(r, a.name)
	if err != nil || ownErr == nil && a.cheaper(r, own) {
		return own, a.name, ownErr
	}
	return whole, a.name, nil
}

// slack is what may be written beside the summary, in tokens: thinking.
const slack = 8_000

// errNotBehind says that a request cannot be asked for a summary.
var errNotBehind = errors.New("the request does not take further words")

// behind is the client's request with the words that ask for a summary behind
// it. It is an error if they cannot stand there, or what is asked for is not
// plain text.
func (a *asker) behind(r policy.SummaryRequest) ([]byte, error) {
	req, err := a.rt.codec.DecodeRequest(a.body)
	if err != nil {
		return nil, err
	}
	body := withoutCalls(a.body, req.Format)
	if r.Lighter || len(req.Messages) == 0 || !plain(body) {
		return nil, errNotBehind
	}
	if role := req.Messages[len(req.Messages)-1].Role; role != furl.RoleUser && role != furl.RoleTool {
		return nil, errNotBehind
	}
	for _, name := range alone[req.Format] {
		body = rawjson.Splice(body, rawjson.DropField(body, name))
	}
	if body, err = a.limited(body, req, r); err != nil {
		return nil, err
	}
	if body, err = withWords(body, req.Format, r.Prompt); err != nil {
		return nil, err
	}
	if req, err = a.rt.codec.DecodeRequest(body); err != nil {
		return nil, err
	}
	return body, a.rt.codec.Validate(req, a.model)
}

// alone are the fields that are about one answer and would spoil this one.
// None of them is part of what providers cache.
var alone = map[furl.Format][]string{
	furl.FormatAnthropic: {"stop_sequences", "compaction"},
	furl.FormatChat:      {"stop", "n", "prediction", "logprobs", "top_logprobs"},
	furl.FormatResponses: {"background", "top_logprobs"},
}

// withoutCalls forbids calls where that leaves the provider's cache as it is,
// which it does not for Messages.
func withoutCalls(body []byte, format furl.Format) []byte {
	tools := rawjson.Field(body, "tools")
	if format == furl.FormatAnthropic || len(tools) == 0 || string(tools) == "[]" || string(tools) == "null" {
		return body
	}
	return rawjson.Splice(body, rawjson.SetField(body, "tool_choice", []byte(`"none"`)))
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

// limited bounds what may be written. Messages must say how much; of the
// others only what the client says is changed, since some servers refuse a
// limit.
func (a *asker) limited(body []byte, req *furl.Request, r policy.SummaryRequest) ([]byte, error) {
	most := r.MaxTokens + min(slack, max(0, r.Budget.Window-r.Budget.Size-2*r.MaxTokens))
	if req.Format == furl.FormatAnthropic {
		thinking := rawjson.Field(body, "thinking")
		budget, _ := strconv.Atoi(string(rawjson.Field(thinking, "budget_tokens")))
		switch field(thinking, "type") {
		case "enabled":
			most = r.MaxTokens + budget
		case "", "disabled":
			most = r.MaxTokens
		}
		if m := a.model.MaxOutput; m > 0 && m <= budget {
			return nil, errNotBehind
		}
	}
	if m := a.model.MaxOutput; m > 0 {
		most = min(most, m)
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if rawjson.Field(body, name) != nil {
			body = rawjson.Splice(body, rawjson.SetField(body, name, strconv.AppendInt(nil, int64(most), 10)))
		}
	}
	return body, nil
}

// withWords adds words of the user at the end of a request's list.
func withWords(body []byte, format furl.Format, words string) ([]byte, error) {
	list, item := "messages", userMessage(words)
	if format == furl.FormatResponses {
		list, item = "input", userItem(words)
	}
	raw := rawjson.Field(body, list)
	var with []byte
	switch r := rawjson.NewReader(raw); r.Kind() {
	case '"':
		with = slices.Concat([]byte{'['}, userItem(rawjson.Unquote(raw)), []byte{','}, item, []byte{']'})
	case '[':
		end := bytes.LastIndexByte(raw, ']')
		comma := []byte{','}
		if len(bytes.TrimSpace(raw[1:end])) == 0 {
			comma = nil
		}
		with = slices.Concat(raw[:end], comma, item, raw[end:])
	default:
		return nil, errNotBehind
	}
	return rawjson.Splice(body, rawjson.SetField(body, list, with)), nil
}

func userMessage(words string) []byte {
	return append(rawjson.AppendString([]byte(`{"role":"user","content":`), words), '}')
}

func userItem(words string) []byte {
	return append(rawjson.AppendString([]byte(`{"type":"message","role":"user","content":[{"type":"input_text","text":`), words), `}]}`...)
}

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

// cheaper reports whether a request apart costs less than one behind the
// client's. Both would be answered with as much.
func (a *asker) cheaper(r policy.SummaryRequest, apart []byte) bool {
	own := float64(a.tokens(r, apart))
	p := a.model.PricesFor(r.Budget.Size).Complete()
	if !p.Known() {
		return own < float64(r.Budget.Size)
	}
	hit := float64(a.inCache(r))
	return own*p.Input < hit*p.CacheRead+(float64(r.Budget.Size)-hit)*p.Input
}

// tokens is about the size of a request.
func (a *asker) tokens(r policy.SummaryRequest, body []byte) int {
	return r.Budget.Scaled(furl.InPlace(&furl.Block{}, string(body), r.Budget.Counter).Tokens)
}
