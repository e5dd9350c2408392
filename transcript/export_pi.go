package transcript

import (
	"cmp"
	"fmt"

	"github.com/furlhq/furl"
)

// piWriter writes a path as a session file of pi: a header, then a tree of entries, here a list.
type piWriter struct {
	*exporter
	clock  clock
	parent string
	n      int
}

func (x *exporter) writePi() error {
	list, err := x.turns("pi")
	if err != nil {
		return err
	}
	w := &piWriter{exporter: x}
	if len(list) > 0 {
		w.clock.tick(list[0].at)
	}
	id := x.s.ID
	if !isUUID(id) {
		id = x.named("session")
	}
	w.line(jsonObject{}.str("type", "session").raw("version", []byte("3")).str("id", id).
		str("timestamp", stamp(int64(w.clock))).str("cwd", x.s.project()))
	if x.s.Title != "" {
		w.entry("session_info", int64(w.clock), jsonObject{}.str("name", x.s.Title))
	}
	for _, t := range list {
		ms := w.clock.tick(t.at)
		if !t.reply {
			w.message(ms, jsonObject{}.str("role", "user").raw("content", piBlocks(t.pieces)))
			continue
		}
		w.reply(ms, t)
		for i := range t.pieces {
			if r := t.result[i]; r != nil {
				ms := w.clock.tick(t.at)
				w.message(ms, jsonObject{}.str("role", "toolResult").str("toolCallId", r.id).str("toolName", r.name).
					raw("content", piBlocks([]piece{{kind: furl.KindText, text: r.text}, {kind: furl.KindImage, images: r.images}})).
					raw("isError", fmt.Append(nil, r.failed)))
			}
		}
	}
	return nil
}

// piSources are the names of an API and of a provider in pi, by wire format. With another model,
// pi ignores what only they can read.
var piSources = map[furl.Format][2]string{
	furl.FormatAnthropic: {"anthropic-messages", "anthropic"},
	furl.FormatResponses: {"openai-responses", "openai"},
	furl.FormatChat:      {"openai-completions", "openai"},
}

func (w *piWriter) reply(ms int64, t *turn) {
	from := piSources[w.s.Wire]
	if from[0] == "" {
		from = piSources[furl.FormatChat]
	}
	stop := "stop"
	if len(t.result) > 0 {
		stop = "toolUse"
	}
	u := t.usage
	cost := jsonObject{}
	for _, name := range []string{"input", "output", "cacheRead", "cacheWrite", "total"} {
		cost = cost.raw(name, []byte("0"))
	}
	written := u.CacheWrite + u.CacheWrite1h
	usage := jsonObject{}.num("input", int64(u.Input)).num("output", int64(u.Output)).num("cacheRead", int64(u.CacheRead)).num("cacheWrite", int64(written)).
		num("totalTokens", int64(u.Input+u.Output+u.CacheRead+written)).raw("cost", cost.done())
	w.message(ms, jsonObject{}.str("role", "assistant").raw("content", piBlocks(t.pieces)).str("api", from[0]).str("provider", from[1]).
		str("model", cmp.Or(t.model, "unknown")).raw("usage", usage.done()).str("stopReason", stop))
}

// piBlocks returns a list of content.
func piBlocks(pieces []piece) []byte {
	var list [][]byte
	for i := range pieces {
		p := &pieces[i]
		switch p.kind {
		case furl.KindText:
			list = append(list, jsonObject{}.str("type", "text").str("text", p.text).done())
		case furl.KindCall:
			list = append(list, jsonObject{}.str("type", "toolCall").str("id", p.id).str("name", p.name).raw("arguments", p.args).done())
		case furl.KindImage:
			for _, pic := range p.images {
				list = append(list, jsonObject{}.str("type", "image").str("data", pic.data).str("mimeType", pic.mime).done())
			}
		}
	}
	return jsonList(list)
}

func (w *piWriter) message(ms int64, m jsonObject) {
	w.entry("message", ms, jsonObject{}.raw("message", m.num("timestamp", ms).done()))
}

// entry writes an entry of the tree with the fields of o.
func (w *piWriter) entry(typ string, ms int64, o jsonObject) {
	w.n++
	e := jsonObject{}.str("type", typ).str("id", fmt.Sprintf("%08x", w.n))
	if w.parent == "" {
		e = e.raw("parentId", []byte("null"))
	} else {
		e = e.str("parentId", w.parent)
	}
	w.parent = fmt.Sprintf("%08x", w.n)
	w.line(e.str("timestamp", stamp(ms)).with(o))
}

func (w *piWriter) line(o jsonObject) { w.put(append(o.done(), '\n')) }
