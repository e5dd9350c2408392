package transcript

import (
	"bytes"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/anthropic"
)

// What was sent, where the file records it (claude_request.go). The records of the
// conversation say who answered what, what was rewound and compacted. The messages between
// two replies are those of the request: the ones that the speaker has made of the records
// are replaced by them.

// claudeSent is what the speaker knows of the requests of a thread.
type claudeSent struct {
	*claudeRequests
	unknown int // requests of which not all messages are known

	last   *claudeRequest
	hashes []claudeHash // of last
	// seen are the messages that the model sees at the entry at.
	seen []claudeSeen
	at   ref
	// The entry of a message, the hashes of entries that were sent like this, and the
	// entries that are compactions whose summary was sent like this.
	refOf  map[claudeHash]ref
	hashAt map[ref]claudeHash
	shown  map[ref][]claudeHash
	forks  int
}

// claudeSeen is a message that the model sees.
type claudeSeen struct {
	ref   ref // a message, or a compaction for its summary
	hash  claudeHash
	exact bool // the message was sent like this; of replies: the hash is theirs
	reply bool
	cut   bool
}

func newClaudeSent(q *claudeRequests) *claudeSent {
	return &claudeSent{
		claudeRequests: q, refOf: make(map[claudeHash]ref), hashAt: make(map[ref]claudeHash), shown: make(map[ref][]claudeHash),
	}
}

// maxClaudeForks bounds the requests that do not go on where the records do.
const maxClaudeForks = maxRewinds

// asSent makes the messages before a reply those of its recorded request. It returns
// nil if that is not known.
func (s *claudeSpeaker) asSent(n *claudeNode) *claudeRequest {
	q := s.sent
	r := q.byID[n.records[0].request]
	if r == nil {
		return nil
	}
	hashes := q.claudeRequests.hashes(r, q.last, q.hashes)
	if hashes == nil {
		q.unknown++
		return nil
	}
	q.last, q.hashes = r, hashes
	// The messages since the last reply, made of records.
	from := len(s.entries)
	for from > 0 && s.entries[from-1].msg != nil && s.entries[from-1].msg.Role != furl.RoleAssistant {
		from--
	}
	tip := s.last
	if from < len(s.entries) {
		tip = s.entries[from].parent
	}
	seen, hidden := s.seenAt(tip)
	a := claudeAlignment{s: s, hashes: hashes, seen: seen, hidden: hidden}
	if !a.align() || a.forked && q.forks >= maxClaudeForks {
		q.unknown++
		return nil
	}
	if a.forked {
		q.forks++
	}
	a.apply(r, from, tip)
	if !q.haveAll(hashes) {
		q.unknown++
	}
	return r
}

// seenAt returns what the model sees at an entry. If a compaction is the newest and its
// summary is not known yet, hidden is what it saw before.
func (s *claudeSpeaker) seenAt(tip ref) (seen, hidden []claudeSeen) {
	q := s.sent
	path := []ref(nil)
	if q.at != 0 {
		for r := tip; r != q.at && r != 0 && len(path) < len(s.entries); r = s.entries[r-1].parent {
			path = append(path, r)
		}
		if len(path) == 0 || s.entries[path[len(path)-1]-1].parent == q.at {
			seen = slices.Clip(q.seen)
		} else {
			path = nil
		}
	}
	if seen == nil {
		path = s.builder.path(tip)
	} else {
		slices.Reverse(path)
	}
	for _, r := range path {
		e := &s.entries[r-1]
		switch {
		case e.msg != nil:
			item := claudeSeen{ref: r, reply: e.msg.Role == furl.RoleAssistant}
			if item.hash, item.exact = q.hashAt[r]; item.reply && !item.exact {
				item.hash, item.exact = s.known(r, e.msg.Raw), true
			}
			seen = append(seen, item)
		case e.cut != nil:
			before := seen
			if seen = nil; q.shown[r] == nil {
				seen, hidden = []claudeSeen{{ref: r, cut: true}}, before
			}
			for _, h := range q.shown[r] {
				seen = append(seen, claudeSeen{ref: r, hash: h, exact: true, cut: true})
			}
			for _, item := range before {
				if slices.Contains(e.cut.keep, item.ref) {
					seen = append(seen, item)
				}
			}
		}
	}
	return seen, hidden
}

// known notes the hash of the message of an entry.
func (s *claudeSpeaker) known(r ref, raw []byte) claudeHash {
	h := s.sent.messageHash(raw)
	s.sent.hashAt[r], s.sent.refOf[h] = h, r
	return h
}

