package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
)

// answer gives the upstream's answer to a request of a step: a body, or the
// events of a stream. Input is the prompt's size as it is to be reported.
func answer(format furl.Format, stream bool, step int, id string, input int) (first, rest []byte) {
	var out [][]byte
	switch format {
	case furl.FormatChat:
		out = chatAnswer(stream, step, id, input)
	case furl.FormatResponses:
		out = responsesAnswer(stream, step, id, input)
	default:
		out = messagesAnswer(stream, step, id, input)
	}
	return out[0], bytes.Join(out[1:], nil)
}

func event(name, format string, args ...any) []byte {
	data := fmt.Appendf(nil, format, args...)
	if name == "" {
		return fmt.Appendf(nil, "data: %s\n\n", data)
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}

func messagesAnswer(stream bool, step int, id string, input int) [][]byte {
	m := replyOf(step)
	usage := fmt.Sprintf(`"usage":{"input_tokens":%d,"output_tokens":200}`, input)
	if !stream {
		var message struct{ Content json.RawMessage }
		_ = json.Unmarshal(assistant(furl.FormatAnthropic, step)[0], &message) // our own
		return [][]byte{fmt.Appendf(nil, `{"id":%q,"type":"message","role":"assistant","model":"m","content":%s,"stop_reason":"tool_use",%s}`, id, message.Content, usage)}
	}
	out := [][]byte{event("message_start", `{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":"m","content":[],%s}}`, id, usage)}
	block := func(i int, start string, deltas ...string) { out = append(out, blockEvents(i, start, deltas...)...) }
	block(0, `{"type":"thinking","thinking":"","signature":""}`,
		fmt.Sprintf(`{"type":"thinking_delta","thinking":%s}`, quote(m.thinking)), fmt.Sprintf(`{"type":"signature_delta","signature":%q}`, m.signature))
	half := len(m.text) / 2
	block(1, `{"type":"text","text":""}`,
		fmt.Sprintf(`{"type":"text_delta","text":%s}`, quote(m.text[:half])), fmt.Sprintf(`{"type":"text_delta","text":%s}`, quote(m.text[half:])))
	block(2, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, callID(step), m.name),
		fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, quote(string(m.args))))
	return append(out,
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":200}}`),
		event("message_stop", `{"type":"message_stop"}`))
}

// blockEvents are the events of a block of Messages.
func blockEvents(i int, start string, deltas ...string) [][]byte {
	out := [][]byte{event("content_block_start", `{"type":"content_block_start","index":%d,"content_block":%s}`, i, start)}
	for _, d := range deltas {
		out = append(out, event("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":%s}`, i, d))
	}
	return append(out, event("content_block_stop", `{"type":"content_block_stop","index":%d}`, i))
}

func chatAnswer(stream bool, step int, id string, input int) [][]byte {
	m := replyOf(step)
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":200,"total_tokens":%d}`, input, input+200)
	if !stream {
		return [][]byte{fmt.Appendf(nil, `{"id":%q,"object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":%s,"finish_reason":"tool_calls"}],%s}`,
			id, assistant(furl.FormatChat, step)[0], usage)}
	}
	chunk := func(delta, finish string) []byte {
		return event("", `{"id":%q,"object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, id, delta, finish)
	}
	return [][]byte{
		chunk(fmt.Sprintf(`{"role":"assistant","content":%s}`, quote(m.text)), "null"),
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, callID(step), m.name), "null"),
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}`, quote(string(m.args))), "null"),
		chunk(`{}`, `"tool_calls"`),
		event("", `{"id":%q,"object":"chat.completion.chunk","created":1,"model":"m","choices":[],%s}`, id, usage),
		[]byte("data: [DONE]\n\n"),
	}
}

func responsesAnswer(stream bool, step int, id string, input int) [][]byte {
	items := assistant(furl.FormatResponses, step)
	whole := func(status string, items []byte) string {
		return fmt.Sprintf(`{"id":%q,"object":"response","created_at":1,"status":%q,"model":"m","output":[%s],"usage":{"input_tokens":%d,"output_tokens":200,"total_tokens":%d}}`,
			id, status, items, input, input+200)
	}
	all := bytes.Join(items, []byte{','})
	if !stream {
		return [][]byte{[]byte(whole("completed", all))}
	}
	out := [][]byte{event("response.created", `{"type":"response.created","sequence_number":0,"response":%s}`, whole("in_progress", nil))}
	n := 0
	for i, item := range items {
		out = append(out,
			event("response.output_item.added", `{"type":"response.output_item.added","sequence_number":%d,"output_index":%d,"item":%s}`, n+1, i, item),
			event("response.output_item.done", `{"type":"response.output_item.done","sequence_number":%d,"output_index":%d,"item":%s}`, n+2, i, item))
		n += 2
	}
	return append(out, event("response.completed", `{"type":"response.completed","sequence_number":%d,"response":%s}`, n+1, whole("completed", all)))
}
