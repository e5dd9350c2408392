package gemini

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Provider implements wire.API.
func (codec) Provider() string { return "gcp.gemini" }

// DecodeUsage implements wire.API.
func (codec) DecodeUsage(usage []byte) (furl.Usage, furl.Passes, furl.Terms, error) {
	u, err := DecodeUsage(usage)
	return u, nil, furl.Terms{}, err
}

// AsksCompaction implements wire.API.
func (codec) AsksCompaction(*protocol.Request) bool { return false }

// List implements wire.API.
func (codec) List() string { return "contents" }

// CacheRequest implements wire.API: nothing in a request changes what the provider caches.
func (codec) CacheRequest(*protocol.Request) protocol.CacheRequest { return protocol.CacheRequest{} }

// Stateful implements wire.API. A cached content has instructions and contents before those
// of the request, which do not change: the request has all that is new.
func (codec) Stateful(*protocol.Request) bool { return false }

// Reference implements wire.API: every message has its content.
func (codec) Reference(*furl.Message) string { return "" }

// ItemID implements wire.API.
func (codec) ItemID(*furl.Message) string { return "" }

// Thread implements wire.API.
func (codec) Thread(*protocol.Request) *protocol.Thread { return nil }

// Tool implements wire.API.
func (codec) Tool(name, description, schema string) []byte {
	return fmt.Appendf(nil, `{"name":%s,"description":%s,"parametersJsonSchema":%s}`, quoteAny(name), quoteAny(description), schema)
}

// LastTool implements wire.API: functions are in the functionDeclarations of an element of
// tools.
func (codec) LastTool(tools []byte) (end int, ok bool) {
	r := rawjson.NewReader(tools)
	if r.Kind() != '[' {
		return 0, false
	}
	for range r.Elements() {
		if r.Kind() != '{' {
			continue
		}
		for key := range fields(r, nil) {
			if key != "functionDeclarations" || r.Kind() != '[' {
				continue
			}
			for range r.Elements() {
				end, ok = r.Skip().End, true
			}
		}
	}
	return end, ok
}

// TakesTools implements wire.API: the request asks for one candidate, and not for output
// that follows a schema. Instructions and tools of a cached content cannot be changed.
func (codec) TakesTools(req *protocol.Request) bool {
	body := req.Fields()
	config := value(body, "generationConfig")
	n, err := strconv.Atoi(string(value(config, "candidateCount")))
	return isNull(value(body, "cachedContent")) && (err != nil || n <= 1) && AllowsPlainText(body)
}

// AllowsPlainText implements wire.API.
func (codec) AllowsPlainText(body []byte) bool { return AllowsPlainText(body) }

// AllowsPlainText reports whether the model may reply to a request with plain text: the
// request forces no call, and no output of another kind.
func AllowsPlainText(body []byte) bool {
	config := value(body, "generationConfig")
	if mime := text(config, "responseMimeType"); mime != "" && mime != "text/plain" {
		return false
	}
	if !isNull(value(config, "responseSchema")) || !isNull(value(config, "responseJsonSchema")) || !isNull(rawjson.Field(config, "_responseJsonSchema")) {
		return false
	}
	for _, m := range rawjson.Elements(value(config, "responseModalities")) {
		if !strings.EqualFold(rawjson.Unquote(m), "TEXT") {
			return false
		}
	}
	return callingMode(body) != "ANY"
}

// callingMode returns the mode of function calling: AUTO, NONE, ANY or VALIDATED.
func callingMode(body []byte) string {
	config := value(body, "toolConfig")
	for _, name := range []string{"functionCallingConfig", "function_calling_config"} {
		if mode := rawjson.Field(rawjson.Field(config, name), "mode"); mode != nil {
			return strings.ToUpper(rawjson.Unquote(mode))
		}
	}
	return ""
}

// ToolResults implements wire.API: one content has all results of a
// step.
func (c codec) ToolResults(results []furl.Block) ([]*furl.Message, error) {
	m, err := c.NewMessage(furl.RoleTool, results)
	if err != nil {
		return nil, err
	}
	return []*furl.Message{m}, nil
}

// CacheOnly implements wire.API: the provider has no such request.
func (codec) CacheOnly([]byte) ([]byte, bool) { return nil, false }

// HourPreamble implements wire.API: the lifetime of implicit cache entries is the provider's.
func (codec) HourPreamble([]byte) ([]byte, bool) { return nil, false }

// BillingLine implements wire.API: only Claude Code sends such a line, to Messages.
func (codec) BillingLine([]byte) string { return "" }

// WithBillingLine implements wire.API.
func (codec) WithBillingLine([]byte, string) ([]byte, bool) { return nil, false }

// ContinuedFrom implements wire.API: requests refer to no earlier reply.
func (codec) ContinuedFrom(*protocol.Request) (edited []byte, err *protocol.Refusal) { return nil, nil }

// ModelQueries returns the query for a model of the Gemini API
// (ai.google.dev/api/models). Vertex AI reports no limits.
func (codec) ModelQueries(_, model string) []protocol.ModelQuery {
	return []protocol.ModelQuery{{
		Path: "/v1beta/models", Name: modelName(model), Root: true,
		Read: func(body []byte) protocol.ModelAnswer {
			tokens := func(name string) int {
				n, _ := strconv.Atoi(string(rawjson.Field(body, name)))
				return n
			}
			return protocol.ModelAnswer{Window: tokens("inputTokenLimit"), MaxOutput: tokens("outputTokenLimit")}
		},
	}}
}
