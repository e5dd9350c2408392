package fidelity

import (
	"bytes"
	"encoding/json"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/toolscript"
)

// Tracker records the positions of names, lines and calls on one path. It
// reads each message once. The zero value is a path without messages; a
// Tracker is not safe for concurrent use.
type Tracker struct {
	base  []uint32 // number of the first block of each message, and of the next
	names table
	lines table
	calls table              // by key; the holders are the blocks of the results
	open  map[string][]int32 // calls by the id of their results

	done []change // for undo
	ends []int    // length of done after each message
}

// Add appends a message to the path.
func (t *Tracker) Add(m *furl.Message) {
	t.init()
	n := t.base[len(t.base)-1]
	for i := range m.Blocks {
		t.block(n, m.Role, &m.Blocks[i])
		n++
	}
	t.base = append(t.base, n)
	t.ends = append(t.ends, len(t.done))
}

func (t *Tracker) init() {
	if t.base == nil {
		t.base = []uint32{0}
		t.open = make(map[string][]int32)
	}
}

func (t *Tracker) block(n uint32, role furl.Role, b *furl.Block) {
	own, firstHand := isOwn(role, b), isFirstHand(role, b)
	for text := range toolscript.Texts(b) {
		for name := range lexer.Names(text) {
			t.hold(&t.names, name, n, firstHand, own)
		}
		for line := range Variants(text) {
			t.hold(&t.lines, line, n, b.IsResult(), false)
		}
	}
	switch b.Kind {
	case furl.KindCall:
		var keys []int32
		for _, call := range toolscript.Calls(b) {
			keys = append(keys, t.calls.id(callKey(call)))
		}
		t.done = append(t.done, change{call: b.ID, before: t.open[b.ID]})
		t.open[b.ID] = keys
	case furl.KindResult:
		for _, key := range t.open[b.ID] {
			t.hold(&t.calls, t.calls.entries[key].text, n, false, false)
		}
	}
}

// hold records that a block contains a text.
func (t *Tracker) hold(in *table, text string, n uint32, firstHand, own bool) {
	id := in.id(text)
	e := &in.entries[id]
	if k := len(e.holders); k > 0 && e.holders[k-1] == n {
		return
	}
	e.holders = append(e.holders, n)
	e.count(firstHand, own, 1)
	t.done = append(t.done, change{in: in, id: id, firstHand: firstHand, own: own})
}

// Truncate removes messages from the end of the path until n are left, after
// a rewind of the conversation. It does nothing if there are n or fewer.
func (t *Tracker) Truncate(n int) {
	n = max(n, 0)
	if n >= len(t.ends) {
		return
	}
	keep := 0
	if n > 0 {
		keep = t.ends[n-1]
	}
	for i := len(t.done) - 1; i >= keep; i-- {
		t.done[i].undo(t)
	}
	t.done, t.ends = t.done[:keep], t.ends[:n]
	// Replies share the front of base; later messages must not overwrite it.
	t.base = t.base[: n+1 : n+1]
}

// Reply returns what the messages of a reply use from the path, which they
// are not part of yet. Messages of other roles are ignored.
func (t *Tracker) Reply(msgs ...*furl.Message) *Reply {
	t.init()
	r := &Reply{base: t.base[:len(t.base):len(t.base)]}
	var names, lines, calls seenIDs
	for _, m := range msgs {
		if m.Role != furl.RoleAssistant {
			continue
		}
		for i := range m.Blocks {
			b := &m.Blocks[i]
			if b.Kind != furl.KindText && b.Kind != furl.KindCall {
				continue
			}
			for text := range toolscript.Texts(b) {
				t.refs(r, text, &names)
				t.quoted(r, text, &lines)
			}
			if b.Kind != furl.KindCall {
				continue
			}
			inside, unread := toolscript.Inside(b)
			r.Unmeasured = r.Unmeasured || unread
			if inside == nil {
				inside = []*furl.Block{b}
			}
			for _, call := range inside {
				t.repeat(r, call, &calls)
				t.edits(r, call)
			}
		}
	}
	return r
}

func (t *Tracker) refs(r *Reply, text string, seen *seenIDs) {
	for name := range lexer.Names(text) {
		id, e := t.names.find(name)
		if e != nil && seen.add(id) {
			r.Refs = append(r.Refs, Ref{Name: e.text, FirstHand: e.firstHand > 0 && e.own == 0, holders: e.sealed()})
		}
	}
}

func (t *Tracker) quoted(r *Reply, text string, seen *seenIDs) {
	for line, bare := range quotes(text) {
		id, e := t.lines.find(line)
		if (e == nil || e.firstHand == 0) && bare != "" {
			id, e = t.lines.find(bare)
		}
		if e != nil && e.firstHand > 0 && seen.add(id) {
			r.Lines = append(r.Lines, Line{Text: e.text, holders: e.sealed()})
		}
	}
}

func (t *Tracker) repeat(r *Reply, b *furl.Block, seen *seenIDs) {
	// A call without a result has nothing that could have been hidden.
	id, e := t.calls.find(callKey(b))
	if e != nil && seen.add(id) {
		r.Repeats = append(r.Repeats, Repeat{Tool: b.Name, results: e.sealed()})
	}
}

// callKey is equal for calls of one tool with equal arguments, ignoring white
// space and order.
func callKey(b *furl.Block) string {
	args := []byte(b.Args)
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) == nil {
		if sorted, err := json.Marshal(value); err == nil {
			args = sorted
		}
	}
	return b.Name + "\x00" + string(args)
}

// table maps texts to their positions.
type table struct {
	ids     map[string]int32
	entries []entry
}

type entry struct {
	text    string
	holders []uint32 // ascending
	// How many of them are first-hand, and how many are the assistant's own.
	firstHand, own int32
}

// id returns the number of a text, and adds it if it is new.
func (t *table) id(text string) int32 {
	id, ok := t.ids[text]
	if !ok {
		if t.ids == nil {
			t.ids = make(map[string]int32)
		}
		id = int32(len(t.entries))
		t.ids[text] = id
		t.entries = append(t.entries, entry{text: text})
	}
	return id
}

// find returns the entry of a text on the path, or nil.
func (t *table) find(text string) (int32, *entry) {
	if id, ok := t.ids[text]; ok && len(t.entries[id].holders) > 0 {
		return id, &t.entries[id]
	}
	return 0, nil
}

// sealed returns the holders so far, unaffected by later additions.
func (e *entry) sealed() []uint32 { return e.holders[:len(e.holders):len(e.holders)] }

func (e *entry) count(firstHand, own bool, by int32) {
	if firstHand {
		e.firstHand += by
	}
	if own {
		e.own += by
	}
}

// change is one effect of an added message: an additional holder of an entry
// or, if in is nil, a call id that was assigned to other calls.
type change struct {
	in             *table
	id             int32 // the entry
	firstHand, own bool
	call           string
	before         []int32 // the previous calls of the id
}

func (c change) undo(t *Tracker) {
	switch {
	case c.in == nil && c.before == nil:
		delete(t.open, c.call)
	case c.in == nil:
		t.open[c.call] = c.before
	default:
		e := &c.in.entries[c.id]
		n := len(e.holders) - 1
		e.holders = e.holders[:n:n] // replies share the rest
		e.count(c.firstHand, c.own, -1)
	}
}

// seenIDs records what was counted in one reply.
type seenIDs map[int32]struct{}

func (s *seenIDs) add(id int32) bool {
	if *s == nil {
		*s = make(seenIDs)
	}
	n := len(*s)
	(*s)[id] = struct{}{}
	return len(*s) > n
}
