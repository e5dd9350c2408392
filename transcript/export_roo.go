package transcript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/anthropic"
)

// The files of a task of Roo Code and Zoo Code. The extension lists the tasks
// that have a history item, shows the chat, and sends the history.
const (
	rooHistoryFile = "api_conversation_history.json"
	rooChatFile    = "ui_messages.json"
	rooItemFile    = "history_item.json"
)

// rooCopy marks a message that replaces the hidden message before it. Roo Code
// keeps fields that it does not know.
const rooCopy = "furlReplaces"

// ExportTask writes a session as a task of Roo Code or Zoo Code: a folder in
// dir, with the task's id as its name. dir is the folder "tasks" in the
// extension's storage. Unless replace is set, an existing folder is an error.
// It returns the path of the new folder. See Export for opts and other errors.
func ExportTask(ctx context.Context, dir string, s *Session, opts *ExportOptions, replace bool) (path string, done *Exported, err error) {
	path = filepath.Join(dir, rooTaskID(s))
	if _, err := os.Lstat(path); err == nil && !replace {
		return "", nil, fmt.Errorf("export as roo: %s: %w", path, fs.ErrExist)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	// The extension ignores names that start with a dot.
	temp, err := os.MkdirTemp(dir, ".furl-")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	o := ExportOptions{}
	if opts != nil {
		o = *opts
	}
	o.beside = func(name string, data []byte) error { return os.WriteFile(filepath.Join(temp, name), data, 0o600) }
	history, err := os.OpenFile(filepath.Join(temp, rooHistoryFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, err
	}
	done, err = Export(ctx, history, "roo", s, &o)
	if err = errors.Join(err, history.Close()); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", nil, err
	}
	for _, name := range []string{rooHistoryFile, rooChatFile, rooItemFile} { // the item last: it lists the task
		if err := os.Rename(filepath.Join(temp, name), filepath.Join(path, name)); err != nil {
			return "", nil, err
		}
	}
	return path, done, nil
}

// rooTaskID returns the id of a task: that of the session if it is a UUID.
func rooTaskID(s *Session) string {
	if isUUID(s.ID) {
		return s.ID
	}
	return (&exporter{s: s}).named("session")
}

// rooWriter writes a path as a history of Roo Code. Hidden messages are in the
// file, tagged with the marker or summary that is shown instead. A message
// that is shown changed, such as one with a masked result, is hidden by its
// changed copy.
type rooWriter struct {
	*exporter
	clock   clock // of the newest element
	written int
	hidden  map[furl.Seq]furl.Seq // messages hidden whole, and by which reduction
	summary furl.Seq              // the reduction that is written as a summary
	before  bool                  // the summary is not written yet
	chat    []byte
	task    string
	marks   map[furl.Seq]bool // reductions that show a message
	used    map[furl.Seq]bool // reductions to report in the chat
	usage   furl.Usage
	had     tally
	got     tally
}

func (x *exporter) writeRoo() error {
	w := &rooWriter{exporter: x, hidden: make(map[furl.Seq]furl.Seq), marks: make(map[furl.Seq]bool), used: make(map[furl.Seq]bool)}
	w.put([]byte{'['})
	if x.opts.View {
		v, err := x.view()
		if err != nil {
			return err
		}
		if err := w.view(v); err != nil {
			return err
		}
	} else {
		v := x.state.View(furl.Model{})
		w.plan(v)
		if err := w.walk(v); err != nil {
			return err
		}
	}
	w.put([]byte("\n]\n"))
	w.compare(furl.FormatAnthropic, w.had, w.got)
	if len(x.s.Preamble) > 0 {
		x.note("instructions and tools not exported: Roo Code supplies its own")
	}
	if n := w.covered(); n > 0 {
		x.note("%s below newer ones not exported", plural(n, "reduction"))
	}
	return w.rest()
}

// plan finds the messages that are hidden whole, and whether the first mark
// can be a summary: Roo Code then sends nothing that is before it in the file.
func (w *rooWriter) plan(v *furl.View) {
	silent := 0
	for i := range v.Units {
		u := &v.Units[i]
		if u.Kind != furl.UnitMark {
			continue
		}
		by := u.By
		if u.First > u.Last || u.First >= len(v.Messages) || v.Messages[u.First].Index >= 0 {
			by = 0 // a mark without a message
		}
		for _, sp := range v.Spans(*u) {
			from, _ := w.state.Find(sp.First.Msg)
			to, _ := w.state.Find(sp.Last.Msg)
			for ; from <= to; from++ {
				seq, _ := w.state.Message(from)
				w.hidden[seq] = by
			}
		}
	}
	for i := range v.Messages {
		sh := &v.Messages[i]
		delete(w.hidden, sh.Seq) // a part of it is shown
		if sh.By != 0 {
			w.used[sh.By], w.marks[sh.By] = true, true
		}
		for j := range sh.Blocks {
			if by := sh.Blocks[j].By; by != 0 {
				w.used[by] = true
			}
		}
	}
	for _, by := range w.hidden {
		if by == 0 {
			silent++
		}
	}
	if silent > 0 {
		w.note("%s not exported: the client left them out without a marker", plural(silent, "message"))
	}
	if len(v.Messages) == 0 || v.Messages[0].Index >= 0 {
		return
	}
	first := v.Messages[0]
	red, ok := w.state.Reduction(first.By)
	if !ok || red.Summary == nil || first.Msg.Role != furl.RoleUser {
		return
	}
	if len(v.Messages) > 1 && v.Messages[1].Index < 0 && v.Messages[1].By == first.By {
		return
	}
	shown := false
	for i := range w.state.Len() {
		seq, _ := w.state.Message(i)
		by, hidden := w.hidden[seq]
		if shown = shown || !hidden; hidden && shown == (by == first.By) {
			return // it is not alone before the first message that is shown, or hides something after it
		}
	}
	w.summary, w.before = first.By, true
}

// covered counts the reductions in effect of which nothing is shown.
func (w *rooWriter) covered() (n int) {
	for red := range w.state.Reductions() {
		if !red.Undone && !w.used[red.Seq] && !w.opts.View {
			n++
		}
	}
	return n
}

// view writes what the model sees, without tags.
func (w *rooWriter) view(v *furl.View) error {
	timeOf := func(i int) (at time.Time) {
		if n := v.Messages[i].Index; n >= 0 && n < v.State.Len() {
			at = v.State.Time(n)
		}
		return at
	}
	for i := range v.Messages { // marks before it have times before its own
		if at := timeOf(i); !at.IsZero() {
			w.clock = clock(max(at.UnixMilli()-int64(2*i)-1, 0))
			break
		}
	}
	for i := range v.Messages {
		sh, at := &v.Messages[i], timeOf(i)
		if sh.Index >= 0 {
			w.done.Messages++
		}
		if sh.Msg.Role == furl.RoleAssistant {
			w.request(nil, at)
		}
		if err := w.message(*sh, at, nil); err != nil {
			return err
		}
		if err := w.progress(i+1, len(v.Messages)); err != nil {
			return err
		}
	}
	return nil
}

// walk writes the history and the chat.
func (w *rooWriter) walk(v *furl.View) error {
	next, total := 0, len(v.Messages)
	marks := func() error {
		for ; next < total && v.Messages[next].Index < 0; next++ {
			if err := w.mark(&v.Messages[next]); err != nil {
				return err
			}
		}
		return nil
	}
	var ex *furl.Exchange
	for _, r := range w.s.Log.Path(w.state.Head()) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			ex = b
		case *furl.Reduction:
			w.event(r.Seq, r.At)
		case *furl.Takeover:
			for seq := range b.Taken() {
				w.event(seq, r.At)
			}
		case *furl.Message:
			if b.Role == furl.RoleAssistant {
				w.request(ex, r.At)
				ex = nil
			}
			by, hidden := w.hidden[r.Seq]
			if hidden {
				if by != 0 {
					if err := w.original(r.Seq, b, r.At, by); err != nil {
						return err
					}
				}
				continue
			}
			if err := marks(); err != nil {
				return err
			}
			if next == total || v.Messages[next].Seq != r.Seq {
				w.note("messages of which nothing is shown were not exported")
				continue
			}
			for ; next < total && v.Messages[next].Index >= 0 && v.Messages[next].Seq == r.Seq; next++ {
				if err := w.shown(&v.Messages[next], r.At); err != nil {
					return err
				}
			}
			w.done.Messages++
			if err := w.progress(next, total); err != nil {
				return err
			}
		}
	}
	if err := marks(); err != nil {
		return err
	}
	for red := range w.state.Reductions() {
		w.event(red.Seq, red.At)
	}
	return nil
}

