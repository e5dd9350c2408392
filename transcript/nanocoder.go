package transcript

import (
	"encoding/json"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// nanocoder stores a session as one JSON object with messages[] in the form of
// Chat Completions, but with the arguments of calls as objects. Only the
// session has times. Its compaction shortens messages in place, so the file has
// only the shortened ones.

func isNanocoder(p *probe) bool { return p.is('{') && isNanocoderSession(p.objects[0]) }

func isNanocoderSession(o object) bool {
	return o.has("id", "createdAt", "lastAccessedAt", "workingDirectory") && o.kind("messages") == '['
}

// nanocoderBeside is the list of sessions next to them.
var nanocoderBeside = &format{
	name:  "nanocoder-beside",
	agent: "nanocoder",
	detect: func(p *probe) bool {
		return p.is('[') && first(p).has("lastAccessedAt", "messageCount", "workingDirectory")
	},
}

func readNanocoder(in *input) ([]*Session, error) {
	var sessions []*Session
	for line, rec := range in.objects() {
		o := objectOf(rec)
		model := o.str("model")
		s := newScribe(in, wireOf(model, furl.FormatChat), model)
		s.r.unflagged = true // exit codes, and the failures that tools report themselves
		s.b.ID, s.b.Title, s.b.Project = o.str("id"), headline(o.str("title")), o.str("workingDirectory")
		at := parseTime(o.str("createdAt"))
		names := make(map[string]string) // of calls in the file, their wire ids
		list := in.elements(rec, "messages")
		for i, raw := range list {
			var m struct {
				Role    string          `json:"role"`
				Content json.RawMessage `json:"content"`
				CallID  string          `json:"tool_call_id"`
				IsError bool            `json:"isError"`           // since 2026
				Sent    json.RawMessage `json:"structuredContent"` // of a result, in place of content
				Images  []struct {
					Data string `json:"data"`
					Mime string `json:"mediaType"`
				} `json:"images"`
				ToolCalls []struct {
					ID       string `json:"id"`
					Function struct {
						Name      string          `json:"name"`
						Arguments json.RawMessage `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			}
			if err := lenient(raw, &m); err != nil {
				in.skip(line, "message %d: %v", i+1, err)
				continue
			}
			var text string
			if json.Unmarshal(m.Content, &text) != nil {
				text = textOfParts(m.Content)
			}
			var pieces []piece
			if text != "" {
				pieces = append(pieces, words(text))
			}
			for _, img := range m.Images {
				pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{{mime: img.Mime, data: img.Data}}})
			}
			switch m.Role {
			case "user":
				s.user(at, line, pieces...)
			case "system":
				s.system(at, line, text)
			case "assistant":
				for _, c := range m.ToolCalls {
					pieces = append(pieces, piece{kind: furl.KindCall, id: c.ID, name: c.Function.Name, args: rawjson.Compact(nil, c.Function.Arguments)})
				}
				s.reply(at, furl.Exchange{Model: model})
				s.assistant(at, line, pieces)
				for j, p := range pieces[len(pieces)-len(m.ToolCalls):] {
					names[m.ToolCalls[j].ID] = p.id
				}
			case "tool":
				id, ok := names[m.CallID]
				if !ok {
					id = m.CallID
				}
				if len(m.Sent) > 0 {
					text = string(rawjson.Compact(nil, m.Sent))
				}
				s.result(at, line, piece{kind: furl.KindResult, id: id, text: text, failed: m.IsError})
			default:
				in.skip(line, "message %d: unknown role %q", i+1, m.Role)
			}
			at = time.Time{} // only the start is recorded
		}
		out := s.finish()
		out.Messages = len(list)
		sessions = append(sessions, out)
	}
	return sessions, nil
}

// textOfParts returns the texts of a content that is a list of parts.
func textOfParts(raw []byte) (text string) {
	for _, part := range listOf(raw) {
		if t := objectOf(part).str("text"); t != "" {
			if text != "" {
				text += "\n"
			}
			text += t
		}
	}
	return text
}
