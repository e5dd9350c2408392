package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
)

// claudeWriter writes a path as a session file of Claude Code, one record for
// each message. A compaction is written as a compaction of Claude Code where
// possible: one summary that replaces all earlier messages but a few.
type claudeWriter struct {
	*exporter
	session string              // its id in the file
	parent  string              // uuid of the last record
	uuids   map[furl.Seq]string // uuids of the messages' records
	path    []furl.Seq          // the messages so far
	at      time.Time           // the last known time
	ids     map[string]bool     // ids of replies in use
	id      string              // id of the current reply, "" outside a reply
	ex      *furl.Exchange      // the request it answers, until it is written
	had     tally               // counts of what the view shows
	got     tally               // counts of what was written
	left    int                 // reductions that were not written
	names   *callNames
	theirs  int // instructions of another agent, not written
}

// claudeVersion is the version of Claude Code whose records are imitated.
const claudeVersion = "2.0.0"

func (x *exporter) writeClaude() error {
	w := &claudeWriter{exporter: x, session: x.s.ID, uuids: make(map[furl.Seq]string), ids: make(map[string]bool)}
	if !isUUID(w.session) { // Claude Code resumes sessions with a UUID only
		w.session = x.named("session")
		x.note("the exported session has the id %s: Claude Code accepts only UUIDs", w.session)
	}
	v, err := x.view()
	if err != nil {
		return err
	}
	w.names = &callNames{exporter: x, ids: exportedIDs(furl.FormatAnthropic)}
	if x.s.Title != "" {
		w.line(jsonObject{}.str("type", "custom-title").str("customTitle", x.s.Title).str("sessionId", w.session))
	}
	// Go through the path and the view together: what is shown of a message
	// is written at its record.
	next, total := 0, len(v.Messages)
	show := func(seq furl.Seq) error {
		for next < total && (v.Messages[next].Index < 0 || v.Messages[next].Seq <= seq) {
			if err := w.shown(&v.Messages[next]); err != nil {
				return err
			}
			next++
			if err := w.progress(next, total); err != nil {
				return err
			}
		}
		return nil
	}
	for _, r := range x.s.Log.Path(x.state.Head()) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			w.ex, w.id = b, ""
		case *furl.Message:
			if !r.At.IsZero() {
				w.at = r.At
			}
			if err := show(r.Seq); err != nil {
				return err
			}
			if b.Role == furl.RoleAssistant {
				w.ex = nil // written, or hidden with its reply
			}
		case *furl.Reduction:
			if !x.opts.View {
				w.reduction(r, b)
			}
		case *furl.Takeover:
			for seq, body := range b.Taken() {
				if red, ok := body.(*furl.Reduction); ok && !x.opts.View {
					w.reduction(furl.Record{Seq: seq, At: r.At}, red)
				}
			}
		}
	}
	if err := show(furl.Seq(x.s.Log.Len())); err != nil { // markers at the end
		return err
	}
	w.notes()
	return nil
}

// shown writes one message of the view.
func (w *claudeWriter) shown(sh *furl.Shown) error {
	if (isInstruction(sh.Msg.Role) || findsTools(sh.Msg)) && sh.Msg.Format != furl.FormatAnthropic {
		w.theirs++ // Claude Code has its own
		if sh.Index >= 0 {
			w.done.Messages++
		}
		return nil
	}
	raws, err := anthropic.Codec.EncodeMessage(*sh)
	if err != nil {
		return fmt.Errorf("message %d: %w", sh.Seq, err)
	}
	if sh.Index >= 0 {
		w.done.Messages++
	}
	w.had.shown(sh)
	for i, raw := range raws {
		raw = w.names.message(raw)
		m, err := anthropic.Codec.DecodeMessage(raw)
		if err != nil {
			return fmt.Errorf("message %d: %w", sh.Seq, err)
		}
		uuid := w.named(fmt.Sprintf("message %d %d %d", sh.Seq, sh.By, w.done.Messages*100+i))
		w.message(uuid, m, sh.Index < 0)
		if sh.Index >= 0 {
			w.uuids[sh.Seq] = uuid
		}
	}
	if sh.Index >= 0 && w.uuids[sh.Seq] != "" {
		w.path = append(w.path, sh.Seq)
	}
	return nil
}

// message writes one record with a message in Anthropic's format. A marker is
// written by furl, not typed by the user.
func (w *claudeWriter) message(uuid string, m *furl.Message, mark bool) {
	w.got.message(m)
	role := "user"
	if m.Role == furl.RoleAssistant {
		role = "assistant"
	}
	content := withoutCacheControl(contentOf(m.Raw))
	msg := jsonObject{}
	if role == "assistant" {
		msg = msg.str("id", w.reply()).str("type", "message").str("role", role)
		if w.ex != nil {
			msg = msg.str("model", w.ex.Model)
		} else {
			msg = msg.str("model", w.s.Model)
		}
		msg = msg.raw("content", content)
		if w.ex != nil {
			stop := w.ex.Stop
			if stop == furl.StopUnstated {
				stop = ""
			}
			msg = msg.str("stop_reason", stop)
			if w.ex.Usage != (furl.Usage{}) {
				msg = msg.raw("usage", claudeUsage(w.ex))
			}
			w.ex = nil
		}
	} else {
		w.id = ""
		msg = msg.str("role", role).raw("content", content)
	}
	rec := w.record(role, uuid)
	if mark {
		rec = rec.raw("isMeta", []byte("true"))
	}
	w.line(rec.raw("message", msg.done()))
}

