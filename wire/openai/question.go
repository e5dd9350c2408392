package openai

import (
	"bytes"
	"strconv"

	"github.com/furlhq/furl/internal/rawjson"
)

// Question implements wire.API.
func (chat) Question(client []byte, model, instructions, question string, _ int) []byte {
	system := append(rawjson.AppendString([]byte(`{"role":"system","content":`), instructions), '}')
	body := questionFor(client, model, "stream", "stream_options", "user", "service_tier", "safety_identifier")
	body = appendField(body, "messages", bracketed(system, userMessage(question)))
	return append(body, '}')
}

// Question implements wire.API.
func (responses) Question(client []byte, model, instructions, question string, _ int) []byte {
	body := questionFor(client, model, "stream", "store", "user", "service_tier", "safety_identifier")
	body = appendField(body, "instructions", quote(instructions))
	body = appendField(body, "input", bracketed(userItem(question)))
	return append(body, '}')
}

// questionFor starts a request for a model with those fields of the client's
// request that say how and for whom it is answered. It sets no output limit,
// because some servers refuse one.
func questionFor(client []byte, model string, fields ...string) []byte {
	body := appendField([]byte{'{'}, "model", quote(model))
	for _, name := range fields {
		if v := rawjson.Field(client, name); v != nil {
			body = appendField(body, name, v)
		}
	}
	return body
}

func bracketed(items ...[]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

func userMessage(words string) []byte {
	return append(rawjson.AppendString([]byte(`{"role":"user","content":`), words), '}')
}

func userItem(words string) []byte {
	return append(rawjson.AppendString([]byte(`{"type":"message","role":"user","content":[{"type":"input_text","text":`), words), `}]}`...)
}

// AllowsPlainText implements wire.API.
func (chat) AllowsPlainText(body []byte) bool { return allowsPlainText(body) }

// AllowsPlainText implements wire.API.
func (responses) AllowsPlainText(body []byte) bool { return allowsPlainText(body) }

func allowsPlainText(body []byte) bool {
	ok := true
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return false
	}
	for key := range r.Fields() {
		switch string(key) {
		case "tool_choice":
			switch toolChoice(r.Raw()) {
			case "", "auto", "none", "allowed_tools":
			default:
				ok = false
			}
		case "response_format":
			ok = ok && isText(r.Raw())
		case "text":
			ok = ok && isText(rawjson.Field(r.Raw(), "format"))
		case "modalities":
			ok = ok && !bytes.Contains(r.Raw(), []byte("audio"))
		}
	}
	return ok && r.End() == nil
}

// toolChoice returns a tool_choice that is a string, or the type of one that is an
// object.
func toolChoice(raw []byte) string {
	if s := rawjson.Unquote(raw); s != "" {
		return s
	}
	return rawjson.Unquote(rawjson.Field(raw, "type"))
}

// isText reports whether an output format is missing or that of plain text.
func isText(format []byte) bool {
	t := rawjson.Unquote(rawjson.Field(format, "type"))
	return t == "" || t == "text"
}

// Unforced implements wire.API.
func (chat) Unforced(body []byte) []byte {
	return unforced(body, hasTools(body), "stop", "n", "prediction", "logprobs", "top_logprobs")
}

// Unforced implements wire.API. Tools may be defined in the list instead of in tools
// (additional_tools); the clients that do so send a tool_choice of auto.
func (responses) Unforced(body []byte) []byte {
	return unforced(body, hasTools(body) || string(rawjson.Field(body, "tool_choice")) == `"auto"`, "background", "top_logprobs")
}

func hasTools(body []byte) bool {
	tools := rawjson.Field(body, "tools")
	return len(tools) > 0 && string(tools) != "[]" && string(tools) != "null"
}

// unforced forbids calls, if there are tools, and drops fields. Neither affects the
// provider's cache.
func unforced(body []byte, tools bool, drop ...string) []byte {
	if tools {
		body = rawjson.Splice(body, rawjson.SetField(body, "tool_choice", []byte(`"none"`)))
	}
	for _, name := range drop {
		body = rawjson.Splice(body, rawjson.DropField(body, name))
	}
	return body
}

// Ask implements wire.API.
func (chat) Ask(body []byte, words string) ([]byte, bool) {
	list, ok := rawjson.AppendElement(rawjson.Field(body, "messages"), userMessage(words))
	if !ok {
		return nil, false
	}
	return rawjson.Splice(body, rawjson.SetField(body, "messages", list)), true
}

// Ask implements wire.API. The input may be a text instead of a list.
func (responses) Ask(body []byte, words string) ([]byte, bool) {
	input := rawjson.Field(body, "input")
	if rawjson.NewReader(input).Kind() == '"' {
		input = bracketed(userItem(rawjson.Unquote(input)))
	}
	list, ok := rawjson.AppendElement(input, userItem(words))
	if !ok {
		return nil, false
	}
	return rawjson.Splice(body, rawjson.SetField(body, "input", list)), true
}

// WithLimit implements wire.API.
func (chat) WithLimit(body []byte, tokens, slack, most int) ([]byte, bool) {
	return withLimit(body, tokens+slack, most, "max_tokens", "max_completion_tokens"), true
}

// WithLimit implements wire.API.
func (responses) WithLimit(body []byte, tokens, slack, most int) ([]byte, bool) {
	return withLimit(body, tokens+slack, most, "max_output_tokens"), true
}

// CacheOnly implements wire.API: the provider has no such request. Its reasoning
// models refuse the smallest limits, and a request without one pays for a reply.
func (chat) CacheOnly([]byte) ([]byte, bool) { return nil, false }

// HourPreamble implements wire.API: a lifetime applies to the whole request.
func (chat) HourPreamble([]byte) ([]byte, bool) { return nil, false }

// HourPreamble implements wire.API: a lifetime applies to the whole request.
func (responses) HourPreamble([]byte) ([]byte, bool) { return nil, false }

// BillingLine implements wire.API: only Claude Code sends such a line, to Messages.
func (chat) BillingLine([]byte) string { return "" }

// BillingLine implements wire.API.
func (responses) BillingLine([]byte) string { return "" }

// WithBillingLine implements wire.API.
func (chat) WithBillingLine([]byte, string) ([]byte, bool) { return nil, false }

// WithBillingLine implements wire.API.
func (responses) WithBillingLine([]byte, string) ([]byte, bool) { return nil, false }

// CacheOnly implements wire.API: the provider has no such request.
func (responses) CacheOnly([]byte) ([]byte, bool) { return nil, false }

// withLimit changes a limit only if the client set one: some servers refuse
// it.
func withLimit(body []byte, limit, most int, fields ...string) []byte {
	if most > 0 {
		limit = min(limit, most)
	}
	for _, name := range fields {
		body = rawjson.Replaced(body, name, strconv.AppendInt(nil, int64(limit), 10))
	}
	return body
}
