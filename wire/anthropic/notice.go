package anthropic

import (
	"fmt"
	"time"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
)

// TextReply implements wire.API.
func (codec) TextReply(req *protocol.Request, id, text string, _ time.Time) (contentType string, body []byte) {
	message := func(content, stop string) []byte {
		b := rawjson.AppendString([]byte(`{"id":`), "msg_furl"+id)
		b = rawjson.AppendString(append(b, `,"type":"message","role":"assistant","model":`...), req.Model)
		return fmt.Appendf(b, `,"content":%s,"stop_reason":%s,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}`, content, stop)
	}
	if !req.Stream {
		return "application/json", message(string(bracketed(textBlock(text))), `"end_turn"`)
	}
	var out []byte
	add := func(event string, data []byte) { out = fmt.Appendf(out, "event: %s\ndata: %s\n\n", event, data) }
	add("message_start", fmt.Appendf(nil, `{"type":"message_start","message":%s}`, message("[]", "null")))
	add("content_block_start", []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
	add("content_block_delta", append(rawjson.AppendString([]byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`), text), "}}"...))
	add("content_block_stop", []byte(`{"type":"content_block_stop","index":0}`))
	add("message_delta", []byte(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":0}}`))
	add("message_stop", []byte(`{"type":"message_stop"}`))
	return sse.ContentType, out
}

// ContinuedFrom implements wire.API: requests refer to no earlier reply.
func (codec) ContinuedFrom(*protocol.Request) (edited []byte, err *protocol.Refusal) { return nil, nil }
