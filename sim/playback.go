package sim

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/transcript"
)

// Playback is a player of recorded sessions: it answers each request with the
// next answer of the recorded model. It stores nothing between requests. The
// position of a request in a recording is found from its newest assistant
// message, by the ids of its calls or by its text; earlier messages may be
// hidden or changed. A request without assistant messages is the start of the
// session with its user text, or else of the first session.
//
// Ids of calls are those of the recording, so that recorded results fit.
type Playback struct {
	// Otherwise answers requests without a recorded answer: a title, a
	// summary, a request after the end. If nil, a text that says so.
	Otherwise Player

	replies []played
	by      map[uint64][]int // replies by their content and the user text before them
}

// played is one reply of a recording.
type played struct {
	session  int
	prev     int // the previous reply, -1 if none
	next     []int
	blocks   []furl.Block
	keys     []uint64 // of its calls and texts
	asked    []uint64 // of the user texts since prev
	hasCalls bool
}

// maxReplies bounds how much of recordings is kept.
const maxReplies = 1_000_000

// NewPlayback returns a player of sessions.
func NewPlayback(sessions ...*transcript.Session) *Playback {
	p := &Playback{by: make(map[uint64][]int)}
	for i, s := range sessions {
		p.add(i, s)
	}
	for i := range p.replies {
		r := &p.replies[i]
		r.keys = append(r.keys, r.joined()...)
		for _, k := range r.keys {
			p.by[k] = append(p.by[k], i)
		}
		for _, k := range r.asked {
			p.by[k] = append(p.by[k], i)
		}
		if r.prev >= 0 {
			p.replies[r.prev].next = append(p.replies[r.prev].next, i)
		}
	}
	return p
}

// place is the position of a record in a log.
type place struct {
	reply int
	open  bool // the next assistant message belongs to it
	asked []uint64
}

// add adds a session with all its branches.
func (p *Playback) add(session int, s *transcript.Session) {
	at := make([]place, s.Log.Len()+1)
	at[0] = place{reply: -1}
	for seq := 1; seq <= s.Log.Len() && len(p.replies) < maxReplies; seq++ {
		r := s.Log.At(furl.Seq(seq))
		here := at[r.Parent]
		switch body := r.Body.(type) {
		case *furl.Exchange:
			here.open = false
		case *furl.Reduction:
			here.marks(body)
		case *furl.Takeover:
			for _, b := range body.Taken() {
				if red, ok := b.(*furl.Reduction); ok {
					here.marks(red)
				}
			}
		case *furl.Message:
			if body.Role != furl.RoleAssistant {
				here.open = false
				here.addUserText(body)
				break
			}
			switch {
			case here.open:
			case here.reply >= 0 && len(p.replies[here.reply].keys) == 0:
				// Thinking without other content cannot be identified: it is
				// joined with the next message.
				here.open = true
			default:
				p.replies = append(p.replies, played{session: session, prev: here.reply, asked: here.asked})
				here = place{reply: len(p.replies) - 1, open: true}
			}
			p.replies[here.reply].addMessage(body)
		}
		at[seq] = here
	}
}

// joined returns the keys of a reply of several texts in Chat Completions,
// where they become one.
func (r *played) joined() []uint64 {
	all, texts := "", 0
	for i := range r.blocks {
		if r.blocks[i].Kind == furl.KindText {
			all += r.blocks[i].Text
			texts++
		}
	}
	if texts < 2 {
		return nil
	}
	return []uint64{wordsKey("said", all)}
}

// marks adds the texts of a reduction's markers.
func (p *place) marks(red *furl.Reduction) {
	for _, it := range red.Items {
		if mark, ok := it.Show.(furl.Mark); ok {
			for i := range mark.Messages {
				p.addUserText(mark.Messages[i])
			}
		}
	}
}

// addUserText adds a user text.
func (p *place) addUserText(m *furl.Message) {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == furl.KindText && m.Role == furl.RoleUser {
			p.asked = append(p.asked[:len(p.asked):len(p.asked)], wordsKey("user", b.Text))
		}
	}
}

// addMessage adds a message to a reply.
func (r *played) addMessage(m *furl.Message) {
	r.keys = append(r.keys, messageKeys(m)...)
	for i := range m.Blocks {
		b := furl.Block{Kind: m.Blocks[i].Kind, Text: m.Blocks[i].Text}
		switch b.Kind {
		case furl.KindText, furl.KindThinking:
			if b.Text == "" {
				continue
			}
		case furl.KindCall:
			b.Text, b.ID, b.Name, b.Args = "", m.Blocks[i].ID, m.Blocks[i].Name, m.Blocks[i].Args
			r.hasCalls = true
			if b.ID != "" {
				r.keys = append(r.keys, callKey(&b))
			}
		default:
			continue
		}
		r.blocks = append(r.blocks, b)
	}
}

var keySeed = maphash.MakeSeed()

func wordsKey(kind, s string) uint64 {
	return maphash.String(keySeed, kind+"\x00"+strings.TrimSpace(s))
}