// claudeAlignment compares what the model saw with the messages of a request.
type claudeAlignment struct {
	s            *claudeSpeaker
	hashes       []claudeHash
	seen, hidden []claudeSeen

	now    []claudeSeen // the messages of the request that are there already
	next   int          // the first that is not
	forked bool         // they do not all follow one another: the rest of seen was left out
	// Messages that are sent in other words, and those of them that are not the model's.
	changed []claudeSeen
	change  masking
	cut     ref // the compaction whose summary was not known
	show    []*furl.Message
	keep    []ref
	raws    [][]byte // of the messages from next on
}

// align reports whether the request is understood and its messages are known.
func (a *claudeAlignment) align() bool {
	loose := false // messages of the user before this one are not known exactly
	for i := 0; i < len(a.seen); i++ {
		item := a.seen[i]
		switch {
		case item.cut && !item.exact:
			if !a.compacted(item.ref) {
				return false
			}
			i = len(a.seen) // what was kept is found by its hash
			continue
		case !item.exact:
			loose = true
			a.now = append(a.now, item)
			continue
		case loose:
			at := -1
			if item.reply || item.cut {
				at = slices.Index(a.hashes[a.next:], item.hash)
			}
			if at < 0 {
				return false
			}
			a.next, loose = a.next+at, false
		case a.next == len(a.hashes):
			return a.fork()
		case a.hashes[a.next] != item.hash:
			if !a.reworded(&item) {
				return a.fork()
			}
		}
		a.now = append(a.now, item)
		a.next++
	}
	return !loose && a.rest()
}

// compacted finds the summary of a compaction, and what the compaction kept.
func (a *claudeAlignment) compacted(cut ref) bool {
	places := make(map[claudeHash]claudeSeen, len(a.hidden))
	for _, item := range a.hidden {
		if item.exact {
			places[item.hash] = item
		}
	}
	// What comes before the first reply that was kept is shown with the summary.
	shown := 1
	for i, h := range a.hashes {
		if item, kept := places[h]; kept && item.reply {
			shown = max(i, 1)
			break
		}
	}
	for ; a.next < len(a.hashes); a.next++ {
		h := a.hashes[a.next]
		item, kept := places[h]
		switch {
		case kept:
			a.keep = append(a.keep, item.ref)
			a.now = append(a.now, item)
			continue
		case a.next >= shown:
			a.cut = cut
			return len(a.show) > 0
		}
		raw := a.s.rawOf(h)
		if raw == nil {
			return false
		}
		m, err := anthropic.Codec.DecodeMessage(raw)
		if err != nil {
			return false
		}
		if len(m.Blocks) > 0 { // else a reduction cannot show it
			a.show = append(a.show, m)
		}
		a.now = append(a.now, claudeSeen{ref: cut, hash: h, exact: true, cut: true})
	}
	a.cut = cut
	return len(a.show) > 0
}

// summary returns the hashes of what is shown for a compaction.
func (a *claudeAlignment) summary() (hashes []claudeHash) {
	for _, item := range a.now {
		if item.cut {
			hashes = append(hashes, item.hash)
		}
	}
	return hashes
}

// reworded reports whether the next message of the request is an earlier one in other words. A reply
// is the model's whatever the client makes of it; the texts of other messages are changed.
func (a *claudeAlignment) reworded(item *claudeSeen) bool {
	if item.cut {
		return false
	}
	hash := a.hashes[a.next]
	raw := a.s.rawOf(hash)
	if raw == nil {
		return false
	}
	m, err := anthropic.Codec.DecodeMessage(raw)
	was := a.s.entries[item.ref-1].msg
	if err != nil || m.Role != was.Role {
		return false
	}
	if !item.reply {
		if len(m.Blocks) != len(was.Blocks) {
			return false
		}
		for i := range m.Blocks {
			b, old := &m.Blocks[i], &was.Blocks[i]
			if b.Kind != old.Kind || b.ID != old.ID || b.Kind != furl.KindText && b.Kind != furl.KindResult && !bytes.Equal(m.Raw[b.Start:b.End], was.Raw[old.Start:old.End]) {
				return false
			}
			if b.Text != old.Text {
				a.change.hide = append(a.change.hide, hiding{of: item.ref, block: i + 1, text: b.Text})
			}
		}
	}
	item.hash = hash
	a.changed = append(a.changed, *item)
	return true
}

// fork lets the request go on before the next message that the model saw.
func (a *claudeAlignment) fork() bool {
	a.forked = true
	to := ref(0)
	for _, item := range a.now {
		to = max(to, item.ref)
	}
	for _, item := range a.seen[len(a.now):] {
		if item.ref <= to {
			return false // a compaction keeps it, and would after going back
		}
	}
	return a.rest()
}

// rest finds the messages of the request that are new.
func (a *claudeAlignment) rest() bool {
	for _, h := range a.hashes[a.next:] {
		raw := a.s.rawOf(h)
		if raw == nil {
			return false
		}
		a.raws = append(a.raws, raw)
	}
	return true
}

