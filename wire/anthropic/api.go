package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Provider implements wire.API.
func (codec) Provider() string { return "anthropic" }

// DecodeUsage implements wire.API.
func (codec) DecodeUsage(usage []byte) (furl.Usage, furl.Passes, furl.Terms, error) {
	return DecodeUsage(usage)
}

// path is the end of the path of requests.
const path = "/messages"

// Endpoint implements wire.API.
func (codec) Endpoint(of, _ string) (e protocol.Endpoint, ok bool) {
	if e.Prefix, ok = protocol.CutEnd(of, path); ok {
		return e, true
	}
	e.Prefix, e.Count = protocol.CutEnd(of, path+"/count_tokens")
	return e, e.Count
}

// RequestPath implements wire.API.
func (codec) RequestPath(string, bool) string { return "/v1" + path }

// WithModel implements wire.API: the model is in the body.
func (codec) WithModel(path, _ string) string { return path }

// List implements wire.API.
func (codec) List() string { return "messages" }

// EncodeView implements wire.API.
func (codec) EncodeView(v *furl.View) ([]json.RawMessage, error) { return EncodeMessages(v) }

// Stateful implements wire.API: a request of Messages contains its whole
// history, unless it continues a thread.
func (c codec) Stateful(req *protocol.Request) bool {
	t := c.Thread(req)
	return t != nil && t.Previous != ""
}

// Reference implements wire.API: every message has its content.
func (codec) Reference(*furl.Message) string { return "" }

// ItemID implements wire.API.
func (codec) ItemID(*furl.Message) string { return "" }

// Thread implements wire.API.
func (codec) Thread(req *protocol.Request) *protocol.Thread {
	thread := rawjson.Field(req.Fields(), "thread")
	if len(thread) == 0 || thread[0] != '{' {
		return nil
	}
	if rawjson.Unquote(rawjson.Field(thread, "type")) != "continue" {
		return &protocol.Thread{Refusal: ThreadUnsupported("furl: message threads are refused, because the provider would keep the conversation; send the full conversation without `thread`, or set gateway.threads: pass")}
	}
	return &protocol.Thread{
		Previous: rawjson.Unquote(rawjson.Field(thread, "previous_message_id")),
		Refusal:  ThreadNotFound("furl: message threads are refused (gateway.threads); send the full conversation"),
	}
}

// Tool implements wire.API.
func (codec) Tool(name, description, schema string) []byte {
	return fmt.Appendf(nil, `{"name":%s,"description":%s,"input_schema":%s}`, quoteAny(name), quoteAny(description), schema)
}

// LastTool implements wire.API.
func (codec) LastTool(tools []byte) (end int, ok bool) { return rawjson.LastElement(tools) }

// TakesTools implements wire.API: a request of Messages has one reply, and
// the provider does not store it unless it belongs to a thread.
func (c codec) TakesTools(req *protocol.Request) bool { return c.Thread(req) == nil }

// ToolResults implements wire.API: one message contains all results of a
// step.
func (c codec) ToolResults(results []furl.Block) ([]*furl.Message, error) {
	m, err := c.NewMessage(furl.RoleTool, results)
	if err != nil {
		return nil, err
	}
	return []*furl.Message{m}, nil
}
