// Package lost lists what a compaction has lost: what the messages that it replaced
// contain, and what neither its summary nor any message beside it contains. No model is
// asked; texts are compared verbatim.
//
// A compaction is a reduction that shows a summary in place of messages, by furl, the
// agent or the provider. What it replaced are the blocks that the model saw as recorded
// before it and not after it. So what an earlier compaction has hidden is not counted
// again. What remains is the view of the next request: the summary, the messages that
// stay, and those that follow before the next reply.
//
// Thinking is not compared. Instructions outside of the messages are not read: what they
// contain counts as lost.
package lost

import (
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/toolscript"
)

// Shown is the number of items of a kind that a list has.
const Shown = 20

// Compaction is what one compaction has lost.
type Compaction struct {
	Number    int      `json:"compaction"` // on the path, from 1
	Reduction furl.Seq `json:"reduction_id"`
	// By is who made it: furl, client, upstream, person or import.
	By   string    `json:"by"`
	Time time.Time `json:"timestamp,omitzero"`
	// Messages is how many messages it hides at least a block of.
	Messages int `json:"messages"`
	// Unreadable says that the summary is encrypted or not in the recording, so that the
	// lists may have what it contains.
	Unreadable bool `json:"summary_unreadable,omitempty"`
	Undone     bool `json:"undone,omitempty"`
	// Replies is the number of later replies on the path.
	Replies int `json:"later_replies"`
	// Answers are the user's answers to questions of the agent, Sentences what else the user
	// wrote.
	Answers     List `json:"answers"`
	Sentences   List `json:"sentences"`
	Identifiers List `json:"identifiers"`
}

// Any reports whether it lost anything.
func (c *Compaction) Any() bool { return c.Answers.Total+c.Sentences.Total+c.Identifiers.Total > 0 }

// List is what was lost of one kind.
type List struct {
	Total int `json:"total"`
	Used  int `json:"used"` // how many of them later replies contain
	// Items are the first Shown of them: those that the most later replies contain.
	Items []Item `json:"items"`
}

// Item is a text that a compaction has lost.
type Item struct {
	Text string `json:"text"`
	// Question is what the agent asked, if the text is an answer.
	Question string `json:"question,omitempty"`
	// Pos is the newest block that contains the text, of those that the compaction hides.
	// Handle names it.
	Pos    furl.Pos `json:"-"`
	Handle string   `json:"handle"`
	// Replies is the number of later replies that contain the text.
	Replies int `json:"later_replies"`
	// Blocks is the number of hidden blocks that contain it.
	Blocks int `json:"blocks"`

	weight int // orders items with the same number of replies
	last   furl.Pos
	rooted bool // at Pos, the path begins with a slash, which no name has
	isName bool // it is not only words that are joined by hyphens, as in prose
}

// Of returns the compactions on a path, given its records from the root on, in order.
func Of(path []furl.Record) ([]*Compaction, error) {
	w := walk{later: laterReplies(path), state: new(furl.State)}
	for _, r := range path {
		if err := w.record(r); err != nil {
			return nil, err
		}
	}
	w.finish()
	for _, c := range w.list {
		applied, _ := w.state.Reduction(c.Reduction)
		c.Undone = applied.Undone
	}
	return w.list, nil
}

// walk goes along a path.
type walk struct {
	state   *furl.State
	later   *replies
	replied int // replies so far
	answers bool
	list    []*Compaction
	open    *Compaction // whose next request has not been reached
	hidden  []furl.Pos  // by it, in order
	known   int         // reductions on the path before a takeover
}

