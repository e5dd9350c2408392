package transcript

import (
	"encoding/json"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
)

// callNames gives the calls in Anthropic messages ids and names that Anthropic accepts. Other
// providers allow duplicate ids and any characters.
type callNames struct {
	*exporter
	ids              *renderer // nil if all messages were recorded in Anthropic's format: nothing is changed
	changed, renamed int
}

// exportedIDs returns a renderer for the ids of calls in an export.
func exportedIDs(wire furl.Format) *renderer {
	r := newRenderer(wire, "")
	r.exported = true
	return r
}

func (x *exporter) callNames(v *furl.View) *callNames {
	for i := range v.Messages {
		if v.Messages[i].Index >= 0 && v.Messages[i].Msg.Format != furl.FormatAnthropic {
			return &callNames{exporter: x, ids: exportedIDs(furl.FormatAnthropic)}
		}
	}
	return &callNames{exporter: x}
}

// message returns a message with such ids and names.
func (c *callNames) message(raw json.RawMessage) json.RawMessage {
	if c.ids == nil {
		return raw
	}
	m, err := anthropic.Codec.DecodeMessage(raw)
	if err != nil {
		return raw
	}
	var edits []rawjson.Edit
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.End == 0 {
			continue
		}
		block := []byte(raw[b.Start:b.End])
		field, id, name := "id", b.ID, b.Name
		switch b.Kind {
		case furl.KindCall:
			if id = c.ids.callID(b.ID); id != b.ID {
				c.changed++
			}
			if name = toolName(b.Name); name != b.Name {
				c.renamed++
				block = rawjson.WithField(block, "name", rawjson.AppendString(nil, name))
			}
		case furl.KindResult:
			field, id = "tool_use_id", c.ids.answers(b.ID)
		}
		if id == b.ID && name == b.Name {
			continue
		}
		edits = append(edits, rawjson.Edit{
			Span: rawjson.Span{Start: b.Start, End: b.End},
			New:  rawjson.WithField(block, field, rawjson.AppendString(nil, id)),
		})
	}
	return rawjson.Splice(raw, edits)
}

// notes reports the changes.
func (c *callNames) notes() {
	c.changedCalls("Anthropic requires", c.changed, c.renamed)
}

// changedCalls notes the calls with another id or name.
func (x *exporter) changedCalls(require string, ids, names int) {
	if ids > 0 {
		x.note("%s changed: %s distinct ids of letters, digits, _ and -", plural(ids, "call id"), require)
	}
	if names > 0 {
		x.note("the tool's name changed in %s: %s letters, digits, _ and -", plural(names, "call"), require)
	}
}