// original writes a hidden message.
func (w *rooWriter) original(seq furl.Seq, m *furl.Message, at time.Time, by furl.Seq) error {
	w.done.Messages++
	return w.message(furl.Shown{Seq: seq, Msg: m, Blocks: whole(m)}, at, func(o jsonObject) jsonObject { return w.parent(o, by) })
}

// parent tags a message as hidden by a reduction.
func (w *rooWriter) parent(o jsonObject, by furl.Seq) jsonObject {
	if w.before {
		o = o.str("condenseParent", w.id(w.summary))
	}
	if by != w.summary {
		o = o.str("truncationParent", w.id(by))
	}
	return o
}

func (w *rooWriter) id(by furl.Seq) string { return w.named(fmt.Sprintf("reduction %d", by)) }

// shown writes a message of the view, and before it the original if it is
// shown changed.
func (w *rooWriter) shown(sh *furl.Shown, at time.Time) error {
	if sh.AsRecorded() {
		return w.message(*sh, at, nil)
	}
	// A mark that hides a part of the message has precedence over a changed text.
	by, mark := furl.Seq(0), furl.Seq(0)
	for i := range sh.Msg.Blocks {
		n := w.state.ShownBy(furl.Pos{Msg: sh.Seq, Block: i})
		by = max(by, n)
		if w.marks[n] {
			mark = n
		}
	}
	if by = cmp.Or(mark, by); by == 0 {
		return w.message(*sh, at, nil)
	}
	w.used[by] = true
	err := w.message(furl.Shown{Seq: sh.Seq, Msg: sh.Msg, Blocks: whole(sh.Msg)}, at, func(o jsonObject) jsonObject { return o.str("truncationParent", w.id(by)) })
	if err != nil {
		return err
	}
	return w.element(*sh, int64(w.clock), func(o jsonObject) jsonObject {
		return o.raw("isTruncationMarker", []byte("true")).str("truncationId", w.id(by)).raw(rooCopy, []byte("true"))
	})
}

