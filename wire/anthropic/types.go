package anthropic

import (
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Types are the types of content blocks that the provider documents, those in the
// content of results included, as in @anthropic-ai/sdk 1.14.
var Types = map[string]protocol.Handling{
	"text":              protocol.Decoded,
	"image":             protocol.Decoded,
	"document":          protocol.Decoded,
	"thinking":          protocol.Decoded,
	"redacted_thinking": protocol.Decoded,
	"tool_use":          protocol.Decoded,
	"tool_result":       protocol.Decoded,

	"search_result":    protocol.Passed,
	"container_upload": protocol.Passed,
	"fallback":         protocol.Passed,
	"compaction":       protocol.Passed, // with tool_changes, see handling
	"browser_state":    protocol.Passed, // in results

	"server_tool_use":                        protocol.Paired,
	"web_search_tool_result":                 protocol.Paired,
	"web_fetch_tool_result":                  protocol.Paired,
	"advisor_tool_result":                    protocol.Paired,
	"code_execution_tool_result":             protocol.Paired,
	"bash_code_execution_tool_result":        protocol.Paired,
	"text_editor_code_execution_tool_result": protocol.Paired,
	"mcp_tool_use":                           protocol.Paired,
	"mcp_tool_result":                        protocol.Paired,
	searchResult:                             protocol.Paired, // with references, see handling

	"tool_addition":    protocol.Definition,
	"tool_removal":     protocol.Definition,
	"mcp_tool_listing": protocol.Definition,
	toolReference:      protocol.Definition, // in results
}

// handling returns the handling of a block of a type.
func handling(typ string, block []byte) protocol.Handling {
	switch typ {
	case searchResult:
		if len(References(block)) > 0 {
			return protocol.Definition
		}
	case "compaction": // it lists the tools that the messages before it defined
		if changes := rawjson.Field(block, "tool_changes"); len(changes) > 0 && rawjson.NewReader(changes).Kind() == '[' && len(rawjson.Compact(nil, changes)) > len("[]") {
			return protocol.Definition
		}
	}
	return Types[typ]
}

// Judge implements wire.API.
func (codec) Judge(m *furl.Message) {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind == furl.KindOpaque {
			b.Fixed = handling(b.Name, bytesOf(m, b)).Fixed()
		}
		b.Fixed = b.Fixed || !m.Role.Known()
	}
}

func bytesOf(m *furl.Message, b *furl.Block) []byte {
	if b.End > b.Start && b.End <= len(m.Raw) {
		return m.Raw[b.Start:b.End]
	}
	return nil
}

// UnknownTypes implements wire.API.
func (codec) UnknownTypes(m *furl.Message) (types []string) {
	if len(m.Blocks) > 0 && !m.Role.Known() {
		types = append(types, "role:"+string(m.Role))
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		switch {
		case !b.Fixed:
		case b.Kind == furl.KindOpaque:
			if _, ok := Types[b.Name]; !ok {
				types = append(types, b.Name)
			}
		default:
			types = append(types, unknownParts(bytesOf(m, b), 0)...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// unknownParts returns the unknown types in the content of a result or a document.
func unknownParts(block []byte, depth int) (types []string) {
	if depth > maxParts {
		return []string{"nested"}
	}
	list := rawjson.Field(block, "content")
	if len(list) == 0 {
		list = rawjson.Field(rawjson.Field(block, "source"), "content")
	}
	r := rawjson.NewReader(list)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Elements() {
		raw := r.Raw()
		typ := field(raw, "type")
		if _, ok := Types[typ]; !ok {
			types = append(types, typ)
			continue
		}
		types = append(types, unknownParts(raw, depth+1)...)
	}
	return types
}
