package openai

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
)

// TextReply implements wire.API.
func (chat) TextReply(req *protocol.Request, id, text string, made time.Time) (contentType string, body []byte) {
	shape := func(object, choices, rest string) []byte {
		return fmt.Appendf(nil, `{"id":%s,"object":%q,"created":%d,"model":%s,"choices":%s%s}`, quote("chatcmpl-furl"+id), object, made.Unix(), quote(req.Model), choices, rest)
	}
	const usage = `,"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`
	if !req.Stream {
		return "application/json", shape("chat.completion", fmt.Sprintf(`[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]`, quote(text)), usage)
	}
	var out []byte
	add := func(choices, rest string) {
		out = fmt.Appendf(out, "data: %s\n\n", shape("chat.completion.chunk", choices, rest))
	}
	add(`[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`, "")
	add(fmt.Sprintf(`[{"index":0,"delta":{"content":%s},"finish_reason":null}]`, quote(text)), "")
	add(`[{"index":0,"delta":{},"finish_reason":"stop"}]`, "")
	if string(rawjson.Field(rawjson.Field(req.Fields(), "stream_options"), "include_usage")) == "true" {
		add("[]", usage)
	}
	return sse.ContentType, append(out, "data: [DONE]\n\n"...)
}

// ContinuedFrom implements wire.API: requests refer to no earlier reply.
func (chat) ContinuedFrom(*protocol.Request) (edited []byte, err *protocol.Refusal) { return nil, nil }

// The id of a TextReply says what a request that continues from it means, because
// the provider does not know the id. It starts with one of these, followed by
// the given id.
const (
	ownResponse = "resp_furl"
	// after is followed by "_" and the id of the response before the request.
	after = ownResponse + "p"
	// first says that the request had one message and continued from nothing.
	first = ownResponse + "n"
	// lost says that the request had other messages, which the provider never got.
	lost = ownResponse + "h"
)

// TextReply implements wire.API.
func (responses) TextReply(req *protocol.Request, id, text string, made time.Time) (contentType string, body []byte) {
	name, previous := "", previousResponse(req)
	switch {
	case len(req.Messages) > 1:
		name = lost + id
	case previous == "":
		name = first + id
	default:
		name = after + id + "_" + previous
	}
	part := func(text string) []byte {
		return fmt.Appendf(nil, `{"type":"output_text","text":%s,"annotations":[]}`, quote(text))
	}
	item := func(status string, parts []byte) []byte {
		return fmt.Appendf(nil, `{"id":%s,"type":"message","status":%q,"role":"assistant","content":[%s]}`, quote("msg_furl"+id), status, parts)
	}
	response := func(status string, output []byte, usage string) []byte {
		ref := "null"
		if previous != "" {
			ref = string(quote(previous))
		}
		return fmt.Appendf(nil, `{"id":%s,"object":"response","created_at":%d,"status":%q,"error":null,"incomplete_details":null,"model":%s,"output":[%s],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"previous_response_id":%s,"usage":%s}`,
			quote(name), made.Unix(), status, quote(req.Model), output, ref, usage)
	}
	const usage = `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`
	whole := item("completed", part(text))
	if !req.Stream {
		return "application/json", response("completed", whole, usage)
	}
	var out []byte
	n := 0
	add := func(event, format string, args ...any) {
		out = fmt.Appendf(out, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,", event, event, n)
		out = append(fmt.Appendf(out, format, args...), "}\n\n"...)
		n++
	}
	at := fmt.Sprintf(`"item_id":%s,"output_index":0,"content_index":0`, quote("msg_furl"+id))
	add("response.created", `"response":%s`, response("in_progress", nil, "null"))
	add("response.in_progress", `"response":%s`, response("in_progress", nil, "null"))
	add("response.output_item.added", `"output_index":0,"item":%s`, item("in_progress", nil))
	add("response.content_part.added", `%s,"part":%s`, at, part(""))
	add("response.output_text.delta", `%s,"delta":%s,"logprobs":[]`, at, quote(text))
	add("response.output_text.done", `%s,"text":%s,"logprobs":[]`, at, quote(text))
	add("response.content_part.done", `%s,"part":%s`, at, part(text))
	add("response.output_item.done", `"output_index":0,"item":%s`, whole)
	add("response.completed", `"response":%s`, response("completed", whole, usage))
	return sse.ContentType, out
}

// previousResponse returns the id of the response from which a request continues,
// "" if there is none.
func previousResponse(req *protocol.Request) string {
	return rawjson.Unquote(rawjson.Field(req.Fields(), "previous_response_id"))
}

// ContinuedFrom implements wire.API.
func (responses) ContinuedFrom(req *protocol.Request) (edited []byte, err *protocol.Refusal) {
	if !bytes.Contains(req.Fields(), []byte(ownResponse)) {
		return nil, nil // without reading the fields
	}
	id := previousResponse(req)
	switch {
	case strings.HasPrefix(id, after):
		_, id, _ := strings.Cut(id[len(after):], "_")
		return rawjson.WithField(req.Body, "previous_response_id", quote(id)), nil
	case strings.HasPrefix(id, first):
		return rawjson.Splice(req.Body, rawjson.DropField(req.Body, "previous_response_id")), nil
	case strings.HasPrefix(id, lost):
		return nil, &protocol.Refusal{
			Status: 400, Type: "invalid_request_error", Code: "previous_response_not_found", Param: "previous_response_id",
			Message: "furl: previous_response_id is furl's answer to a command, and the provider did not get the messages before it; send the whole history as input, or continue from an earlier response",
		}
	}
	return nil, nil
}
