package transcript

import (
	"encoding/json"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
)

// distinctIDs gives the calls in a list of Anthropic messages ids that
// Anthropic accepts. Other providers allow duplicate ids and any characters.
// A list that was recorded in Anthropic's format, or that has no such ids, is
// unchanged.
func (x *exporter) distinctIDs(v *furl.View, list []json.RawMessage) []json.RawMessage {
	own := true
	for i := range v.Messages {
		own = own && (v.Messages[i].Index < 0 || v.Messages[i].Msg.Format == furl.FormatAnthropic)
	}
	if own {
		return list
	}
	ids := newRenderer(furl.FormatAnthropic, "")
	changed := 0
	for i, raw := range list {
		m, err := anthropic.Codec.DecodeMessage(raw)
		if err != nil {
			continue
		}
		var edits []rawjson.Edit
		for j := range m.Blocks {
			b := &m.Blocks[j]
			field, id := "id", b.ID
			switch b.Kind {
			case furl.KindCall:
				if id = ids.callID(b.ID); id != b.ID {
					changed++
				}
			case furl.KindResult:
				field, id = "tool_use_id", ids.answers(b.ID)
			}
			if id == b.ID || b.End == 0 {
				continue
			}
			block := raw[b.Start:b.End]
			edits = append(edits, rawjson.Edit{
				Span: rawjson.Span{Start: b.Start, End: b.End},
				New:  rawjson.Splice(block, rawjson.SetField(block, field, rawjson.AppendString(nil, id))),
			})
		}
		if len(edits) > 0 {
			list[i] = rawjson.Splice(raw, edits)
		}
	}
	if changed > 0 {
		x.note("%s changed: Anthropic requires distinct ids of letters, digits, _ and -", plural(changed, "call id"))
	}
	return list
}