// record processes the next record.
func (w *walk) record(r furl.Record) error {
	switch b := r.Body.(type) {
	case *furl.Message:
		if b.Role == furl.RoleAssistant {
			w.finish()
			if !w.answers {
				w.replied++
			}
		}
		w.answers = b.Role == furl.RoleAssistant
		return w.state.Apply(r)
	case *furl.Reduction:
		if !IsCompaction(b, r.By) {
			return w.state.Apply(r)
		}
	case *furl.Takeover:
	default:
		return w.state.Apply(r)
	}
	w.finish()
	before := w.recorded()
	if _, taken := r.Body.(*furl.Takeover); taken {
		w.known = 0
		for range w.state.Reductions() {
			w.known++
		}
	}
	if err := w.state.Apply(r); err != nil {
		return err
	}
	red, ok := w.newest(r)
	if !ok {
		return nil
	}
	after := w.recorded()
	shown := make(map[furl.Pos]bool, len(after))
	for _, p := range after {
		shown[p] = true
	}
	w.hidden = nil
	messages, last := 0, furl.Seq(0)
	for _, p := range before {
		if shown[p] {
			continue
		}
		w.hidden = append(w.hidden, p)
		if p.Msg != last {
			messages, last = messages+1, p.Msg
		}
	}
	if len(w.hidden) == 0 {
		return nil // another text for a summary
	}
	w.open = &Compaction{
		Number: len(w.list) + 1, Reduction: red.Seq, By: r.By.String(), Time: red.At, Messages: messages,
		Unreadable: unreadable(red.Reduction), Replies: w.later.count - w.replied,
	}
	w.list = append(w.list, w.open)
	return nil
}

// newest returns the compaction that a record has added to the path: of several that were
// taken over from another branch, the newest.
func (w *walk) newest(r furl.Record) (red furl.Applied, ok bool) {
	if _, taken := r.Body.(*furl.Takeover); !taken {
		return w.state.Reduction(r.Seq)
	}
	n := 0
	for a := range w.state.Reductions() {
		if n++; n > w.known && IsCompaction(a.Reduction, a.By) {
			red, ok = a, true
		}
	}
	return red, ok
}

// recorded returns the blocks that the model sees as recorded, in order.
func (w *walk) recorded() (list []furl.Pos) {
	v := w.state.View(furl.Model{})
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			if b := &v.Messages[i].Blocks[j]; v.Messages[i].Index >= 0 && b.By == 0 {
				list = append(list, b.Pos)
			}
		}
	}
	return list
}

// IsCompaction reports whether a reduction shows a summary in place of messages.
func IsCompaction(red *furl.Reduction, by furl.Actor) bool {
	if red.Summary != nil {
		return true
	}
	if red.Stage != furl.StageClient && by != furl.Upstream {
		return false
	}
	for i := range red.Items {
		if mark, ok := red.Items[i].Show.(furl.Mark); ok && len(mark.Messages) > 0 {
			return true
		}
	}
	return false
}

// unreadable reports whether the summary of a compaction is encrypted or missing.
func unreadable(red *furl.Reduction) bool {
	readable := red.Summary != nil && strings.TrimSpace(red.Summary.Text) != ""
	for i := range red.Items {
		mark, ok := red.Items[i].Show.(furl.Mark)
		if !ok {
			continue
		}
		for _, m := range mark.Messages {
			if m.HasCompaction() {
				return true
			}
			readable = readable || red.Summary == nil
		}
	}
	return !readable
}

// finish compares what the open compaction hides with what the model sees in its place.
func (w *walk) finish() {
	c := w.open
	if c == nil {
		return
	}
	w.open = nil
	seen := newSeen()
	v := w.state.View(furl.Model{})
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			for text := range toolscript.ShownTexts(&v.Messages[i].Blocks[j]) {
				seen.read(text)
			}
		}
	}
	o := originals{seen: seen, asked: make(map[string]*furl.Block), later: w.later, from: w.replied}
	for _, p := range w.hidden {
		if i, ok := w.state.Find(p.Msg); ok {
			_, m := w.state.Message(i)
			o.read(p, m)
		}
	}
	c.Answers, c.Sentences, c.Identifiers = o.answers.list(seen), o.sentences.list(seen), o.names.list(seen)
	w.hidden = nil
}
