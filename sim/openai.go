package sim

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/openai"
)

// openAI is the common part of OpenAI's formats.
type openAI struct{}

func (openAI) authenticate(r *http.Request) *protocol.Refusal {
	if auth := r.Header.Get("Authorization"); strings.HasPrefix(auth, "Bearer ") && len(auth) > len("Bearer ") {
		return nil
	}
	return &protocol.Refusal{Status: http.StatusUnauthorized, Type: "invalid_request_error",
		Message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."}
}

func (openAI) errorBody(r *protocol.Refusal, _ string) []byte { return openai.ErrorBody(r) }

func (openAI) undecoded(error) *protocol.Refusal {
	return refused("We could not parse the JSON body of your request. " +
		"(HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)")
}

func (openAI) unknownModel(name string) *protocol.Refusal {
	if name == "" {
		return refused("you must provide a model parameter")
	}
	return &protocol.Refusal{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found",
		Message: "The model `" + name + "` does not exist or you do not have access to it."}
}

func (openAI) statusError(status int) *protocol.Refusal {
	r := &protocol.Refusal{Status: status, Type: "server_error", Message: serverTrouble}
	switch {
	case status == 401:
		r.Type, r.Code, r.Message = "invalid_request_error", "invalid_api_key", "Incorrect API key provided."
	case status == 403:
		r.Type, r.Message = "invalid_request_error", "You are not allowed to do this."
	case status == 429:
		r.Type, r.Code, r.Message = "requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later."
	case status == 503 || status == 529:
		r.Message = "The server is currently overloaded with other requests. Sorry about that! Please retry your request."
	case status < 500:
		r.Type, r.Message = "invalid_request_error", http.StatusText(status)
	}
	return r
}

const serverTrouble = "The server had an error while processing your request. Sorry about that!"

func (openAI) ping() []byte { return []byte(": ping\n\n") }

func (openAI) callID(c *call) string { return c.newID("call_", 24) }

// unknownField refuses a field that the provider does not accept.
func unknownField(c *call, known map[string]string) *protocol.Refusal {
	if c.sim.opts.AnyField {
		return nil
	}
	if name := c.facts.unknown(known); name != "" {
		return &protocol.Refusal{Status: 400, Type: "invalid_request_error", Code: "unknown_parameter", Param: name,
			Message: fmt.Sprintf("Unknown parameter: '%s'.", name)}
	}
	return nil
}

func tooManyTokens(c *call, name string) *protocol.Refusal {
	if most := c.model.MaxOutput; most > 0 && c.req.MaxTokens > most {
		return &protocol.Refusal{Status: 400, Type: "invalid_request_error", Code: "invalid_value", Param: name,
			Message: fmt.Sprintf("%s is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.",
				name, c.req.MaxTokens, most, c.req.MaxTokens)}
	}
	return nil
}

// buildOpenAI builds the prompt: tools and instructions, then the list.
func buildOpenAI(c *call) {
	var d digester
	for i := range c.req.Preamble {
		b := &c.req.Preamble[i]
		digest := d.text("text", b.Text)
		if b.Kind == furl.KindOpaque {
			digest = d.object([]byte(b.Text))
		}
		c.prompt.add(c, b, part{msg: -1, digest: digest, bound: true})
	}
	c.prompt.messages(c)
}

func names(list string) map[string]string {
	m := make(map[string]string)
	for name := range strings.FieldsSeq(list) {
		m[name] = ""
	}
	return m
}
