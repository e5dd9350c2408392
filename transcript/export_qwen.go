package transcript

import (
	"fmt"

	"github.com/furlhq/furl"
)

// qwenVersion is the version of Qwen Code that was tried with these records.
const qwenVersion = "0.24.4"

// qwenWriter writes a path as a chat of Qwen Code: a chain of records with Gemini's contents.
type qwenWriter struct {
	*exporter
	clock   clock
	session string
	parent  string
	n       int
}

func (x *exporter) writeQwen() error {
	list, err := x.turns("Qwen Code")
	if err != nil {
		return err
	}
	w := &qwenWriter{exporter: x, session: x.s.ID}
	if !isUUID(w.session) {
		w.session = x.named("session")
	}
	for _, t := range list {
		parts := qwenParts(t.pieces)
		if !t.reply {
			w.record(t, "user", "real_user", jsonObject{}.raw("message", qwenMessage("user", parts)))
			continue
		}
		o := jsonObject{}
		if t.model != "" {
			o = o.str("model", t.model)
		}
		o = o.raw("message", qwenMessage("model", parts))
		if u := t.usage; u != (furl.Usage{}) {
			prompt := u.Input + u.CacheRead + u.CacheWrite + u.CacheWrite1h
			o = o.raw("usageMetadata", jsonObject{}.num("promptTokenCount", int64(prompt)).num("candidatesTokenCount", int64(u.Output)).num("thoughtsTokenCount", 0).
				num("totalTokenCount", int64(prompt+u.Output)).num("cachedContentTokenCount", int64(u.CacheRead)).done())
		}
		w.record(t, "assistant", "assistant_output", o)
		for i := range t.pieces {
			if r := t.result[i]; r != nil {
				w.result(t, r)
			}
		}
	}
	return nil
}

// result writes the result of a call. Its images are parts of it.
func (w *qwenWriter) result(t *turn, r *piece) {
	field, status := "output", "success"
	if r.failed {
		field, status = "error", "error"
	}
	response := jsonObject{}.str("id", r.id).str("name", r.name).raw("response", jsonObject{}.str(field, r.text).done())
	if len(r.images) > 0 {
		response = response.raw("parts", jsonList(qwenParts([]piece{{kind: furl.KindImage, images: r.images}})))
	}
	part := jsonObject{}.raw("functionResponse", response.done()).done()
	w.record(t, "tool_result", "tool_result", jsonObject{}.raw("message", qwenMessage("user", [][]byte{part})).
		raw("toolCallResult", jsonObject{}.str("callId", r.id).str("status", status).str("resultDisplay", r.text).done()))
}

func qwenMessage(role string, parts [][]byte) []byte {
	return jsonObject{}.str("role", role).raw("parts", jsonList(parts)).done()
}

func qwenParts(pieces []piece) (parts [][]byte) {
	for i := range pieces {
		p := &pieces[i]
		switch p.kind {
		case furl.KindText:
			parts = append(parts, jsonObject{}.str("text", p.text).done())
		case furl.KindCall:
			parts = append(parts, jsonObject{}.raw("functionCall", jsonObject{}.str("id", p.id).str("name", p.name).raw("args", p.args).done()).done())
		case furl.KindImage:
			for _, pic := range p.images {
				parts = append(parts, jsonObject{}.raw("inlineData", jsonObject{}.str("mimeType", pic.mime).str("data", pic.data).done()).done())
			}
		}
	}
	return parts
}

// record writes a record of the chain with the fields of o.
func (w *qwenWriter) record(t *turn, typ, provenance string, o jsonObject) {
	w.n++
	uuid := w.named(fmt.Sprintf("record %d", w.n))
	r := jsonObject{}.str("uuid", uuid)
	if w.parent == "" {
		r = r.raw("parentUuid", []byte("null"))
	} else {
		r = r.str("parentUuid", w.parent)
	}
	w.parent = uuid
	r = r.str("sessionId", w.session).str("timestamp", stamp(w.clock.tick(t.at))).str("type", typ).str("provenance", provenance).
		str("cwd", w.s.project()).str("version", qwenVersion).with(o)
	w.put(append(r.done(), '\n'))
}
