package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// row is one line of the transcript: a message, or the marker of a reduction.
type row struct {
	Seq   furl.Seq // of the message; 0 for text that only the model sees
	Index int      // of the message in the state or the view
	// Marker is the reduction that a marker describes, nil for a message.
	Marker *policy.Reduced
	height int // estimated, in pixels
}

// The heights of parts of rows, in pixels, as web.css draws them in a wide window.
const (
	rowHeight    = 35 // a row without its parts
	foldedHeight = 31
	lineHeight   = 22
	lineTokens   = 20
	foldedLines  = folded / 80 // after which a text is cut
)

// heightOf estimates the height of a block in the transcript.
func heightOf(msg *furl.Message, b *furl.Block, tokens int) int {
	if p := (part{Kind: kindOf(msg, b)}); p.Folded() {
		return foldedHeight
	}
	return 8 + lineHeight*(1+min(tokens/lineTokens, foldedLines))
}

// rows lists the transcript of a moment. With modelOnly it has what the model sees, else
// all messages of the path with the markers of reductions between them.
func (m *moment) rows(modelOnly bool) []row {
	if modelOnly {
		list := make([]row, len(m.view.Messages))
		for i := range m.view.Messages {
			sh := &m.view.Messages[i]
			list[i] = row{Seq: sh.Seq, Index: i, height: rowHeight}
			for j := range sh.Blocks {
				list[i].height += heightOf(sh.Msg, sh.Blocks[j].Block, sh.Blocks[j].Tokens)
			}
		}
		return list
	}
	reductions := policy.Reductions(m.state)
	list := make([]row, 0, m.state.Len()+len(reductions))
	at := 0
	for i := range m.state.Len() {
		for ; at < len(reductions) && reductions[at].Position <= i; at++ {
			list = append(list, row{Marker: &reductions[at], height: rowHeight})
		}
		seq, msg := m.state.Message(i)
		height := rowHeight
		for j := range msg.Blocks {
			height += heightOf(msg, &msg.Blocks[j], msg.Blocks[j].Tokens)
		}
		list = append(list, row{Seq: seq, Index: i, height: height})
	}
	for ; at < len(reductions); at++ {
		list = append(list, row{Marker: &reductions[at], height: rowHeight})
	}
	return list
}

// find returns the index of the row of a record, or of the last one before it.
func find(rows []row, seq furl.Seq) int {
	last := 0
	for i := range rows {
		at := rows[i].Seq
		if rows[i].Marker != nil {
			at = rows[i].Marker.Seq
		}
		if at == seq {
			return i
		}
		if at != 0 && at < seq {
			last = i
		}
	}
	return last
}

// chunkRows is the number of rows that a browser loads at a time. With fewer, there are too
// many chunks to observe.
const chunkRows = 20

// chunk is a run of rows, with their contents if the page has them already.
type chunk struct {
	Number int
	Height int // estimated, in pixels
	Rows   []any
}

// chunks divides rows. Those within near rows of the row at have contents.
func (m *moment) chunks(rows []row, modelOnly bool, at, near int) []chunk {
	list := make([]chunk, 0, len(rows)/chunkRows+1)
	for lo := 0; lo < len(rows); lo += chunkRows {
		hi := min(lo+chunkRows, len(rows))
		c := chunk{Number: lo / chunkRows}
		for i := lo; i < hi; i++ {
			c.Height += rows[i].height
		}
		if hi > at-near && lo <= at+near {
			c.Rows = m.render(rows[lo:hi], modelOnly)
		}
		list = append(list, c)
	}
	return list
}

// render returns the contents of rows, for the template "rows".
func (m *moment) render(rows []row, modelOnly bool) []any {
	list := make([]any, len(rows))
	m.room = room{}
	for i := range rows {
		switch r := &rows[i]; {
		case r.Marker != nil:
			list[i] = m.marker(r.Marker)
		case modelOnly:
			list[i] = m.shown(&m.view.Messages[r.Index])
		default:
			list[i] = m.message(r.Index)
		}
	}
	return list
}

// message is a message of the transcript as the page shows it.
type message struct {
	Key    string // in addresses: the record, or "" for a marker of the model's view
	Role   string
	Time   time.Time
	Hidden bool // all of it is hidden from the model
	Parts  []part
	More   int // how many more blocks it has
}

// Bounds on what a chunk of rows shows. A message can have thousands of blocks.
const (
	maxChunkText  = 512 << 10 // bytes of text; later parts have their text loaded when they are opened
	maxChunkParts = 2000
	maxParts      = 300 // of one message
	minParts      = 20  // of one message, even if the chunk has maxChunkParts
)

// room is what a chunk of rows has so far.
type room struct{ text, parts int }

// allows reports whether a message with that many parts may have another one.
func (r *room) allows(parts int) bool {
	return parts < minParts || parts < maxParts && r.parts < maxChunkParts
}

// add counts a part, and makes it brief if the chunk has too much text already.
func (r *room) add(p *part) {
	r.parts++
	size := min(len(p.Text()), folded)
	if p.Folded() && p.Lazy() {
		return
	}
	if r.text += size; r.text > maxChunkText {
		p.brief = true
	}
}

// message returns message i of the path.
func (m *moment) message(i int) *message {
	seq, msg := m.state.Message(i)
	out := &message{Key: seqKey(seq), Role: role(msg), Time: m.state.Time(i), Hidden: len(msg.Blocks) > 0}
	for j := range msg.Blocks {
		pos := furl.Pos{Msg: seq, Block: j}
		b := &msg.Blocks[j]
		by := m.state.ShownBy(pos)
		if by == 0 {
			out.Hidden = false
		}
		if !m.room.allows(len(out.Parts)) {
			out.More++
			continue
		}
		p := m.part(pos, msg, b)
		p.By, p.Hidden = by, by != 0
		m.room.add(&p)
		out.Parts = append(out.Parts, p)
	}
	return out
}

// shown returns a message of the model's view.
func (m *moment) shown(sh *furl.Shown) *message {
	out := &message{Role: role(sh.Msg)}
	if sh.Index >= 0 {
		out.Key, out.Time = seqKey(sh.Seq), m.state.Time(sh.Index)
	} else {
		out.Role = "marker"
	}
	for j := range sh.Blocks {
		sb := &sh.Blocks[j]
		if !m.room.allows(len(out.Parts)) {
			out.More++
			continue
		}
		p := m.part(sb.Pos, sh.Msg, sb.Block)
		p.By, p.Tokens = cmp.Or(sb.By, sh.By), m.tokens(sb.Tokens, sb.Block, false)
		switch {
		case sh.Index < 0:
			p.Kind = kindSummary
		case sb.By != 0:
			p.Kind, p.placeholder = kindPlaceholder, true
			p.text = sb.Text
		}
		m.room.add(&p)
		out.Parts = append(out.Parts, p)
	}
	return out
}

// role names the sender of a message for a person.
func role(msg *furl.Message) string {
	if msg.Role == furl.RoleAssistant || len(msg.Blocks) == 0 {
		return string(msg.Role)
	}
	if !slices.ContainsFunc(msg.Blocks, func(b furl.Block) bool { return !b.IsResult() }) {
		return "result"
	}
	return string(msg.Role)
}