// rawOf returns a message by its hash, nil if it is not known.
func (s *claudeSpeaker) rawOf(h claudeHash) []byte {
	if raw := s.sent.message(h); raw != nil {
		return raw
	}
	if r := s.sent.refOf[h]; r != 0 && s.entries[r-1].msg != nil {
		return s.entries[r-1].msg.Raw
	}
	return nil
}

// haveAll reports whether all messages of a request are known.
func (q *claudeSent) haveAll(hashes []claudeHash) bool {
	return !slices.ContainsFunc(hashes, func(h claudeHash) bool { return q.blobs[h] == nil && q.refOf[h] == 0 })
}

// apply replaces the entries since the last reply, from the index from on, by what
// the request has.
func (a *claudeAlignment) apply(r *claudeRequest, from int, tip ref) {
	s, q := a.s, a.s.sent
	times := make([]time.Time, 0, len(s.entries)-from)
	for i := from; i < len(s.entries); i++ {
		times = append(times, s.entries[i].at)
		s.uncount(s.entries[i].msg)
	}
	s.entries, s.last = slices.Delete(s.entries, from, len(s.entries)), tip
	at := func(i int) time.Time {
		if len(times) == 0 {
			return r.at
		}
		return times[min(i, len(times)-1)]
	}
	if a.cut != 0 {
		c := s.entries[a.cut-1].cut
		c.show, c.keep = a.show, a.keep
		q.shown[a.cut] = a.summary()
	}
	if a.forked {
		to := ref(0)
		for _, item := range a.now {
			to = max(to, item.ref)
		}
		s.rewind(at(0), to)
	}
	if len(a.change.hide) > 0 {
		a.change.reason = "the agent sent other words"
		s.mask(at(0), r.line, a.change)
	}
	for _, item := range a.changed {
		q.hashAt[item.ref] = item.hash
	}
	first := len(s.entries)
	for i, raw := range a.raws {
		s.rawOrEmpty(at(i), r.line, raw)
		if s.last != 0 && int(s.last) > first {
			h := a.hashes[a.next+i]
			q.hashAt[s.last], q.refOf[h] = h, s.last
			a.now = append(a.now, claudeSeen{ref: s.last, hash: h, exact: true, reply: s.entries[s.last-1].msg.Role == furl.RoleAssistant})
		}
	}
	q.seen, q.at = a.now, s.last
	s.renumber(ref(from), first)
}

// renumber points the nodes since the last reply, whose entries were those after
// from, to the entries after first that replaced them.
func (s *claudeSpeaker) renumber(from ref, first int) {
	for i := len(s.path) - 1; i >= 0 && s.path[i].kind != claudeReply; i-- {
		n := s.path[i]
		if n.ref <= from {
			break
		}
		n.ref = s.last
		if n.kind != claudeResults {
			continue
		}
		for k := first; k < len(s.entries); k++ {
			if m := s.entries[k].msg; m != nil && answers(m, n) {
				n.ref = ref(k + 1)
				break
			}
		}
	}
}

// answers reports whether a message has a result of a node.
func answers(m *furl.Message, n *claudeNode) bool {
	return slices.ContainsFunc(m.Blocks, func(b furl.Block) bool {
		return b.Kind == furl.KindResult && slices.ContainsFunc(n.records, func(r *claudeRecord) bool {
			return slices.ContainsFunc(r.blocks, func(p part) bool { return p.answer == b.ID })
		})
	})
}

// replied notes the reply that was added last.
func (s *claudeSpeaker) replied() {
	q := s.sent
	if len(q.byID) == 0 || s.last == 0 || s.entries[s.last-1].msg == nil {
		return
	}
	h := s.known(s.last, s.entries[s.last-1].msg.Raw)
	if ex := s.entries[s.last-1].parent; q.at != 0 && ex != 0 && s.entries[ex-1].ex != nil && s.entries[ex-1].parent == q.at {
		q.seen, q.at = append(q.seen, claudeSeen{ref: s.last, hash: h, exact: true, reply: true}), s.last
	}
}

// bodyOf returns a function that makes the body of a request.
func (s *claudeSpeaker) bodyOf(r *claudeRequest) func() []byte {
	return func() []byte {
		q := s.sent
		shape, hashes := q.shapes[r.shape], q.claudeRequests.hashes(r, q.last, q.hashes)
		if shape == nil || hashes == nil {
			return nil
		}
		q.last, q.hashes = r, hashes
		marked := make(map[int]bool)
		for i := range r.marks {
			marked[r.marks[i].message()] = true
		}
		messages := make([][]byte, len(hashes))
		for i, h := range hashes {
			if messages[i] = s.rawOf(h); messages[i] == nil {
				return nil
			}
			if q.listed[h] && !marked[i] {
				messages[i] = plainContent(messages[i])
			}
		}
		return shape.body(r, messages)
	}
}