// mark writes a message that a reduction shows.
func (w *rooWriter) mark(sh *furl.Shown) error {
	summary := sh.By == w.summary && w.summary != 0
	w.before = w.before && !summary
	ts := max(int64(w.clock), 1)
	return w.element(*sh, ts, func(o jsonObject) jsonObject {
		if summary {
			return o.raw("isSummary", []byte("true")).str("condenseId", w.id(sh.By))
		}
		return o.raw("isTruncationMarker", []byte("true")).str("truncationId", w.id(sh.By))
	})
}

// message writes a recorded message to the history and to the chat.
func (w *rooWriter) message(sh furl.Shown, at time.Time, tag func(jsonObject) jsonObject) error {
	ts := w.clock.tick(at)
	w.say(&sh, ts)
	w.had.shown(&sh)
	return w.element(sh, ts, tag)
}

// element writes one element of the history.
func (w *rooWriter) element(sh furl.Shown, ts int64, tag func(jsonObject) jsonObject) error {
	raws, err := anthropic.Codec.EncodeMessage(sh)
	if err != nil {
		return fmt.Errorf("message %d: %w", sh.Seq, err)
	}
	for _, raw := range raws {
		m, err := anthropic.Codec.DecodeMessage(raw)
		if err != nil {
			return fmt.Errorf("message %d: %w", sh.Seq, err)
		}
		w.got.message(m)
		role := "user"
		if m.Role == furl.RoleAssistant {
			role = "assistant"
		}
		o := jsonObject{}.str("role", role).raw("content", withoutCacheControl(contentOf(raw))).raw("ts", fmt.Append(nil, ts))
		if tag != nil {
			o = tag(o)
		}
		if w.written++; w.written > 1 {
			w.put([]byte{','})
		}
		w.put([]byte{'\n'})
		w.put(o.done())
	}
	return nil
}

// chatLine adds an element to the chat.
func (w *rooWriter) chatLine(ts int64, what, text string, more func(jsonObject) jsonObject) {
	o := jsonObject{}.raw("ts", fmt.Append(nil, ts)).str("type", "say").str("say", what).str("text", text)
	if more != nil {
		o = more(o)
	}
	c := byte(',')
	if len(w.chat) == 0 {
		c = '['
	}
	w.chat = append(append(append(w.chat, c), '\n'), o.done()...)
}