// callKey identifies a call without an id, as Gemini's may be.
func callKey(b *furl.Block) uint64 { return wordsKey("call of "+b.Name, string(compact(b.Args))) }

// messageKeys identify an assistant message: by its calls, or otherwise by
// its text.
func messageKeys(m *furl.Message) (keys []uint64) {
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; {
		case b.Kind == furl.KindCall && b.ID == "":
			keys = append(keys, callKey(b))
		case b.Kind == furl.KindCall:
			keys = append(keys, wordsKey("call", b.ID))
		case b.Kind == furl.KindText && strings.TrimSpace(b.Text) != "":
			keys = append(keys, wordsKey("said", b.Text))
		}
	}
	return keys
}

// Play returns the recorded answer.
func (p *Playback) Play(ctx context.Context, req *protocol.Request) (Reply, error) {
	if i := p.find(req); i >= 0 {
		blocks := append([]furl.Block(nil), p.replies[i].blocks...)
		if len(p.replies[i].keys) == 0 {
			return Text("[the recording has nothing readable here]"), nil
		}
		return Reply{Blocks: blocks}, nil
	}
	if p.Otherwise != nil {
		return p.Otherwise.Play(ctx, req)
	}
	return Text("[the recording has no answer to this]"), nil
}

// find returns the index of the reply to a request, -1 if there is none.
func (p *Playback) find(req *protocol.Request) int {
	runs, asked := spokenIn(req)
	if len(runs) == 0 {
		return p.begin(req, asked)
	}
	best, most := -1, 0
	for _, k := range runs[0] {
		for _, i := range p.by[k] {
			n := 2 * p.agrees(i, runs)
			if len(p.replies[i].next) > 0 {
				n++ // of two equal replies, the one that continued
			}
			if n > most {
				best, most = i, n
			}
		}
	}
	if best < 0 {
		return -1
	}
	return p.after(best, asked)
}

// agrees counts how many runs of the request, from the newest on, match reply
// i and its predecessors.
func (p *Playback) agrees(i int, runs [][]uint64) int {
	n := 0
	for _, keys := range runs {
		if i < 0 || !shareKey(keys, p.replies[i].keys) {
			break
		}
		n++
		for i >= 0 && shareKey(keys, p.replies[i].keys) {
			i = p.replies[i].prev // several replies may have become one message
		}
	}
	return n
}

// after picks the reply that followed another: where the recording branches,
// the one to the same user text, otherwise the newest.
func (p *Playback) after(i int, asked []uint64) int {
	next := p.replies[i].next
	if len(next) == 0 {
		return -1
	}
	for n := len(next) - 1; n >= 0; n-- {
		if shareKey(asked, p.replies[next[n]].asked) {
			return next[n]
		}
	}
	return next[len(next)-1]
}

// begin picks the reply to a request without assistant messages.
func (p *Playback) begin(req *protocol.Request, asked []uint64) int {
	// After a compaction, the texts of several earlier requests may be there:
	// the reply that answered most of them is meant.
	best, most := -1, 0
	for _, k := range asked[:min(len(asked), maxAsked)] {
		for _, i := range p.by[k] {
			n := 0
			for _, k := range asked[:min(len(asked), maxAsked)] {
				if slices.Contains(p.replies[i].asked, k) {
					n++
				}
			}
			if n > most {
				best, most = i, n
			}
		}
	}
	if best >= 0 {
		return best
	}
	tools := false
	for i := range req.Preamble {
		tools = tools || req.Preamble[i].Kind == furl.KindOpaque
	}
	if len(p.replies) > 0 && (tools || !p.replies[0].hasCalls) {
		return 0
	}
	return -1
}

// maxAsked is how many of the newest user texts are searched.
const maxAsked = 50

// maxRuns is how far back a request is compared with a recording.
const maxRuns = 20

// spokenIn returns the keys of the assistant messages of a request, newest
// first, and the user texts since.
func spokenIn(req *protocol.Request) (runs [][]uint64, asked []uint64) {
	inRun := false
	for i := len(req.Messages) - 1; i >= 0 && len(runs) <= maxRuns; i-- {
		m := &req.Messages[i]
		if m.Role != furl.RoleAssistant {
			inRun = false
			for j := range m.Blocks {
				if b := &m.Blocks[j]; b.Kind == furl.KindText && len(runs) == 0 && m.Role == furl.RoleUser {
					asked = append(asked, wordsKey("user", b.Text))
				}
			}
			continue
		}
		keys := messageKeys(m)
		if !inRun && len(keys) > 0 {
			runs = append(runs, nil)
			inRun = true
		}
		if inRun {
			runs[len(runs)-1] = append(runs[len(runs)-1], keys...)
			if said := saidFrom(req.Messages, i); said != "" && req.Format == furl.FormatGemini {
				runs[len(runs)-1] = append(runs[len(runs)-1], wordsKey("said", said))
			}
		}
	}
	return runs, asked
}

func shareKey(a, b []uint64) bool {
	for _, x := range a {
		if slices.Contains(b, x) {
			return true
		}
	}
	return false
}
