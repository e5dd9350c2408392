package sim

import (
	"fmt"
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/openai"
)

// responses is OpenAI Responses.
type responses struct{ openAI }

func (responses) codec() decoder { return openai.Responses }

var responsesFields = names(`background client_metadata context_management conversation include input instructions max_output_tokens
	max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
	prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice
	tools top_logprobs top_p truncation user`)

func (responses) expand(c *call, body []byte) ([]byte, error) {
	f := &c.facts
	f.stored = true
	conversation := ""
	var bad *protocol.Refusal
	f.read(body, func(key string, r *rawjson.Reader) {
		switch key {
		case "store":
			f.stored = r.Kind() != 'f'
			r.Skip()
		case "service_tier":
			f.readTerm(r, &f.terms.Tier, "auto", "default")
		case "previous_response_id":
			f.previous, _ = r.String()
		case "conversation":
			if r.Kind() != 'n' {
				conversation = "given"
			}
			r.Skip()
		case "include":
			if r.Kind() != '[' {
				return
			}
			for range r.Elements() {
				s, _ := r.String()
				f.encrypted = f.encrypted || s == "reasoning.encrypted_content"
			}
		case "context_management":
			if raw := notNull(r.Raw()); raw != nil {
				bad = f.readThreshold(raw)
			}
		case "tool_choice", "tools", "instructions", "prompt_cache_key", "reasoning":
			if f.echo == nil {
				f.echo = make(map[string][]byte)
			}
			f.echo[key] = r.Raw()
		}
	})
	if bad != nil {
		return nil, bad
	}
	if conversation != "" && f.previous == "" {
		return nil, &protocol.Refusal{Status: http.StatusNotFound, Type: "invalid_request_error", Message: "Conversation not found. The sim stores none."}
	}
	return c.continued(body)
}

func (responses) build(c *call) { buildOpenAI(c) }

func (responses) check(c *call) error {
	if r := unknownField(c, responsesFields); r != nil {
		return r
	}
	if r := tooManyTokens(c, "max_output_tokens"); r != nil {
		return r
	}
	if err := c.checkItems(); err != nil {
		return err
	}
	c.checkThreshold()
	return nil
}

func (responses) overflow(c *call, tokens int) *protocol.Refusal {
	return openai.Overflow(furl.FormatResponses, tokens, c.window())
}

func (responses) streamError(_ *call, sent int) event {
	return event{name: "error", data: fmt.Appendf(nil,
		`{"type":"error","code":"server_error","message":%s,"param":null,"sequence_number":%d}`, str(serverTrouble), sent)}
}

// overflowed ends with a failed response.
func (responses) overflowed(c *call, a *answer) []event {
	var events []event
	for i, name := range []string{"response.created", "response.in_progress"} {
		events = append(events, event{name: name,
			data: fmt.Appendf(nil, `{"type":%q,"sequence_number":%d,"response":%s}`, name, i, c.response(a, "in_progress", nil))})
	}
	whole := c.response(a, "failed", nil)
	whole = rawjson.Splice(whole, rawjson.SetField(whole, "usage", []byte("null")))
	r := openai.Overflow(furl.FormatResponses, 0, c.window())
	whole = rawjson.Splice(whole, rawjson.SetField(whole, "error", fmt.Appendf(nil, `{"code":%q,"message":%s}`, r.Code, str(r.Message))))
	return append(events, event{name: "response.failed",
		data: fmt.Appendf(nil, `{"type":"response.failed","sequence_number":%d,"response":%s}`, len(events), whole)})
}

func (responses) newID(c *call) string { return c.hexID("resp_") }

func (responses) thinks(*call) bool { return true }

func (responses) count(_ *call, tokens int) []byte {
	return fmt.Appendf(nil, `{"object":"response.input_tokens","input_tokens":%d}`, tokens)
}