// say adds a message to the chat: its texts and the names of its calls. The
// first is the task.
func (w *rooWriter) say(sh *furl.Shown, ts int64) {
	var texts []string
	for i := range sh.Blocks {
		switch b := &sh.Blocks[i]; b.Block.Kind {
		case furl.KindText:
			if text := rooWords(b.Words()); text != "" {
				texts = append(texts, text)
			}
		case furl.KindCall:
			texts = append(texts, "Tool: "+b.Block.Name)
		}
	}
	text, what := strings.Join(texts, "\n\n"), "text"
	if len(w.chat) == 0 {
		if w.s.Title != "" && headline(text) != w.s.Title {
			text = w.s.Title
		}
		w.task = text
	} else if sh.Msg.Role != furl.RoleAssistant {
		what = "user_feedback"
	}
	if text != "" || len(w.chat) == 0 {
		w.chatLine(ts, what, text, nil)
	}
}

// rooWords returns a text without what Roo Code adds to it for the model.
func rooWords(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "<environment_details>") {
		return ""
	}
	for _, tag := range []string{"task", "user_message"} {
		if in, ok := strings.CutPrefix(text, "<"+tag+">"); ok {
			text = strings.TrimSpace(strings.TrimSuffix(in, "</"+tag+">"))
		}
	}
	return text
}

// request adds a request to the chat, with its usage.
func (w *rooWriter) request(ex *furl.Exchange, at time.Time) {
	var u furl.Usage
	if ex != nil {
		u = ex.Usage
	}
	w.usage.Input += u.Input
	w.usage.Output += u.Output
	w.usage.CacheRead += u.CacheRead
	w.usage.CacheWrite += u.CacheWrite + u.CacheWrite1h
	if len(w.chat) == 0 {
		return // the chat starts with the task
	}
	if !at.IsZero() {
		at = at.Add(-time.Millisecond)
	}
	w.chatLine(w.clock.tick(at), "api_req_started", string(rooUsage(jsonObject{}.str("request", ""), u).raw("cost", []byte("0")).done()), nil)
}

// rooUsage adds counts of tokens as Roo Code counts them: the input with the
// cache.
func rooUsage(o jsonObject, u furl.Usage) jsonObject {
	write := u.CacheWrite + u.CacheWrite1h
	return o.raw("tokensIn", fmt.Append(nil, u.Input+write+u.CacheRead)).raw("tokensOut", fmt.Append(nil, u.Output)).
		raw("cacheWrites", fmt.Append(nil, write)).raw("cacheReads", fmt.Append(nil, u.CacheRead))
}

// event reports a reduction in the chat, once. Roo Code removes its marker or
// summary when the chat is rewound to before it.
func (w *rooWriter) event(seq furl.Seq, at time.Time) {
	if !w.used[seq] {
		return
	}
	red, ok := w.state.Reduction(seq)
	if !ok {
		return
	}
	w.used[seq] = false
	hidden := 0
	for _, by := range w.hidden {
		if by == seq {
			hidden++
		}
	}
	sizes := func(o jsonObject) jsonObject {
		return o.raw("prevContextTokens", fmt.Append(nil, red.Before)).raw("newContextTokens", fmt.Append(nil, red.After))
	}
	if seq == w.summary {
		w.chatLine(w.clock.tick(at), "condense_context", "", func(o jsonObject) jsonObject {
			return o.raw("contextCondense", sizes(jsonObject{}.str("condenseId", w.id(seq)).str("summary", red.Summary.Text).raw("cost", []byte("0"))).done())
		})
		return
	}
	w.chatLine(w.clock.tick(at), "sliding_window_truncation", "", func(o jsonObject) jsonObject {
		return o.raw("contextTruncation", sizes(jsonObject{}.str("truncationId", w.id(seq)).raw("messagesRemoved", fmt.Append(nil, hidden))).done())
	})
}

// rest writes the other files of the task.
func (w *rooWriter) rest() error {
	if w.opts.beside == nil {
		w.note("only the history was exported: write to a folder to export a task that Roo Code lists")
		return nil
	}
	if err := w.w.Flush(); err != nil {
		return err
	}
	if len(w.chat) == 0 {
		w.chat = []byte{'['}
	}
	if err := w.opts.beside(rooChatFile, append(w.chat, "\n]\n"...)); err != nil {
		return err
	}
	item := jsonObject{}.str("id", rooTaskID(w.s)).raw("number", []byte("1")).raw("ts", fmt.Append(nil, w.clock)).str("task", w.task)
	item = rooUsage(item, w.usage).raw("totalCost", []byte("0")).raw("size", fmt.Append(nil, w.done.Bytes))
	if w.s.project() != "" {
		item = item.str("workspace", w.s.project())
	}
	return w.opts.beside(rooItemFile, append(item.done(), '\n'))
}