// reply returns the id of the current reply: all its messages share it.
func (w *claudeWriter) reply() string {
	if w.id != "" {
		return w.id
	}
	if w.ex != nil {
		w.id = w.ex.ResponseID
	}
	if w.id == "" || w.ids[w.id] {
		w.id = "msg_" + w.named(fmt.Sprintf("reply %d", len(w.ids)))
	}
	w.ids[w.id] = true
	return w.id
}

// reduction writes a compaction if Claude Code has a form for it.
func (w *claudeWriter) reduction(r furl.Record, red *furl.Reduction) {
	if on, ok := w.state.Reduction(r.Seq); on.Undone || !ok {
		return
	}
	mark, kept, ok := w.compaction(red)
	if !ok {
		w.left++
		return
	}
	raws, err := anthropic.Codec.EncodeMessage(furl.Shown{Index: -1, Msg: mark, Blocks: whole(mark)})
	if err != nil || len(raws) != 1 {
		w.left++
		return
	}
	if !r.At.IsZero() {
		w.at = r.At
	}
	meta := jsonObject{}.str("trigger", "auto")
	if red.Before > 0 {
		meta = meta.raw("preTokens", fmt.Append(nil, red.Before))
	}
	if red.After > 0 {
		meta = meta.raw("postTokens", fmt.Append(nil, red.After))
	}
	if len(kept) > 0 {
		list, _ := json.Marshal(kept) // strings always can
		meta = meta.raw("preservedMessages", jsonObject{}.raw("uuids", list).done())
	}
	before := w.parent
	w.parent = ""
	w.line(w.record("system", w.named(fmt.Sprintf("boundary %d", r.Seq))).str("subtype", "compact_boundary").
		str("content", "Conversation compacted").str("logicalParentUuid", before).raw("compactMetadata", meta.done()))
	w.line(w.record("user", w.named(fmt.Sprintf("summary %d", r.Seq))).raw("isCompactSummary", []byte("true")).
		raw("isVisibleInTranscriptOnly", []byte("true")).
		raw("message", jsonObject{}.str("role", "user").raw("content", withoutCacheControl(contentOf(raws[0]))).done()))
	w.id = ""
}

// compaction reports whether a reduction shows one message of the user
// instead of all messages so far, except for some. It returns that message
// and the uuids of the exceptions.
func (w *claudeWriter) compaction(red *furl.Reduction) (mark *furl.Message, kept []string, ok bool) {
	if len(red.Items) != 1 {
		return nil, nil, false
	}
	show, ok := red.Items[0].Show.(furl.Mark)
	if !ok || len(show.Messages) != 1 || show.Messages[0].Role != furl.RoleUser {
		return nil, nil, false
	}
	hidden := make([]bool, len(w.path))
	for _, sp := range red.Items[0].Spans {
		last := w.s.Log.At(sp.Last.Msg).Body.(*furl.Message)
		if sp.First.Block > 0 || sp.Last.Block < len(last.Blocks)-1 {
			return nil, nil, false // a part of a message
		}
		from, _ := slices.BinarySearch(w.path, sp.First.Msg)
		for i := from; i < len(w.path) && w.path[i] <= sp.Last.Msg; i++ {
			hidden[i] = true
		}
	}
	for i, seq := range w.path {
		if !hidden[i] {
			kept = append(kept, w.uuids[seq])
		}
	}
	return show.Messages[0], kept, len(kept) <= maxKept
}

// maxKept is how many messages a compaction for Claude Code may leave in
// place; the record names each of them.
const maxKept = 1000

// whole shows all blocks of a message unchanged.
func whole(m *furl.Message) []furl.ShownBlock {
	blocks := make([]furl.ShownBlock, len(m.Blocks))
	for i := range m.Blocks {
		blocks[i].Block = &m.Blocks[i]
	}
	return blocks
}

// record starts a record of the tree.
func (w *claudeWriter) record(typ, uuid string) jsonObject {
	r := jsonObject{}
	if w.parent == "" {
		r = r.raw("parentUuid", []byte("null"))
	} else {
		r = r.str("parentUuid", w.parent)
	}
	w.parent = uuid
	r = r.raw("isSidechain", []byte("false")).str("userType", "external").str("cwd", w.s.project()).str("sessionId", w.session).
		str("version", claudeVersion).str("gitBranch", "").str("type", typ).str("uuid", uuid)
	if !w.at.IsZero() {
		r = r.str("timestamp", w.at.UTC().Format(time.RFC3339Nano))
	}
	return r
}

func (w *claudeWriter) line(r jsonObject) { w.put(append(r.done(), '\n')) }

