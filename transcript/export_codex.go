package transcript

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/openai"
)

// codexVersion is the version of Codex that was tried with these records.
const codexVersion = "0.171.0"

// codexWriter writes a path as a rollout of Codex: a record that describes the session, and one
// for each item of Responses. Codex shows the texts of a resumed session from records of their own.
type codexWriter struct {
	*exporter
	clock clock
	ids   *renderer         // nil if the items have ids of OpenAI
	open  map[string]string // by call id: the type of the missing result
	calls []string

	changed, renamed int
}

func (x *exporter) writeCodex() error {
	v, err := x.view()
	if err != nil {
		return err
	}
	w := &codexWriter{exporter: x, open: map[string]string{}}
	// Codex writes its instructions into each session that it resumes.
	carried := *v
	carried.Messages = nil
	var had, got tally
	instructions := 0
	// With the reasoning of another account, OpenAI refuses every request of the session.
	own := x.s.Meta.Client == "Codex"
	for i := range v.Messages {
		sh := &v.Messages[i]
		if sh.Index >= 0 {
			x.done.Messages++
		}
		if isInstruction(sh.Msg.Role) {
			instructions++
			continue
		}
		had.shown(sh)
		if !own && sh.Msg.Format == furl.FormatResponses && thinks(sh.Msg) {
			continue
		}
		if sh.Msg.Format != furl.FormatResponses && sh.Index >= 0 && w.ids == nil {
			w.ids = exportedIDs(furl.FormatResponses)
		}
		carried.Messages = append(carried.Messages, *sh)
	}
	list, err := openai.EncodeResponses(&carried)
	if err != nil {
		return err
	}
	w.begin(v)
	for i, raw := range list {
		if m, err := openai.Responses.DecodeMessage(raw); err == nil {
			if m, err = openai.Responses.DecodeMessage(w.item(raw, m)); err == nil {
				got.message(m)
			}
		} else {
			w.record("response_item", raw)
		}
		if err := x.progress(i+1, len(list)); err != nil {
			return err
		}
	}
	open := 0
	for _, id := range w.calls {
		if typ := w.open[id]; typ != "" {
			w.record("response_item", jsonObject{}.str("type", typ).str("call_id", id).str("output", noResult).done())
			open++
		}
	}
	x.handedOver("Codex", instructions, w.changed, w.renamed, open)
	x.compareContent(furl.FormatResponses, had, got)
	if n := x.hiding(); n > 0 && !x.opts.View {
		x.note("%s not exported: the file contains the hidden messages", plural(n, "reduction"))
	}
	return nil
}

// begin writes the record that describes the session.
func (w *codexWriter) begin(v *furl.View) {
	for i := range v.Messages {
		if n := v.Messages[i].Index; n >= 0 && n < w.state.Len() && !w.state.Time(n).IsZero() {
			w.clock.tick(w.state.Time(n))
			break
		}
	}
	id := w.s.ID
	if !isUUID(id) {
		id = w.named("session")
	}
	now := stamp(w.clock.tick(time.Time{}))
	w.record("session_meta", jsonObject{}.str("id", id).str("timestamp", now).str("cwd", w.s.project()).
		str("originator", "furl").str("cli_version", codexVersion).str("source", "cli").
		str("model_provider", cmp.Or(w.opts.Provider, "openai")).done())
}

// item writes an item with an id and a name that OpenAI accepts.
func (w *codexWriter) item(raw []byte, m *furl.Message) []byte {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		id := b.ID
		switch b.Kind {
		case furl.KindCall:
			if w.ids != nil {
				id = w.ids.callID(b.ID)
				if name := toolName(b.Name); name != b.Name {
					raw = rawjson.WithField(raw, "name", rawjson.AppendString(nil, name))
					w.renamed++
				}
			}
			if id != b.ID {
				w.changed++
			}
			w.calls = append(w.calls, id)
			w.open[id] = rawjson.Unquote(rawjson.Field(raw, "type")) + "_output"
		case furl.KindResult:
			if w.ids != nil {
				id = w.ids.answers(b.ID)
			}
			w.open[id] = ""
		default:
			continue
		}
		if id != b.ID {
			raw = rawjson.WithField(raw, "call_id", rawjson.AppendString(nil, id))
		}
	}
	if rawjson.Field(raw, "type") == nil { // as clients of the API may write messages
		raw = rawjson.WithField(raw, "type", []byte(`"message"`))
	}
	raw = codexContent(raw, "content")
	raw = codexContent(raw, "output")
	w.record("response_item", raw)
	w.text(m)
	return raw
}

// thinks reports whether a message is reasoning.
func thinks(m *furl.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindThinking })
}

// codexParts are the types of content that Codex reads. It drops a message with another one.
var codexParts = []string{"input_text", "output_text", "input_image"}

// codexContent replaces the content that Codex does not read by text, and the text of a message by a
// list.
func codexContent(raw []byte, field string) []byte {
	as := "input_text"
	if rawjson.Unquote(rawjson.Field(raw, "role")) == "assistant" {
		as = "output_text"
	}
	list := rawjson.Field(raw, field)
	switch kind := rawjson.NewReader(list).Kind(); {
	case kind == '"' && field == "content":
		text := jsonObject{}.str("type", as).raw("text", list).done()
		return rawjson.WithField(raw, field, jsonList([][]byte{text}))
	case kind != '[':
		return raw
	}
	var parts [][]byte
	changed := false
	for _, part := range rawjson.Elements(list) {
		if typ := rawjson.Unquote(rawjson.Field(part, "type")); !slices.Contains(codexParts, typ) {
			text := "[" + strings.TrimPrefix(typ, "input_") + "]"
			if name := rawjson.Unquote(rawjson.Field(part, "filename")); name != "" {
				text = "[file " + name + "]"
			} else if refusal := rawjson.Unquote(rawjson.Field(part, "refusal")); refusal != "" {
				text = refusal
			}
			part, changed = jsonObject{}.str("type", as).str("text", text).done(), true
		}
		parts = append(parts, part)
	}
	if !changed {
		return raw
	}
	return rawjson.WithField(raw, field, jsonList(parts))
}

// text writes what Codex shows of a message.
func (w *codexWriter) text(m *furl.Message) {
	typ := "user_message"
	if m.Role == furl.RoleAssistant {
		typ = "agent_message"
	}
	var texts []string
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == furl.KindText && strings.TrimSpace(b.Text) != "" && !addedByAgent(b.Text) {
			texts = append(texts, b.Text)
		}
	}
	if len(texts) > 0 {
		w.record("event_msg", jsonObject{}.str("type", typ).str("message", strings.Join(texts, "\n")).done())
	}
}

// addedByAgent reports whether an agent has added a text to the user's. Codex would show it, and
// take it for the title of the session.
func addedByAgent(text string) bool {
	return slices.ContainsFunc([]string{"<environment_context>", "<user_instructions>", "<system-reminder>", "# AGENTS.md instructions"}, func(start string) bool {
		return strings.HasPrefix(strings.TrimSpace(text), start)
	})
}

func (w *codexWriter) record(typ string, payload []byte) {
	w.put(append(jsonObject{}.str("timestamp", stamp(w.clock.tick(time.Time{}))).str("type", typ).raw("payload", payload).done(), '\n'))
}
