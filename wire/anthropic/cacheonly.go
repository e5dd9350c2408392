package anthropic

import (
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// CacheOnly implements wire.API. With max_tokens 0 the provider reads the prompt,
// renews or writes the cache entries at its breakpoints, and replies with no
// content (Anthropic, prompt caching, "Pre-warming the cache", 2026-10). It
// refuses that with streaming, a thinking budget, an output format or a forced
// call. Streaming is not part of the cache's key and is removed. The others are,
// or may be, so such a request has no equivalent. Neither has one that may make
// the provider write a summary, or creates or continues a thread.
func (codec) CacheOnly(body []byte) ([]byte, bool) {
	var ok, limited bool
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return nil, false
	}
	ok = true
	for key := range r.Fields() {
		switch name := string(key); name {
		case "max_tokens":
			limited = true
			r.Skip()
		case "thinking":
			ok = ok && field(r.Raw(), "type") != "enabled"
		case "tool_choice":
			kind := field(r.Raw(), "type")
			ok = ok && kind != "any" && kind != "tool"
		case "output_config":
			ok = ok && isNull(rawjson.Field(r.Raw(), "format"))
		case "output_format", "compaction", "thread":
			ok = ok && isNull(r.Raw())
		case "context_management":
			ok = ok && !compacts(r.Raw())
		default:
			r.Skip()
		}
	}
	if !ok || !limited || r.End() != nil {
		return nil, false
	}
	body = rawjson.Splice(body, rawjson.SetField(body, "max_tokens", []byte("0")))
	return rawjson.Splice(body, rawjson.DropField(body, "stream")), true
}

func isNull(raw []byte) bool { return raw == nil || string(raw) == "null" }

// compacts reports whether edits of the provider include a compaction.
func compacts(management []byte) bool {
	for _, edit := range rawjson.Elements(rawjson.Field(management, "edits")) {
		if strings.HasPrefix(field(edit, "type"), "compact") {
			return true
		}
	}
	return false
}
