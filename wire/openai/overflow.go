package openai

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

const overflowCode = "context_length_exceeded"

// Overflow returns the provider's refusal of a prompt that does not fit into
// the window; tokens is its size and limit the window's. Responses does not
// report the numbers.
func Overflow(format furl.Format, tokens, limit int) *protocol.Refusal {
	if format == furl.FormatResponses {
		return refuse(overflowCode, "input", "Your input exceeds the context window of this model. Please adjust your input and try again.")
	}
	return refuse(overflowCode, "messages",
		"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", limit, tokens)
}

// overflowTexts identify an overflow without a code: compatible servers use
// OpenAI's structure but not its codes.
var overflowTexts = []string{
	"maximum context length is",
	"exceeds the context window",
	"exceed the configured limit of",
	"exceeds the available context size",
	"maximum context length",
	"context length exceeded",
	"prompt is too long:",
}

var (
	limitPattern = lazyregexp.New(`(?:maximum context length is|configured limit of|available context size \(|model with|tokens >) ?([0-9]{1,12})`)
	// The prompt alone if the text names it, otherwise everything requested.
	partPatterns = []*lazyregexp.Regexp{
		lazyregexp.New(`([0-9]{1,12}) in the (?:messages|prompt|input)`),
		lazyregexp.New(`([0-9]{1,12}) in the (?:functions|tools)`),
	}
	wholePattern = lazyregexp.New(`(?:resulted in|you requested|requested about|request \(|contains|too long:) ?([0-9]{1,12})`)
)

// maxErrorBody bounds how much of an error is read.
const maxErrorBody = 64 << 10

// ParseOverflow reports whether a response says that the prompt was too long:
// an error body of either API, or the data of a Responses stream event that
// ends in an error (then with the status of the stream, 200). reported and
// limit are the tokens named in the text, 0 if it does not name them.
func ParseOverflow(status int, body []byte) (reported, limit int, ok bool) {
	switch status {
	case 401, 403, 404, 429:
		return 0, 0, false
	}
	if len(body) > maxErrorBody {
		return 0, 0, false
	}
	var e apiError
	e.read(rawjson.NewReader(body), 0)
	if e.code != overflowCode && e.typ != "exceed_context_size_error" && !overflowText(e.message) {
		return 0, 0, false
	}
	if limit = firstNumber(limitPattern, e.message); limit == 0 {
		limit = e.window
	}
	for _, p := range partPatterns {
		reported += firstNumber(p, e.message)
	}
	if reported == 0 {
		reported = firstNumber(wholePattern, e.message)
	}
	if reported == 0 {
		reported = e.prompt
	}
	return reported, limit, true
}

func overflowText(message string) bool {
	message = strings.ToLower(message)
	for _, text := range overflowTexts {
		if strings.Contains(message, text) {
			return true
		}
	}
	return false
}

// parseThinkingRefused recognises an error that says that reasoning in the prompt cannot be
// read, nil if it is another error: OpenAI's code, and the text of Anthropic's models
// through routers that speak Chat Completions.
func parseThinkingRefused(e *apiError) *protocol.ThinkingRefused {
	message := strings.NewReplacer("`", "", `\"`, "").Replace(e.message)
	switch {
	case e.code == "invalid_encrypted_content",
		strings.Contains(message, "encrypted content") && strings.Contains(message, "could not be verified"),
		strings.Contains(message, "Invalid signature in thinking block"):
		return &protocol.ThinkingRefused{Bound: strings.Contains(message, "bound to a different conversation")}
	}
	return nil
}

func firstNumber(p *lazyregexp.Regexp, s string) int {
	found := p.FindStringSubmatch(s)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // at most twelve digits
	return n
}

// apiError is an error of the provider or a compatible server: {error:{…}},
// the members at the top level (vLLM, stream events of type error), or inside
// the response of a response.failed event.
type apiError struct {
	message, code, typ, param string
	number                    int // a numeric code, as routers return
	prompt, window            int // llama.cpp
}

func (e *apiError) read(r *rawjson.Reader, depth int) {
	if r.Kind() != '{' || depth > 2 {
		return
	}
	for key := range r.Fields() {
		switch string(key) {
		case "error", "response":
			if r.Kind() == '{' {
				e.read(r, depth+1)
			}
		case "message":
			if s, ok := r.String(); ok {
				e.message = s
			}
		case "code":
			if r.Kind() == '0' {
				e.number, _ = r.Int()
			} else if s, ok := r.String(); ok {
				e.code = s
			}
		case "param":
			if s, ok := r.String(); ok {
				e.param = s
			}
		case "type":
			// The outer type is that of a stream event.
			if s, ok := r.String(); ok && (e.typ == "" || depth > 0) {
				e.typ = s
			}
		case "n_prompt_tokens":
			e.prompt, _ = r.Int()
		case "n_ctx":
			e.window, _ = r.Int()
		}
	}
}

// ErrorBody returns the body of the provider's response to a refused request.
func ErrorBody(r *protocol.Refusal) []byte {
	null := func(s string) []byte {
		if s == "" {
			return []byte("null")
		}
		return quote(s)
	}
	e := appendField([]byte{'{'}, "message", quote(r.Message))
	e = appendField(e, "type", quote(r.Type))
	e = appendField(e, "param", null(r.Param))
	e = append(appendField(e, "code", null(r.Code)), '}')
	return fmt.Appendf(nil, `{"error":%s}`, e)
}
