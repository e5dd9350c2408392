package rebuild

import (
	"bytes"

	"github.com/furlhq/furl/internal/rawjson"
)

// Some fields of a request beside its messages and instructions hold keys: of
// the MCP servers that the provider is to call, or where a client puts one into
// its metadata. A frame or a list of tools with one is not stored.

// keyMarks are how values begin that are keys.
var keyMarks = [][]byte{[]byte(`"sk-`), []byte(`"Bearer `)}

// hasKey reports whether a frame, a list of tools or a patch of one holds a key.
func hasKey(part []byte) bool {
	for _, mark := range keyMarks {
		if bytes.Contains(part, mark) {
			return true
		}
	}
	if bytes.Contains(part, []byte("authorization_token")) { // in mcp_servers
		return true
	}
	if !bytes.Contains(part, []byte(`"mcp"`)) {
		return false
	}
	for _, tool := range rawjson.Elements(part) {
		if string(rawjson.Field(tool, "type")) == `"mcp"` && (rawjson.Field(tool, "authorization") != nil || rawjson.Field(tool, "headers") != nil) {
			return true
		}
	}
	return false
}
