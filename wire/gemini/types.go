package gemini

import (
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Types are the fields of a part that have its content, as in Part of @google/genai 3.3.
// A part has one of them.
var Types = map[string]protocol.Handling{
	"text":             protocol.Decoded,
	"functionCall":     protocol.Decoded,
	"functionResponse": protocol.Decoded,
	"inlineData":       protocol.Decoded,
	"fileData":         protocol.Decoded,

	"executableCode":      protocol.Passed, // with its result, in one content
	"codeExecutionResult": protocol.Passed,
	"toolCall":            protocol.Passed, // run by Google, like code
	"toolResponse":        protocol.Passed,
	"audioTranscription":  protocol.Passed,
}

// Judge implements wire.API.
func (codec) Judge(m *furl.Message) {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind == furl.KindOpaque {
			b.Fixed = Types[b.Name].Fixed()
		}
		b.Fixed = b.Fixed || !m.Role.Known()
	}
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
		case b.Kind == furl.KindResult:
			types = append(types, unknownParts(bytesOf(m, b))...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// unknownParts returns the unknown types in the parts of a result.
func unknownParts(raw []byte) (types []string) {
	for _, elem := range rawjson.Elements(value(value(raw, "functionResponse"), "parts")) {
		p := readPart(rawjson.NewReader(elem), nil)
		if p.data == "" && p.unknown != "" {
			types = append(types, p.unknown)
		}
	}
	return types
}

func bytesOf(m *furl.Message, b *furl.Block) []byte {
	if b.End > b.Start && b.End <= len(m.Raw) {
		return m.Raw[b.Start:b.End]
	}
	return nil
}
