package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
)

// The session files of agents that use several providers have a form of their own. They are
// written from turns.

// turn is a message of the user, or a reply of the model with the results of its calls.
type turn struct {
	reply  bool
	at     time.Time
	model  string
	usage  furl.Usage
	pieces []piece        // texts, images and calls
	result map[int]*piece // by the index of a call
}

// turns converts what is exported. It leaves out instructions, which the other agent has itself,
// and thinking. Each call has an id that all providers accept and a result: where there is none,
// one that says so.
func (x *exporter) turns(agent string) ([]*turn, error) {
	v, err := x.view()
	if err != nil {
		return nil, err
	}
	t := &turner{exporter: x, ids: exportedIDs(furl.FormatAnthropic), calls: map[string]call{}, replies: x.replies()}
	var had, got tally
	for i := range v.Messages {
		sh := &v.Messages[i]
		if sh.Index >= 0 {
			x.done.Messages++
		}
		if isInstruction(sh.Msg.Role) || findsTools(sh.Msg) {
			t.instructions++
			continue
		}
		raws, err := anthropic.Codec.EncodeMessage(*sh)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", sh.Seq, err)
		}
		had.shown(sh)
		for _, raw := range raws {
			m, err := anthropic.Codec.DecodeMessage(raw)
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", sh.Seq, err)
			}
			t.message(sh, m, &got)
		}
		if err := x.progress(i+1, len(v.Messages)); err != nil {
			return nil, err
		}
	}
	t.finish(agent, had, got)
	return t.list, nil
}

func isInstruction(role furl.Role) bool {
	return role == furl.RoleSystem || role == furl.RoleDeveloper
}

// findsTools reports whether a message is a search for tools or its result, which defines them: an
// item of Responses. As texts, they would be words of the model and of the user.
func findsTools(m *furl.Message) bool {
	return len(m.Blocks) == 1 && m.Blocks[0].Kind == furl.KindOpaque &&
		(m.Blocks[0].Name == "tool_search_call" || m.Blocks[0].Name == "tool_search_output")
}

// replies returns the exchange of each reply on the path, by the record of its message.
func (x *exporter) replies() map[furl.Seq]*furl.Exchange {
	list := make(map[furl.Seq]*furl.Exchange)
	var ex *furl.Exchange
	for _, r := range x.s.Log.Path(x.state.Head()) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			ex = b
		case *furl.Message:
			if b.Role == furl.RoleAssistant && ex != nil {
				list[r.Seq], ex = ex, nil
			}
		}
	}
	return list
}

// turner collects turns.
type turner struct {
	*exporter
	list    []*turn
	ids     *renderer
	calls   map[string]call // by the id in the file
	replies map[furl.Seq]*furl.Exchange
	at      time.Time
	fresh   bool // nothing of the current message was added yet

	instructions, changed, renamed int
}

// call is a place in turns.
type call struct {
	of *turn
	i  int
}

// message adds a message in Anthropic's format.
func (t *turner) message(sh *furl.Shown, m *furl.Message, got *tally) {
	if sh.Index >= 0 && sh.Index < t.state.Len() {
		if at := t.state.Time(sh.Index); !at.IsZero() {
			t.at = at
		}
	}
	reply := m.Role == furl.RoleAssistant
	t.fresh = true
	for j := range m.Blocks {
		b := &m.Blocks[j]
		var c claudeBlock
		if b.End == 0 || lenient(m.Raw[b.Start:b.End], &c) != nil {
			c = claudeBlock{Type: "text", Text: b.Text} // content that is a string
		}
		switch {
		case b.Kind == furl.KindThinking:
			continue
		case b.Kind == furl.KindCall:
			t.call(sh, b, c.Input)
		case b.Kind == furl.KindResult && t.result(b, &c):
		case b.Kind == furl.KindImage && len(c.image()) > 0:
			t.add(reply, sh, piece{kind: furl.KindImage, images: c.image()})
		default:
			text := cmp.Or(b.Text, mediaWords(b))
			if strings.TrimSpace(text) == "" {
				continue
			}
			t.add(reply, sh, piece{kind: furl.KindText, text: text})
			if b.Kind != furl.KindText {
				continue // reduced to text
			}
		}
		kept := *b
		if b.Kind == furl.KindResult {
			kept.Media = kept.Media[:min(len(kept.Media), len(resultImages(c.Content)))]
		}
		got.block(&kept)
	}
}

