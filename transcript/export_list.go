package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// These exports write the body of a request to a provider: the messages as
// they would be sent, one a line, preceded by what is known of the preamble.
// Messages in the provider's own format keep their bytes.

// view returns what to export: what the model sees, or everything.
func (x *exporter) view() (*furl.View, error) {
	switch {
	case x.opts.Shown != nil:
		return x.opts.Shown, nil
	case x.opts.View:
		return x.state.View(x.opts.Model), nil
	}
	all := new(furl.State)
	for _, r := range x.s.Log.Path(x.state.Head()) {
		if _, ok := r.Body.(*furl.Message); ok {
			if err := all.Apply(r); err != nil {
				return nil, err
			}
		}
	}
	return all.View(furl.Model{}), nil
}

func (x *exporter) writeAnthropic() error {
	return x.writeList(furl.FormatAnthropic, "messages", anthropic.EncodeMessages)
}

func (x *exporter) writeChat() error {
	return x.writeList(furl.FormatChat, "messages", openai.EncodeChat)
}

func (x *exporter) writeResponses() error {
	return x.writeList(furl.FormatResponses, "input", openai.EncodeResponses)
}

// writeList writes a request body with the list of messages in field.
func (x *exporter) writeList(wire furl.Format, field string, encode func(*furl.View) ([]json.RawMessage, error)) error {
	v, err := x.view()
	if err != nil {
		return err
	}
	list, err := encode(v)
	if err != nil {
		return err
	}
	if wire == furl.FormatAnthropic {
		c := x.callNames(v)
		for i, raw := range list {
			list[i] = c.message(raw)
		}
		c.notes()
	}
	head, first := x.preamble(wire)
	if first != nil {
		list = append([]json.RawMessage{first}, list...)
	}
	x.put(head)
	x.put(rawjson.AppendString(nil, field))
	x.put([]byte(`:[`))
	var got tally
	for i, raw := range list {
		if i > 0 {
			x.put([]byte{','})
		}
		x.put([]byte{'\n'})
		x.put(raw)
		if m, err := codecOf(wire).DecodeMessage(raw); err == nil {
			got.message(m)
		}
		if err := x.progress(i+1, len(list)); err != nil {
			return err
		}
	}
	x.put([]byte("\n]}\n"))
	x.lost(wire, v, got)
	return nil
}

// preamble returns the fields of a body before its list of messages. first is
// the first message of the list in formats that put the instructions there.
func (x *exporter) preamble(wire furl.Format) (head []byte, first json.RawMessage) {
	var texts []string
	var tools []byte
	left := 0
	for i := range x.s.Preamble {
		b := &x.s.Preamble[i]
		switch {
		case b.Kind == furl.KindText:
			texts = append(texts, b.Text)
		case wire == x.s.Wire && rawjson.Check([]byte(b.Text)) == nil:
			tools = append(append(tools, ','), b.Text...)
		default:
			left++
		}
	}
	if left > 0 {
		x.note("the definitions of %s were not exported: they are in another format", plural(left, "tool"))
	}
	out := []byte{'{'}
	field := func(name string, value []byte) {
		out = append(append(rawjson.AppendString(out, name), ':'), append(value, ',')...)
	}
	if x.s.Model != "" && wire == x.s.Wire {
		field("model", rawjson.AppendString(nil, x.s.Model))
	}
	system := strings.Join(texts, "\n\n")
	switch wire {
	case furl.FormatAnthropic:
		field("max_tokens", []byte("8192")) // required by the API
		var list []byte
		for _, text := range texts {
			if strings.TrimSpace(text) != "" { // the API refuses blank text
				list = append(rawjson.AppendString(append(list, `,{"type":"text","text":`...), text), '}')
			}
		}
		if len(list) > 0 {
			list[0] = '['
			field("system", append(list, ']'))
		}
	case furl.FormatResponses:
		if system != "" {
			field("instructions", rawjson.AppendString(nil, system))
		}
	default:
		if system != "" {
			first = append(rawjson.AppendString([]byte(`{"role":"system","content":`), system), '}')
		}
	}
	if len(tools) > 0 {
		tools[0] = '['
		field("tools", append(tools, ']'))
	}
	return out, first
}

// tally counts the parts of messages that formats may lose.
type tally struct {
	thinking, opaque, images, documents, failed, instructions int
}

func (n *tally) message(m *furl.Message) {
	if m.Role == furl.RoleSystem || m.Role == furl.RoleDeveloper {
		n.instructions++
	}
	for i := range m.Blocks {
		n.block(&m.Blocks[i])
	}
}

func (n *tally) block(b *furl.Block) {
	switch b.Kind {
	case furl.KindThinking:
		n.thinking++
	case furl.KindOpaque:
		n.opaque++
	case furl.KindResult:
		if b.Error {
			n.failed++
		}
	}
	for i := range b.Media {
		if b.Media[i].Kind == furl.KindDocument {
			n.documents++
		} else {
			n.images++
		}
	}
}

func (n *tally) shown(sh *furl.Shown) {
	if sh.Msg.Role == furl.RoleSystem || sh.Msg.Role == furl.RoleDeveloper {
		n.instructions++
	}
	for i := range sh.Blocks {
		b := sh.Blocks[i].Block
		if sh.Blocks[i].By != 0 {
			b = &furl.Block{Kind: b.Kind, Error: b.Error} // replaced by a text
		}
		n.block(b)
	}
}

// lost notes what was shown but could not be written.
func (x *exporter) lost(wire furl.Format, v *furl.View, got tally) {
	var had tally
	for i := range v.Messages {
		if v.Messages[i].Index >= 0 {
			x.done.Messages++
		}
		had.shown(&v.Messages[i])
	}
	x.compare(wire, had, got)
	if n := x.hiding(); n > 0 && !x.opts.View {
		x.note("%s not exported: the list contains the hidden messages", plural(n, "reduction"))
	}
}

// compare notes the parts that messages had and the output lacks, and open calls.
func (x *exporter) compare(wire furl.Format, had, got tally) {
	x.compareContent(wire, had, got)
	if n := len(x.state.OpenCalls()); n > 0 {
		x.note("%s at the end without a result: providers refuse the list until a result is added", plural(n, "call"))
	}
}

// compareContent notes the parts that messages had and the output lacks.
func (x *exporter) compareContent(wire furl.Format, had, got tally) {
	note := func(had, got int, what, why string) {
		if had > got {
			x.note("%s %s", plural(had-got, what), why)
		}
	}
	note(had.thinking, got.thinking, "thinking block", "not exported: a provider's signature is valid for that provider only")
	note(had.opaque, got.opaque, "block", "of a provider-specific kind reduced to text")
	note(had.images, got.images, "image", "replaced by a name")
	note(had.documents, got.documents, "document", "replaced by a name")
	note(had.failed, got.failed, "failed result", "exported as a plain result: the format has no field for failures")
	if wire == furl.FormatAnthropic {
		note(had.instructions, got.instructions, "instruction", "among the messages exported as user text")
	}
}

// hiding counts the reductions in effect at the end of the path.
func (x *exporter) hiding() (n int) {
	for red := range x.state.Reductions() {
		if !red.Undone {
			n++
		}
	}
	return n
}

// named returns a UUID derived from the session and a name; equal inputs give
// equal UUIDs.
func (x *exporter) named(name string) string {
	d := furl.DigestOf(fmt.Appendf(nil, "%d %s %s", len(x.s.ID), x.s.ID, name))
	d[6] = d[6]&0x0f | 0x80 // version 8: custom
	d[8] = d[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", d[0:4], d[4:6], d[6:8], d[8:10], d[10:16])
}
