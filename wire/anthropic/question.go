package anthropic

import (
	"bytes"
	"strconv"

	"github.com/furlhq/furl/internal/rawjson"
)

// questionFields are the fields of a client's request that a question copies:
// how and for whom it is answered.
var questionFields = []string{"stream", "metadata", "service_tier", "inference_geo"}

// Question implements wire.API.
func (codec) Question(client []byte, model, instructions, question string, maxTokens int) []byte {
	body := rawjson.AppendString([]byte(`{"model":`), model)
	add := func(name string, value []byte) {
		body = append(rawjson.AppendString(append(body, ','), name), ':')
		body = append(body, value...)
	}
	for _, name := range questionFields {
		if v := rawjson.Field(client, name); v != nil {
			add(name, v)
		}
	}
	add("max_tokens", strconv.AppendInt(nil, int64(maxTokens), 10))
	add("system", systemOf(client, instructions))
	add("messages", bracketed(userMessage(question)))
	return append(body, '}')
}

// maxFirst is the largest first system block of a client that is copied, in
// bytes.
const maxFirst = 1 << 10

// systemOf returns furl's instructions, preceded by the client's first system
// block if it is short: some credentials are valid only for clients that
// identify themselves there.
func systemOf(client []byte, instructions string) []byte {
	own := textBlock(instructions)
	first := rawjson.Elements(rawjson.Field(client, "system"))
	if len(first) > 0 {
		if text := rawjson.Unquote(rawjson.Field(first[0], "text")); text != "" && len(text) <= maxFirst {
			return bracketed(textBlock(text), own)
		}
	}
	return bracketed(own)
}

func textBlock(text string) []byte {
	return append(rawjson.AppendString([]byte(`{"type":"text","text":`), text), '}')
}

func bracketed(items ...[]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

func userMessage(words string) []byte {
	return append(rawjson.AppendString([]byte(`{"role":"user","content":`), words), '}')
}

// AllowsPlainText implements wire.API.
func (codec) AllowsPlainText(body []byte) bool {
	ok := true
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return false
	}
	for key := range r.Fields() {
		switch string(key) {
		case "tool_choice":
			switch field(r.Raw(), "type") {
			case "", "auto", "none":
			default:
				ok = false
			}
		case "output_format":
			ok = ok && isText(r.Raw())
		case "output_config":
			ok = ok && isText(rawjson.Field(r.Raw(), "format"))
		}
	}
	return ok && r.End() == nil
}

// isText reports whether an output format is missing or that of plain text.
func isText(format []byte) bool {
	t := field(format, "type")
	return t == "" || t == "text"
}

// Unforced implements wire.API. Calls are not forbidden: a change of
// tool_choice invalidates the provider's cache of the messages.
func (codec) Unforced(body []byte) []byte {
	for _, name := range []string{"stop_sequences", "compaction", "thread"} {
		body = rawjson.Splice(body, rawjson.DropField(body, name))
	}
	return body
}

// Ask implements wire.API.
func (codec) Ask(body []byte, words string) ([]byte, bool) {
	list, ok := rawjson.AppendElement(rawjson.Field(body, "messages"), userMessage(words))
	if !ok {
		return nil, false
	}
	return rawjson.Splice(body, rawjson.SetField(body, "messages", list)), true
}

// WithLimit implements wire.API. A request limits its model's thinking,
// forbids it, or leaves it to the model.
func (codec) WithLimit(body []byte, tokens, slack, most int) ([]byte, bool) {
	thinking := rawjson.Field(body, "thinking")
	budget, _ := strconv.Atoi(string(rawjson.Field(thinking, "budget_tokens")))
	limit := tokens + slack
	switch rawjson.Unquote(rawjson.Field(thinking, "type")) {
	case "enabled":
		limit = tokens + budget
	case "", "disabled":
		limit = tokens
	}
	if most > 0 {
		if most <= budget {
			return nil, false
		}
		limit = min(limit, most)
	}
	return rawjson.Replaced(body, "max_tokens", strconv.AppendInt(nil, int64(limit), 10)), true
}
