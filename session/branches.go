package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/internal/open"
)

// The log is a tree, but not every branch of it is a conversation: some are
// repeated requests, replies that the client did not receive or has with other
// call ids, and volatile messages at the end of requests. This file finds the
// branches that are conversations to a person.

// Branch is a conversation in a session: the current one or an abandoned one.
type Branch struct {
	// Head is the last record of the branch. Rewind to it to switch to the
	// branch.
	Head furl.Seq `json:"head"`
	// From is the last record that it shares with the current path.
	From furl.Seq `json:"from"`
	// Messages is the number of messages after From, Total from the root.
	Messages int       `json:"messages"`
	Total    int       `json:"total"`
	Updated  time.Time `json:"updated,omitzero"`
	Current  bool      `json:"current,omitempty"`
	// Words is the start of its last text.
	Words string `json:"words,omitempty"`
}

// Branches returns the conversations in the session: the current one, then the
// others, newest first. A branch counts as a conversation if the client asked
// something in it and got a reply that the others do not have, or if a person left
// it by a rewind. Repeated requests, unused replies and volatile messages do not
// count.
func (s *Session) Branches() (list []Branch) {
	s.Internal().Read(func(c *open.Change) { list = branchesOf(c.Log()) })
	return list
}

func branchesOf(log *furl.Log) []Branch {
	t := treeOf(log)
	head := log.Head()
	t.markListed(head)
	onPath := slices.Clone(t.listed)
	list := []Branch{{Head: head, From: head, Total: t.messages[head], Current: true}}
	for _, end := range t.leaves() {
		if !t.isBranch(end) {
			continue
		}
		t.markListed(end)
		from := end
		for !onPath[from] {
			from = log.At(from).Parent
		}
		list = append(list, Branch{Head: end, From: from, Messages: t.messages[end] - t.messages[from], Total: t.messages[end]})
	}
	for i := range list {
		list[i].Words, list[i].Updated = lastText(log, list[i].Head)
	}
	slices.SortStableFunc(list[1:], func(a, b Branch) int { return cmp.Compare(b.Head, a.Head) })
	return list
}

// tree is the tree of a log. Its slices are indexed by record, with the root at 0.
type tree struct {
	log        *furl.Log
	messages   []int      // number on the path up to the record
	hasNext    []bool     // another record follows it
	onSide     []bool     // part of a volatile tail on a side branch
	leftByUser []bool     // a person rewound from here
	listed     []bool     // on a listed branch
	next       []furl.Seq // the next record on the branch that was listed first
}

func treeOf(log *furl.Log) *tree {
	n := log.Len() + 1
	t := &tree{
		log: log, messages: make([]int, n), hasNext: make([]bool, n), onSide: make([]bool, n),
		leftByUser: make([]bool, n), listed: make([]bool, n), next: make([]furl.Seq, n),
	}
	t.listed[0] = true
	for _, r := range log.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Head:
			t.addRewind(r, b)
			continue
		case *furl.Message:
			t.messages[r.Seq]++
		}
		t.messages[r.Seq] += t.messages[r.Parent]
	}
	for _, r := range log.Records(0) {
		if _, ok := r.Body.(*furl.Head); !ok && !t.onSide[r.Seq] {
			t.hasNext[r.Parent] = true
		}
	}
	return t
}

// addRewind marks the branch that a rewind left.
func (t *tree) addRewind(r furl.Record, h *furl.Head) {
	switch r.By {
	case furl.Person:
		t.leftByUser[h.From] = true
	case furl.Furl:
		seq := h.From
		for ; seq > r.Parent; seq = t.log.At(seq).Parent {
			if m, ok := t.log.At(seq).Body.(*furl.Message); !ok || !fingerprint.IsUserText(m) {
				return
			}
		}
		if seq != r.Parent {
			return // the rewind left another branch
		}
		for seq := h.From; seq > r.Parent; seq = t.log.At(seq).Parent {
			t.onSide[seq] = true
		}
	}
}

// markListed marks the conversation up to a record as listed.
func (t *tree) markListed(end furl.Seq) {
	for seq := end; !t.listed[seq]; {
		t.listed[seq] = true
		parent := t.log.At(seq).Parent
		if t.next[parent] == 0 {
			t.next[parent] = seq
		}
		seq = parent
	}
}

// leaves returns the unlisted records that no record follows, newest first.
func (t *tree) leaves() []furl.Seq {
	var list []furl.Seq
	for seq := furl.Seq(len(t.hasNext) - 1); seq > 0; seq-- {
		if _, ok := t.log.At(seq).Body.(*furl.Head); !ok && !t.onSide[seq] && !t.hasNext[seq] && !t.listed[seq] {
			list = append(list, seq)
		}
	}
	return list
}

// isBranch reports whether the branch that ends at a record is a conversation other
// than those listed.
func (t *tree) isBranch(end furl.Seq) bool {
	var own []furl.Record // newest first
	from, said, asked := end, false, false
	for ; !t.listed[from]; from = t.log.At(from).Parent {
		r := t.log.At(from)
		own = append(own, r)
		if m, ok := r.Body.(*furl.Message); ok {
			said, asked = true, asked || m.Role != furl.RoleAssistant && !m.HasOwn()
		}
	}
	if t.leftByUser[end] {
		return said
	}
	slices.Reverse(own)
	return asked && !t.sameReplies(from, replyFingerprints(own))
}

// sameReplies reports whether the listed conversation continues from a record with
// the same replies, and without a client message before the first one. It returns
// true if want is empty.
func (t *tree) sameReplies(from furl.Seq, want []*fingerprint.Reply) bool {
	if len(want) == 0 {
		return true
	}
	var on []furl.Record
	messages := 0
	for seq := t.next[from]; seq != 0 && messages < 16*(len(want)+1); seq = t.next[seq] {
		r := t.log.At(seq)
		on = append(on, r)
		if m, ok := r.Body.(*furl.Message); ok {
			if messages++; messages == 1 && m.Role != furl.RoleAssistant {
				return false
			}
		}
	}
	have := replyFingerprints(on)
	return len(have) >= len(want) && slices.EqualFunc(want, have[:len(want)], (*fingerprint.Reply).Same)
}

// replyFingerprints returns the fingerprints of the replies among records. A reply
// can have several messages.
func replyFingerprints(records []furl.Record) []*fingerprint.Reply {
	var list []*fingerprint.Reply
	open := false    // the last reply may continue
	recalls := false // it may continue after an exchange, because furl answers its calls
	for _, r := range records {
		m, ok := r.Body.(*furl.Message)
		switch {
		case !ok:
			if _, ok := r.Body.(*furl.Exchange); ok {
				open = open && recalls
			}
			continue
		case m.Role != furl.RoleAssistant:
			open = open && m.HasOwn()
			continue
		}
		recalls = m.HasOwn()
		if fingerprint.AddsNothing(m) {
			continue
		}
		if !open {
			list = append(list, &fingerprint.Reply{Likeness: fingerprint.OtherIDs})
		}
		open = true
		list[len(list)-1].Add(m)
	}
	return list
}

// lastText returns the start of the last text at or before a record, and the time
// of the record.
func lastText(log *furl.Log, seq furl.Seq) (string, time.Time) {
	var at time.Time
	if seq != 0 {
		at = log.At(seq).At
	}
	for ; seq != 0; seq = log.At(seq).Parent {
		if m, ok := log.At(seq).Body.(*furl.Message); ok {
			if t, _ := open.MessageTitle(m); t != "" {
				return t, at
			}
		}
	}
	return "", at
}
