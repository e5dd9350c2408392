package anthropic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// The HTTP statuses and error types of refusals.
const (
	badRequest      = 400
	entityTooLarge  = 413
	tooManyRequests = 429

	invalidRequest = "invalid_request_error"
	tooLarge       = "request_too_large"
)

// refuse returns a 400.
func refuse(format string, args ...any) *protocol.Refusal {
	return &protocol.Refusal{Status: badRequest, Type: invalidRequest, Message: fmt.Sprintf(format, args...)}
}

// PromptTooLong is the refusal of a prompt that exceeds the window without
// its output, with its size and the maximum in tokens.
func PromptTooLong(tokens, maximum int) *protocol.Refusal {
	return refuse("prompt is too long: %d tokens > %d maximum", tokens, maximum)
}

// OutputTooLong is the refusal of a prompt that fits but leaves no room for
// the requested output. Newer models accept such a request and stop with
// model_context_window_exceeded instead.
func OutputTooLong(tokens, maxTokens, window int) *protocol.Refusal {
	return refuse("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again",
		tokens, maxTokens, window)
}

// BodyTooLarge is the refusal of a body over the limit in bytes. It comes
// from a proxy before the API, before any other check.
func BodyTooLarge() *protocol.Refusal {
	return &protocol.Refusal{Status: entityTooLarge, Type: tooLarge, Message: "Request exceeds the maximum size"}
}

// ThreadUnsupported is the refusal of a message thread. Anthropic's SDKs then send the
// whole conversation without one (documentation of message threads, November 2026).
func ThreadUnsupported(message string) *protocol.Refusal {
	return &protocol.Refusal{Status: badRequest, Type: invalidRequest, Code: "thread_unsupported_request", Message: message}
}

// ThreadNotFound is the refusal to continue a message thread that the provider does not
// have. Clients then create another one with the whole conversation.
func ThreadNotFound(message string) *protocol.Refusal {
	return &protocol.Refusal{Status: 404, Type: "not_found_error", Code: "thread_not_found", Message: message}
}

// ErrorBody encodes a refusal as the provider does.
func ErrorBody(r *protocol.Refusal, requestID string) []byte {
	out := rawjson.AppendString([]byte(`{"type":"error","error":{"type":`), r.Type)
	out = rawjson.AppendString(append(out, `,"message":`...), r.Message)
	if r.Code != "" {
		out = rawjson.AppendString(append(out, `,"details":{"error_code":`...), r.Code)
		out = append(out, '}')
	}
	out = append(out, '}')
	if requestID != "" {
		out = rawjson.AppendString(append(out, `,"request_id":`...), requestID)
	}
	return append(out, '}')
}

// ParseOverflow recognises an error that says that the prompt is too large.
// reported is the size of the prompt and limit the maximum with the requested
// output, both in tokens; they are 0 if the error does not contain them.
func ParseOverflow(status int, body []byte) (reported, limit int, ok bool) {
	typ, _, message := parseError(body)
	switch status {
	case entityTooLarge:
		// Bytes, or from some proxies tokens; without numbers in both cases.
		return 0, 0, true
	case badRequest:
	default:
		return 0, 0, false
	}
	if typ == tooLarge {
		return 0, 0, true
	}
	if n, ok := numbersAfter(message, "prompt is too long: ", 2); ok {
		return n[0], n[1], true
	}
	if n, ok := numbersAfter(message, "exceed context limit: ", 3); ok {
		return n[0], max(n[2]-n[1], 0), true
	}
	for _, phrase := range []string{
		"prompt is too long",
		"exceed context limit",
		"Input is too long for requested model", // Bedrock
		"Request size exceeds model context window",
	} {
		if strings.Contains(message, phrase) {
			return 0, 0, true
		}
	}
	return 0, 0, false
}

// thinkingTexts identify a refusal of thinking in the prompt. Quotes are removed, because
// gateways that wrap the message in their own write them differently.
var thinkingTexts = []string{
	"Invalid signature in thinking block",
	"Invalid data in redacted_thinking block",
	"blocks in the latest assistant message cannot be modified",
}

// parseThinkingRefused recognises an error that says that thinking in the prompt is not
// valid there, nil if it is another error. Leaving out thinking does not help where the
// error is that it is missing.
//
// The texts are those of the API and of the page "Fix a thinking block bound to a
// different conversation" (platform.claude.com, 2026-11). Some gateways return them with
// status 429.
func parseThinkingRefused(status int, message string) *protocol.ThinkingRefused {
	if status != badRequest && status != tooManyRequests {
		return nil
	}
	message = quoteRemover.Replace(message)
	for _, text := range thinkingTexts {
		if strings.Contains(message, text) {
			return &protocol.ThinkingRefused{Bound: strings.Contains(message, "bound to a different conversation")}
		}
	}
	return nil
}

var quoteRemover = strings.NewReplacer("`", "", `\"`, "", `"`, "", "'", "")

// parseError reads an error body; a body that is not JSON is the message.
func parseError(body []byte) (typ, code, message string) {
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return "", "", string(body[:min(len(body), 4<<10)])
	}
	for key := range r.Fields() {
		switch string(key) {
		case "error":
			if r.Kind() != '{' {
				continue
			}
			for key := range r.Fields() {
				switch string(key) {
				case "type":
					typ, _ = r.String()
				case "message":
					message, _ = r.String()
				case "details":
					code = rawjson.Unquote(rawjson.Field(r.Raw(), "error_code"))
				}
			}
		case "message": // Bedrock has no envelope
			message, _ = r.String()
		}
	}
	return typ, code, message
}

// numbersAfter reads the first n whole numbers after a phrase. Some gateways
// wrap the provider's message in their own, so it may be anywhere.
func numbersAfter(s, phrase string, n int) ([]int, bool) {
	_, s, ok := strings.Cut(s, phrase)
	if !ok {
		return nil, false
	}
	var out []int
	for len(out) < n {
		at := strings.IndexAny(s, "0123456789")
		if at < 0 || at > 40 {
			return nil, false
		}
		s = s[at:]
		end := 0
		for end < len(s) && '0' <= s[end] && s[end] <= '9' {
			end++
		}
		v, err := strconv.Atoi(s[:end])
		if err != nil {
			return nil, false
		}
		out, s = append(out, v), s[end:]
	}
	return out, true
}
