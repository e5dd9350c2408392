package openai

import (
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// ItemTypes are the types of items of Responses that the provider documents, as in npm's
// openai 7.59, and what some servers and clients add.
var ItemTypes = map[string]protocol.Handling{
	"message":                 protocol.Decoded,
	"reasoning":               protocol.Decoded,
	"function_call":           protocol.Decoded,
	"function_call_output":    protocol.Decoded,
	"custom_tool_call":        protocol.Decoded,
	"custom_tool_call_output": protocol.Decoded,
	"local_shell_call":        protocol.Decoded,
	"local_shell_call_output": protocol.Decoded,
	"shell_call":              protocol.Decoded,
	"shell_call_output":       protocol.Decoded,
	"apply_patch_call":        protocol.Decoded,
	"apply_patch_call_output": protocol.Decoded,

	"web_search_call":       protocol.Passed,
	"file_search_call":      protocol.Passed,
	"code_interpreter_call": protocol.Passed,
	"image_generation_call": protocol.Passed,
	"mcp_call":              protocol.Passed,
	"item_reference":        protocol.Passed,
	"compaction":            protocol.Passed,
	"compaction_summary":    protocol.Passed, // Codex
	"context_compaction":    protocol.Passed, // Codex
	"compaction_trigger":    protocol.Passed,

	"computer_call":         protocol.Paired,
	"computer_call_output":  protocol.Paired,
	"tool_search_call":      protocol.Paired,
	"mcp_approval_request":  protocol.Paired,
	"mcp_approval_response": protocol.Paired,
	"program":               protocol.Paired,
	"program_output":        protocol.Paired,

	"additional_tools":     protocol.Definition,
	"tool_search_output":   protocol.Definition,
	"mcp_list_tools":       protocol.Definition,
	"configuration_update": protocol.Definition,

	"agent_message":           protocol.Pinned,
	"multi_agent_call":        protocol.Pinned,
	"multi_agent_call_output": protocol.Pinned,
}

// PartTypes are the types of content parts of both formats: of messages, outputs and
// summaries. A part without a type is a text.
var PartTypes = map[string]protocol.Handling{
	"":               protocol.Decoded,
	"text":           protocol.Decoded,
	"input_text":     protocol.Decoded,
	"output_text":    protocol.Decoded,
	"summary_text":   protocol.Decoded,
	"reasoning_text": protocol.Decoded,
	"refusal":        protocol.Decoded,
	"image_url":      protocol.Decoded,
	"input_image":    protocol.Decoded,
	"file":           protocol.Decoded,
	"input_file":     protocol.Decoded,
	"input_audio":    protocol.Decoded,

	"output_audio":        protocol.Passed,
	"computer_screenshot": protocol.Passed,
	// The provider does not document these. Compatible servers have them.
	"thinking":          protocol.Passed, // Mistral
	"reference":         protocol.Passed, // Mistral
	"document_url":      protocol.Passed, // Mistral
	"redacted_thinking": protocol.Passed, // LiteLLM
	"video":             protocol.Passed, // Qwen
	"video_url":         protocol.Passed, // Qwen, vLLM
	"audio_url":         protocol.Passed, // vLLM
}

// callTypes are the types in tool_calls of Chat Completions.
var callTypes = map[string]bool{"": true, "function": true, "custom": true}

// Judge implements wire.API.
func (chat) Judge(m *furl.Message) { judge(m, PartTypes) }

// Judge implements wire.API.
func (responses) Judge(m *furl.Message) { judge(m, ItemTypes) }

// judge sets Fixed of opaque blocks by their names, which a record has.
func judge(m *furl.Message, types map[string]protocol.Handling) {
	whole := len(m.Blocks) == 1 && m.Blocks[0].End == len(m.Raw) && m.Blocks[0].Start == 0
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind != furl.KindOpaque || b.Name == "audio" {
			b.Fixed = b.Fixed || !m.Role.Known()
			continue
		}
		if !whole { // a part of a message
			b.Fixed = PartTypes[b.Name].Fixed() || !m.Role.Known()
			continue
		}
		b.Fixed = types[b.Name].Fixed()
	}
}

// UnknownTypes implements wire.API.
func (chat) UnknownTypes(m *furl.Message) (types []string) {
	if !slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Fixed }) {
		return nil
	}
	var s chatScan
	s.read(m.Raw, rawjson.NewReader(m.Raw))
	if !m.Role.Known() {
		types = append(types, "role:"+s.role)
	}
	types = unknownParts(types, s.parts)
	for i := range s.calls {
		if !callTypes[s.calls[i].typ] {
			types = append(types, s.calls[i].typ)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// UnknownTypes implements wire.API.
func (responses) UnknownTypes(m *furl.Message) (types []string) {
	if !slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Fixed }) {
		return nil
	}
	var s itemScan
	s.read(m.Raw, rawjson.NewReader(m.Raw))
	switch _, known := ItemTypes[s.typ]; {
	case !known:
		types = append(types, s.typ)
	case s.typ == "message" && !m.Role.Known():
		types = append(types, "role:"+s.role)
	}
	if ItemTypes[s.typ] == protocol.Decoded {
		types = unknownParts(unknownParts(types, s.parts), s.outputs)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func unknownParts(types []string, parts []part) []string {
	for i := range parts {
		if !parts[i].known() {
			types = append(types, parts[i].typ)
		}
	}
	return types
}

// known reports whether furl knows the type of a part.
func (p *part) known() bool {
	_, ok := PartTypes[p.typ]
	return ok
}

// anyUnknown reports whether one of the parts has an unknown type.
func anyUnknown(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return !p.known() })
}
