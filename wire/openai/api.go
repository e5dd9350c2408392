package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Provider implements wire.API.
func (chat) Provider() string { return "openai" }

// Provider implements wire.API.
func (responses) Provider() string { return "openai" }

// DecodeUsage implements wire.API.
func (chat) DecodeUsage(usage []byte) (furl.Usage, furl.Passes, furl.Terms, error) {
	return usageObject(usage)
}

// DecodeUsage implements wire.API.
func (responses) DecodeUsage(usage []byte) (furl.Usage, furl.Passes, furl.Terms, error) {
	return usageObject(usage)
}

// usageObject decodes a usage object; requests of these APIs have one pass. The terms are
// outside it, in the response.
func usageObject(usage []byte) (furl.Usage, furl.Passes, furl.Terms, error) {
	u, err := DecodeUsage(usage)
	return u, nil, furl.Terms{}, err
}

// The ends of paths.
const (
	chatPath      = "/chat/completions"
	responsesPath = "/responses"
)

// Endpoint implements wire.API. The provider has no path that counts tokens.
func (chat) Endpoint(path, _ string) (e protocol.Endpoint, ok bool) {
	e.Prefix, ok = protocol.CutEnd(path, chatPath)
	e.Model = deployment(path)
	return e, ok
}

// deployment returns the model in a path of Azure: /deployments/MODEL/….
func deployment(path string) string {
	_, rest, ok := strings.Cut(path, "/deployments/")
	if !ok {
		return ""
	}
	model, _, _ := strings.Cut(rest, "/")
	return model
}

// Endpoint implements wire.API. The path that counts tokens is not supported.
func (responses) Endpoint(path, _ string) (e protocol.Endpoint, ok bool) {
	e.Model = deployment(path)
	if e.Prefix, ok = protocol.CutEnd(path, responsesPath); ok {
		return e, true
	}
	e.Prefix, e.Compact = protocol.CutEnd(path, responsesPath+"/compact")
	return e, e.Compact
}

// RequestPath implements wire.API.
func (chat) RequestPath(string, bool) string { return "/v1" + chatPath }

// RequestPath implements wire.API.
func (responses) RequestPath(string, bool) string { return "/v1" + responsesPath }

// WithModel implements wire.API: the model is in the body.
func (chat) WithModel(path, _ string) string { return path }

// WithModel implements wire.API: the model is in the body.
func (responses) WithModel(path, _ string) string { return path }

// LastTool implements wire.API.
func (chat) LastTool(tools []byte) (end int, ok bool) { return rawjson.LastElement(tools) }

// LastTool implements wire.API.
func (responses) LastTool(tools []byte) (end int, ok bool) { return rawjson.LastElement(tools) }

// List implements wire.API.
func (chat) List() string { return "messages" }

// List implements wire.API.
func (responses) List() string { return "input" }

// EncodeView implements wire.API.
func (chat) EncodeView(v *furl.View) ([]json.RawMessage, error) { return EncodeChat(v) }

// EncodeView implements wire.API.
func (responses) EncodeView(v *furl.View) ([]json.RawMessage, error) { return EncodeResponses(v) }

// CacheRequest implements wire.API.
func (chat) CacheRequest(req *protocol.Request) protocol.CacheRequest { return cacheRequest(req) }

// CacheRequest implements wire.API.
func (responses) CacheRequest(req *protocol.Request) protocol.CacheRequest { return cacheRequest(req) }

// inMemory is how long entries live with the retention in_memory: they remain for five
// to ten minutes without use.
const inMemory = 10 * time.Minute

// cacheRequest reads prompt_cache_retention, and prompt_cache_options of newer models.
// Both extend the lifetime of entries that the provider writes by itself.
func cacheRequest(req *protocol.Request) protocol.CacheRequest {
	out := protocol.CacheRequest{HourTail: -1}
	switch retention := rawjson.Unquote(rawjson.Field(req.Fields(), "prompt_cache_retention")); retention {
	case "":
	case "in_memory", "in-memory":
		out.Lifetime = inMemory
	default:
		out.Lifetime = duration(retention)
	}
	if options := rawjson.Field(req.Fields(), "prompt_cache_options"); len(options) > 0 && options[0] == '{' {
		if ttl := duration(rawjson.Unquote(rawjson.Field(options, "ttl"))); ttl > 0 {
			out.Lifetime = ttl
		}
	}
	return out
}

