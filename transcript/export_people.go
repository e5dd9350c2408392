package transcript

import (
	"cmp"
	"io"

	"github.com/furlhq/furl/internal/readable"
)

// Exports for people.

func (x *exporter) writeMarkdown() error { return x.writeReadable((*readable.Session).Markdown) }
func (x *exporter) writeHTML() error     { return x.writeReadable((*readable.Session).HTML) }

func (x *exporter) writeReadable(write func(*readable.Session, io.Writer, readable.Step) error) error {
	r := &readable.Session{
		ID: x.s.ID, Title: x.s.Title, Model: x.s.Model, Preamble: x.s.Preamble, Log: x.s.Log, State: x.state, Structure: x.opts.Structure,
	}
	x.done.Messages = x.state.Len()
	if x.opts.View {
		r.View = cmp.Or(x.opts.Shown, x.state.View(x.opts.Model))
		x.done.Messages = 0
		for i := range r.View.Messages {
			if r.View.Messages[i].Index >= 0 {
				x.done.Messages++
			}
		}
	}
	images := 0
	for i := range x.state.Len() {
		_, m := x.state.Message(i)
		for j := range m.Blocks {
			images += len(m.Blocks[j].Media)
		}
	}
	if images > 0 && !x.opts.Structure {
		x.note("images and documents are replaced by their names")
	}
	return write(r, x.w, x.progress)
}
