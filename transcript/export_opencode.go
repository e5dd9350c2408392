package transcript

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// opencodeVersion is the version of opencode that was tried with this form.
const opencodeVersion = "1.18.34"

// opencodeWriter writes a path as opencode exports and imports sessions: one object with the
// session and its messages, each with its parts. The parts of a message are sorted by id.
type opencodeWriter struct {
	*exporter
	clock   clock
	session string
	n       int
	lost    int // images
}

func (x *exporter) writeOpencode() error {
	list, err := x.turns("opencode")
	if err != nil {
		return err
	}
	w := &opencodeWriter{exporter: x}
	w.session = x.s.ID
	if !strings.HasPrefix(w.session, "ses_") {
		w.session = w.id("ses")
	}
	if len(list) > 0 {
		w.clock.tick(list[0].at)
	}
	began := int64(w.clock)
	var messages [][]byte
	asked := "" // the message that is answered
	for _, t := range list {
		ms := w.clock.tick(t.at)
		id := w.id("msg")
		info := jsonObject{}.str("id", id).str("sessionID", w.session)
		if t.reply {
			info = w.reply(info, t, ms, cmp.Or(asked, id))
		} else {
			asked = id
			info = info.str("role", "user").raw("time", jsonObject{}.num("created", ms).done()).str("agent", "build").
				raw("model", opencodeModelFields(jsonObject{}, t.model, w.s.Wire).done())
		}
		var parts [][]byte
		for i := range t.pieces {
			for _, part := range w.parts(id, &t.pieces[i], t.result[i], ms) {
				o := jsonObject{}.str("id", w.id("prt")).str("sessionID", w.session).str("messageID", id).with(part)
				parts = append(parts, o.done())
			}
		}
		messages = append(messages, jsonObject{}.raw("info", info.done()).raw("parts", jsonList(parts)).done())
	}
	if len(list) > 0 {
		model := opencodeModel(list[len(list)-1].model, x.s.Wire)
		w.note("opencode continues with the session's model, %s/%s; for another one, add -m PROVIDER/MODEL to its command", model[0], model[1])
	}
	if w.lost > 0 {
		w.note("%s not exported: opencode has no images in failed results", plural(w.lost, "image"))
	}
	info := jsonObject{}.str("id", w.session).str("slug", "furl-"+strings.ToLower(w.session[max(0, len(w.session)-8):])).str("projectID", "global").
		str("directory", x.s.project()).str("title", cmp.Or(x.s.Title, "Session "+x.s.ID)).str("version", opencodeVersion).
		raw("time", jsonObject{}.num("created", began).num("updated", int64(w.clock)).done())
	w.put(append(jsonObject{}.raw("info", info.done()).raw("messages", append([]byte("\n"), jsonList(messages)...)).done(), '\n'))
	return nil
}

// opencodeModel returns the names of a provider and a model.
func opencodeModel(model string, wire furl.Format) [2]string {
	provider := "openai"
	if wire == furl.FormatAnthropic {
		provider = "anthropic"
	}
	return [2]string{provider, cmp.Or(model, "unknown")}
}

// opencodeModelFields adds them to an object.
func opencodeModelFields(o jsonObject, model string, wire furl.Format) jsonObject {
	names := opencodeModel(model, wire)
	return o.str("providerID", names[0]).str("modelID", names[1])
}

func (w *opencodeWriter) reply(o jsonObject, t *turn, ms int64, parent string) jsonObject {
	finish := "stop"
	if len(t.result) > 0 {
		finish = "tool-calls"
	}
	u := t.usage
	cache := jsonObject{}.num("read", int64(u.CacheRead)).num("write", int64(u.CacheWrite+u.CacheWrite1h))
	tokens := jsonObject{}.num("input", int64(u.Input)).num("output", int64(u.Output)).num("reasoning", 0).raw("cache", cache.done())
	o = o.str("role", "assistant").str("parentID", parent).str("mode", "build").str("agent", "build").
		raw("path", jsonObject{}.str("cwd", w.s.project()).str("root", "/").done()).num("cost", 0).raw("tokens", tokens.done())
	return opencodeModelFields(o, t.model, w.s.Wire).raw("time", jsonObject{}.num("created", ms).num("completed", ms).done()).str("finish", finish)
}

// parts returns the fields of the parts for a piece of a message.
func (w *opencodeWriter) parts(message string, p, result *piece, ms int64) (parts []jsonObject) {
	switch p.kind {
	case furl.KindText:
		parts = append(parts, jsonObject{}.str("type", "text").str("text", p.text).raw("time", jsonObject{}.num("start", ms).num("end", ms).done()))
	case furl.KindImage:
		for _, pic := range p.images {
			parts = append(parts, opencodeFile(pic))
		}
	case furl.KindCall:
		state := jsonObject{}.str("status", "completed").raw("input", p.args)
		if result.failed {
			w.lost += len(result.images) // an error has only a text
			state = jsonObject{}.str("status", "error").raw("input", p.args).str("error", result.text)
		} else {
			state = state.str("output", result.text).str("title", p.name).raw("metadata", []byte("{}"))
		}
		state = state.raw("time", jsonObject{}.num("start", ms).num("end", ms).done())
		if len(result.images) > 0 && !result.failed {
			var files [][]byte
			for _, pic := range result.images {
				files = append(files, jsonObject{}.str("id", w.id("prt")).str("sessionID", w.session).str("messageID", message).with(opencodeFile(pic)).done())
			}
			state = state.raw("attachments", jsonList(files))
		}
		parts = append(parts, jsonObject{}.str("type", "tool").str("tool", p.name).str("callID", p.id).raw("state", state.done()))
	}
	return parts
}

func opencodeFile(pic picture) jsonObject {
	return jsonObject{}.str("type", "file").str("mime", pic.mime).str("url", pic.dataURL())
}

// id returns the next id. Ids have the form of opencode's: a prefix, then 12 digits that grow, then
// 14 characters.
func (w *opencodeWriter) id(prefix string) string {
	w.n++
	rest := strings.ReplaceAll(w.named(fmt.Sprintf("%s %d", prefix, w.n)), "-", "")
	return fmt.Sprintf("%s_%012x%s", prefix, w.n, rest[:14])
}