// duration parses a lifetime such as 24h, 0 if it is not valid.
func duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0
	}
	return d
}

// Reference implements wire.API: every message has its content.
func (chat) Reference(*furl.Message) string { return "" }

// ItemID implements wire.API.
func (chat) ItemID(*furl.Message) string { return "" }

// Reference implements wire.API.
func (responses) Reference(m *furl.Message) string {
	if len(m.Blocks) == 1 && m.Blocks[0].Kind == furl.KindOpaque && m.Blocks[0].Name == itemReference {
		return m.Blocks[0].ID
	}
	return ""
}

// ItemID implements wire.API.
func (responses) ItemID(m *furl.Message) string {
	if m.Role != furl.RoleAssistant || len(m.Raw) == 0 || m.Raw[0] != '{' ||
		len(m.Blocks) == 1 && m.Blocks[0].Kind == furl.KindOpaque && m.Blocks[0].Name == itemReference {
		return ""
	}
	return rawjson.Unquote(rawjson.Field(m.Raw, "id"))
}

// itemReference is the type of an item that refers to another one by its id.
const itemReference = "item_reference"

// Thread implements wire.API.
func (chat) Thread(*protocol.Request) *protocol.Thread { return nil }

// Thread implements wire.API. A request that continues a stored response is Stateful.
func (responses) Thread(*protocol.Request) *protocol.Thread { return nil }

// Stateful implements wire.API: a request of Chat Completions contains its
// whole history.
func (chat) Stateful(*protocol.Request) bool { return false }

// Stateful implements wire.API.
func (responses) Stateful(req *protocol.Request) bool { return isStateful(req) }

// Tool implements wire.API.
func (chat) Tool(name, description, schema string) []byte {
	return fmt.Appendf(nil, `{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}}`, quote(name), quote(description), schema)
}

// Tool implements wire.API.
func (responses) Tool(name, description, schema string) []byte {
	return fmt.Appendf(nil, `{"type":"function","name":%s,"description":%s,"parameters":%s,"strict":false}`, quote(name), quote(description), schema)
}

// TakesTools implements wire.API: a request may ask for several choices.
func (chat) TakesTools(req *protocol.Request) bool {
	several, _ := replyAs(req)
	return !several
}

// TakesTools implements wire.API. The provider stores a response unless the
// request says otherwise, and a client could then continue from its id. That
// response would be only a part of what the client received.
func (responses) TakesTools(req *protocol.Request) bool {
	several, unkept := replyAs(req)
	return !several && unkept && !isStateful(req)
}

// replyAs reads how a request wants its reply. several means several choices
// or a background response, neither of which is one streamed reply; unkept
// means that the provider does not store it.
func replyAs(req *protocol.Request) (several, unkept bool) {
	n := len(req.Messages)
	if n == 0 || len(req.Offsets) != n {
		return false, false
	}
	list := rawjson.Span{Start: req.Offsets[0], End: req.Offsets[n-1] + len(req.Messages[n-1].Raw)}
	choices, background := false, false
	rawjson.FieldsAround(req.Body, list, func(name string, value rawjson.Span) {
		r := rawjson.NewReader(value.Of(req.Body))
		switch name {
		case "n":
			n, _ := r.Int()
			choices = n > 1
		case "background":
			background, _ = r.Bool()
		case "store":
			store, ok := r.Bool()
			unkept = ok && !store
		}
	})
	return choices || background, unkept
}

// ToolResults implements wire.API.
func (c chat) ToolResults(results []furl.Block) ([]*furl.Message, error) {
	return eachAlone(c, results)
}

// ToolResults implements wire.API.
func (c responses) ToolResults(results []furl.Block) ([]*furl.Message, error) {
	return eachAlone(c, results)
}

// eachAlone builds a separate message for each result.
func eachAlone(c protocol.Codec, results []furl.Block) ([]*furl.Message, error) {
	var list []*furl.Message
	for i := range results {
		m, err := c.NewMessage(furl.RoleTool, results[i:i+1])
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}