// mediaWords names what a block contains that is not text.
func mediaWords(b *furl.Block) string {
	if b.Kind == furl.KindImage || b.Kind == furl.KindDocument {
		return "[" + b.Kind.String() + "]"
	}
	return ""
}

// add adds a piece to the current turn, or to a new one.
func (t *turner) add(reply bool, sh *furl.Shown, p piece) *turn {
	var last *turn
	if n := len(t.list); n > 0 {
		last = t.list[n-1]
	}
	ex := t.replies[sh.Seq]
	if sh.Index < 0 {
		ex = nil
	}
	// A reply may be several messages. An answered call ends it: what the model says next is
	// another one.
	if last == nil || last.reply != reply || reply && len(last.result) > 0 || !reply && t.fresh {
		last = &turn{reply: reply, at: t.at, model: t.s.Model, result: map[int]*piece{}}
		t.list = append(t.list, last)
	}
	if reply && ex != nil {
		last.model, last.usage = cmp.Or(ex.Model, last.model), ex.Usage
	}
	t.fresh = false
	last.pieces = append(last.pieces, p)
	return last
}

// call adds a call.
func (t *turner) call(sh *furl.Shown, b *furl.Block, input json.RawMessage) {
	id, name := t.ids.callID(b.ID), toolName(b.Name)
	if id != b.ID {
		t.changed++
	}
	if name != b.Name {
		t.renamed++
	}
	of := t.add(true, sh, piece{kind: furl.KindCall, id: id, name: name, args: callObject(input)})
	t.calls[id] = call{of, len(of.pieces) - 1}
}

// result adds a result to its call. It reports whether there is such a call without a result.
func (t *turner) result(b *furl.Block, c *claudeBlock) bool {
	id, known := t.ids.latest[b.ID]
	at, open := t.calls[id]
	if !known || !open {
		return false
	}
	delete(t.calls, id)
	at.of.result[at.i] = &piece{kind: furl.KindResult, id: id, name: at.of.pieces[at.i].name, text: b.Text, failed: b.Error, images: resultImages(c.Content)}
	return true
}

// resultImages returns the images in the content of a result.
func resultImages(content json.RawMessage) (images []picture) {
	if rawjson.NewReader(content).Kind() != '[' {
		return nil
	}
	for _, b := range claudeBlocks(content) {
		if b.Type == "image" {
			images = append(images, b.image()...)
		}
	}
	return images
}

// finish answers the calls without a result, and reports what was changed.
func (t *turner) finish(agent string, had, got tally) {
	for id, at := range t.calls {
		at.of.result[at.i] = &piece{kind: furl.KindResult, id: id, name: at.of.pieces[at.i].name, text: noResult, failed: true, made: true}
	}
	t.handedOver(agent, t.instructions, t.changed, t.renamed, len(t.calls))
	t.compareContent(furl.FormatAnthropic, had, got)
	if n := t.hiding(); n > 0 && !t.opts.View {
		t.note("%s not exported: the file contains the hidden messages", plural(n, "reduction"))
	}
}

// handedOver notes what a session file for another agent has changed.
func (x *exporter) handedOver(agent string, instructions, ids, names, open int) {
	if instructions > 0 || len(x.s.Preamble) > 0 {
		x.note("instructions and tools not exported: %s supplies its own", agent)
	}
	x.changedCalls("providers require", ids, names)
	if open > 0 {
		x.note("%s without a result: a result that says so was added", plural(open, "call"))
	}
}

// toolName returns a name that providers accept for a tool: at most 64 letters, digits, _ and -.
func toolName(name string) string {
	name = strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, name)
	return cmp.Or(name[:min(len(name), 64)], "tool")
}

// clock gives the elements of a file growing times, in Unix milliseconds: agents sort by them, and
// Roo Code finds messages by them.
type clock int64

// tick returns the time of the next element: at, or later than the one before.
func (c *clock) tick(at time.Time) int64 {
	*c++
	if !at.IsZero() {
		*c = max(*c, clock(at.UnixMilli()))
	}
	return int64(*c)
}

// stamp is a time as agents write it.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