// notes reports what the file does not contain.
func (w *claudeWriter) notes() {
	w.compareContent(furl.FormatAnthropic, w.had, w.got)
	if n := len(w.state.OpenCalls()); n > 0 {
		w.note("%s at the end without a result: Claude Code adds one", plural(n, "call"))
	}
	if w.left > 0 {
		w.note("%s not exported: the file contains the hidden messages", plural(w.left, "reduction"))
	}
	w.changedCalls("Claude Code requires", w.names.changed, w.names.renamed)
	if w.theirs > 0 || len(w.s.Preamble) > 0 {
		w.note("instructions and tools not exported: Claude Code supplies its own")
	}
}

// isUUID reports whether an id has the form of a UUID.
func isUUID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}

// contentOf returns the content of a message as JSON.
func contentOf(raw []byte) []byte {
	r := rawjson.NewReader(raw)
	content := []byte(`""`)
	for key := range r.Fields() {
		if string(key) == "content" {
			content = r.Raw()
		}
	}
	return content
}

// withoutCacheControl returns the content of a message without its cache
// breakpoints. Claude Code sets its own in each request, and the provider
// accepts only four.
func withoutCacheControl(content []byte) []byte {
	if !bytes.Contains(content, []byte("cache_control")) {
		return content
	}
	r := rawjson.NewReader(content)
	if r.Kind() != '[' {
		return content
	}
	var blocks []byte
	for _, block := range rawjson.Elements(content) {
		block = rawjson.Splice(block, rawjson.DropField(block, "cache_control"))
		if rawjson.Unquote(rawjson.Field(block, "type")) == "tool_result" {
			if inner := rawjson.Field(block, "content"); inner != nil {
				block = rawjson.WithField(block, "content", withoutCacheControl(inner))
			}
		}
		blocks = append(append(blocks, ','), block...)
	}
	if blocks == nil {
		return content
	}
	blocks[0] = '['
	return append(blocks, ']')
}

// claudeUsage returns a usage as the provider reports it: the sum over the passes that
// wrote the reply, the terms, and the list of passes if there were several.
func claudeUsage(ex *furl.Exchange) []byte {
	passes := ex.Passes
	out := appendTerms(appendUsage([]byte("{"), passes.Replied(ex.Usage)), &ex.Terms)
	for i, p := range passes {
		out = append(out, ","...)
		if i == 0 {
			out = append(out, `"iterations":[`...)
		}
		kind := p.Kind
		if len(passes) == 1 && kind == furl.PassMessage {
			kind = "fallback_message" // a single "message" pass says nothing, not even its model
		}
		out = rawjson.AppendString(append(out, `{"type":`...), kind)
		if p.Model != "" {
			out = rawjson.AppendString(append(out, `,"model":`...), p.Model)
		}
		out = append(appendUsage(append(out, ','), p.Usage), '}')
	}
	if len(passes) > 0 {
		out = append(out, ']')
	}
	return append(out, '}')
}

func appendUsage(out []byte, u furl.Usage) []byte {
	return fmt.Appendf(out, `"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},"output_tokens":%d`,
		u.Input, u.CacheWrite+u.CacheWrite1h, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.Output)
}

func appendTerms(out []byte, t *furl.Terms) []byte {
	for _, w := range []struct{ field, word string }{{"speed", t.Speed}, {"inference_geo", t.Geo}, {"service_tier", t.Tier}} {
		if w.word != "" {
			out = rawjson.AppendString(append(rawjson.AppendString(append(out, ','), w.field), ':'), w.word)
		}
	}
	for i, tool := range t.Tools {
		if i == 0 {
			out = append(out, `,"server_tool_use":{`...)
		} else {
			out = append(out, ',')
		}
		out = fmt.Appendf(append(rawjson.AppendString(out, tool.Name+"_requests"), ':'), "%d", tool.Uses)
	}
	if len(t.Tools) > 0 {
		out = append(out, '}')
	}
	return out
}

// jsonObject is a JSON object under construction. Its fields keep the order in
// which they are added.
type jsonObject struct{ out []byte }

func (r jsonObject) raw(name string, value []byte) jsonObject {
	c := byte(',')
	if len(r.out) == 0 {
		c = '{'
	}
	r.out = append(rawjson.AppendString(append(r.out, c), name), ':')
	if bytes.ContainsAny(value, "\n\r") { // a record is one line
		r.out = rawjson.Compact(r.out, value)
	} else {
		r.out = append(r.out, value...)
	}
	return r
}

func (r jsonObject) str(name, value string) jsonObject {
	return r.raw(name, rawjson.AppendString(nil, value))
}

func (r jsonObject) num(name string, n int64) jsonObject { return r.raw(name, fmt.Append(nil, n)) }

// with adds the fields of another object, which has at least one.
func (r jsonObject) with(o jsonObject) jsonObject {
	return jsonObject{append(append(r.out, ','), o.out[1:]...)}
}

// jsonList returns a list.
func jsonList(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte{','})...), ']')
}

func (r jsonObject) done() []byte { return append(r.out, '}') }
