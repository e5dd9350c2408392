package openai

import (
	"bytes"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// validDeferred checks that a request with deferred tools has the provider's search for
// tools. A namespace has the flag on its functions. The code of the error is not
// documented.
func validDeferred(req *protocol.Request) *protocol.Refusal {
	deferred, search := false, false
	for i := range req.Preamble {
		b := &req.Preamble[i]
		if b.Kind != furl.KindOpaque {
			continue
		}
		raw := []byte(b.Text)
		search = search || rawjson.Unquote(rawjson.Field(raw, "type")) == "tool_search"
		deferred = deferred || isDeferred(raw)
	}
	if deferred && !search {
		return refuse("invalid_value", "tools", "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.")
	}
	return nil
}

// isDeferred reports whether a tool, or a function of a namespace, has defer_loading set.
func isDeferred(tool []byte) bool {
	if !bytes.Contains(tool, []byte("defer_loading")) {
		return false
	}
	if string(rawjson.Field(tool, "defer_loading")) == "true" {
		return true
	}
	r := rawjson.NewReader(rawjson.Field(tool, "tools"))
	if r.Kind() != '[' {
		return false
	}
	for range r.Elements() {
		if string(rawjson.Field(r.Raw(), "defer_loading")) == "true" {
			return true
		}
	}
	return false
}
