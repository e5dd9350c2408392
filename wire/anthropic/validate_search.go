package anthropic

import (
	"bytes"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// The provider's search for tools. A definition with defer_loading is not part of the
// prompt until a tool_reference names it: in a tool_search_tool_result, or in the result
// of a search tool that the client runs. The API then adds the definition there.

// searchResult is the type of the block with the result of a search, toolReference that of
// the blocks in it, and in the result of a client's own search.
const (
	searchResult  = "tool_search_tool_result"
	toolReference = "tool_reference"
)

// isSearchTool reports whether a tool of this type is the provider's search.
func isSearchTool(typ string) bool { return strings.HasPrefix(typ, "tool_search_tool_") }

// deferred checks tools with defer_loading and the references to tools.
func (v *validator) deferred() *protocol.Refusal {
	if v.req.Body == nil {
		return nil
	}
	tools, deferred := 0, 0
	for i := range v.req.Preamble {
		b := &v.req.Preamble[i]
		if b.Kind != furl.KindOpaque {
			continue
		}
		tools++
		if !b.Deferred {
			continue
		}
		deferred++
		if b.CacheMark {
			return refuse("Tool '%s' cannot have both defer_loading=true and cache_control set. "+
				"Tools with defer_loading cannot use prompt caching.", b.ID)
		}
	}
	if deferred > 0 && deferred == tools {
		return refuse("At least one tool must have defer_loading=false. All tools cannot be deferred.")
	}
	return v.references(deferred > 0)
}

// references checks that each referenced tool is defined. References in results of the
// client's own search are looked for only if there are deferred tools.
func (v *validator) references(inResults bool) *protocol.Refusal {
	for i := range v.req.Messages {
		m := &v.req.Messages[i]
		for j := range m.Blocks {
			b := &m.Blocks[j]
			if b.Kind == furl.KindOpaque && b.Name == searchResult || b.Kind == furl.KindResult && inResults {
				for _, name := range References(m.Raw[b.Start:b.End]) {
					if !v.defines(name) {
						return refuse("Tool reference '%s' not found in available tools", name)
					}
				}
			}
		}
	}
	return nil
}

func (v *validator) defines(tool string) bool {
	for i := range v.req.Preamble {
		if b := &v.req.Preamble[i]; b.Kind == furl.KindOpaque && b.ID == tool {
			return true
		}
	}
	return false
}

// isDeferred reports whether a tool's definition has defer_loading set.
func isDeferred(tool []byte) bool {
	return bytes.Contains(tool, []byte("defer_loading")) && string(rawjson.Field(tool, "defer_loading")) == "true"
}

// References returns the names of the tools that the tool_reference blocks of a block
// name: of a tool_search_tool_result, or of a tool_result.
func References(block []byte) (names []string) {
	if !bytes.Contains(block, []byte("tool_reference")) {
		return nil
	}
	list := rawjson.Field(block, "content")
	if len(list) > 0 && list[0] == '{' {
		list = rawjson.Field(list, "tool_references")
	}
	r := rawjson.NewReader(list)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Elements() {
		raw := r.Raw()
		if field(raw, "type") == toolReference {
			names = append(names, field(raw, "tool_name"))
		}
	}
	return names
}
