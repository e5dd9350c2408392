package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
)

// The log is a tree, and much of it is not a conversation of its own: a request
// that was sent again, an answer that its client did not get or has with other
// call ids, a changing message that the client keeps at the end of its list.
// This file finds what a person would call branches.

// Branch is a conversation that the session holds: the current one, or one that
// was left.
type Branch struct {
	// Head is the last record of the branch: rewinding to it switches there.
	Head furl.Seq `json:"head"`
	// From is the record where it leaves the current path.
	From furl.Seq `json:"from"`
	// Messages are how many it has after From, Total from its root.
	Messages int       `json:"messages"`
	Total    int       `json:"total"`
	Updated  time.Time `json:"updated,omitzero"`
	Current  bool      `json:"current,omitempty"`
	// Words are the beginning of its last message, for people.
	Words string `json:"words,omitempty"`
}

// Branches lists the conversations that the session holds, the current one
// first and then the newest. Another conversation is listed if its client asked
// something in it and got an answer that the others do not have, or if a person
// left it by a rewind. Requests that were sent again, answers that were not used,
// and changing messages at the end of a client's list are not listed.
func (s *Session) Branches() []Branch {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tree()
	head := s.log.Head()
	t.list(head)
	onPath := slices.Clone(t.listed)
	list := []Branch{{Head: head, From: head, Total: t.messages[head], Current: true}}
	for _, end := range t.ends() {
		if !t.isBranch(end) {
			continue
		}
		t.list(end)
		from := end
		for !onPath[from] {
			from = s.log.At(from).Parent
		}
		list = append(list, Branch{Head: end, From: from, Messages: t.messages[end] - t.messages[from], Total: t.messages[end]})
	}
	for i := range list {
		list[i].Words, list[i].Updated = s.lastWords(list[i].Head)
	}
	slices.SortStableFunc(list[1:], func(a, b Branch) int { return cmp.Compare(b.Head, a.Head) })
	return list
}

// tree is a log by what follows what. Its lists are per record, with the root
// at 0.
type tree struct {
	log      *furl.Log
	messages []int      // of the path up to the record
	follows  []bool     // something comes after it
	aside    []bool     // part of a client's changing end, recorded beside the path
	left     []bool     // a person left the conversation here
	listed   []bool     // on a branch that is listed
	next     []furl.Seq // on the branch that was listed first, what comes after it
}

func (s *Session) tree() *tree {
	n := s.log.Len() + 1
	t := &tree{
		log: s.log, messages: make([]int, n), follows: make([]bool, n), aside: make([]bool, n),
		left: make([]bool, n), listed: make([]bool, n), next: make([]furl.Seq, n),
	}
	t.listed[0] = true
	for _, r := range s.log.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Head:
			t.rewound(r, b)
			continue
		case *furl.Message:
			t.messages[r.Seq]++
		}
		t.messages[r.Seq] += t.messages[r.Parent]
	}
	for _, r := range s.log.Records(0) {
		if _, ok := r.Body.(*furl.Head); !ok && !t.aside[r.Seq] {
			t.follows[r.Parent] = true
		}
	}
	return t
}

// rewound notes what a rewind says of the branch that it left.
func (t *tree) rewound(r furl.Record, h *furl.Head) {
	switch r.By {
	case furl.Person:
		t.left[h.From] = true
	case furl.Furl:
		seq := h.From
		for ; seq > r.Parent; seq = t.log.At(seq).Parent {
			if m, ok := t.log.At(seq).Body.(*furl.Message); !ok || !fingerprint.IsUserText(m) {
				return
			}
		}
		if seq != r.Parent {
			return // it left another branch
		}
		for seq := h.From; seq > r.Parent; seq = t.log.At(seq).Parent {
			t.aside[seq] = true
		}
	}
}

// list notes that the conversation up to a record is listed.
func (t *tree) list(end furl.Seq) {
	for seq := end; !t.listed[seq]; {
		t.listed[seq] = true
		parent := t.log.At(seq).Parent
		if t.next[parent] == 0 {
			t.next[parent] = seq
		}
		seq = parent
	}
}

// ends gives the records that nothing follows, the newest first.
func (t *tree) ends() []furl.Seq {
	var list []furl.Seq
	for seq := furl.Seq(len(t.follows) - 1); seq > 0; seq-- {
		if _, ok := t.log.At(seq).Body.(*furl.Head); !ok && !t.aside[seq] && !t.follows[seq] && !t.listed[seq] {
			list = append(list, seq)
		}
	}
	return list
}

// isBranch reports whether the conversation that ends at a record is one that a
// person would look for, beside those that are listed.
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
	if t.left[end] {
		return said
	}
	slices.Reverse(own)
	return asked && !t.answeredAlike(from, answers(own))
}

// answeredAlike reports whether the listed conversation goes on from a record
// with these answers, without anything of the client's before the first: what
// the client put before it is gone. It is true for no answers.
func (t *tree) answeredAlike(from furl.Seq, want []*fingerprint.Reply) bool {
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
	have := answers(on)
	return len(have) >= len(want) && slices.EqualFunc(want, have[:len(want)], (*fingerprint.Reply).Same)
}

// answers gives what the answers among records are known by: what the model
// said at one request, whatever messages it is in.
func answers(records []furl.Record) []*fingerprint.Reply {
	var list []*fingerprint.Reply
	open := false    // the last answer may go on
	recalls := false // it does after an exchange too: furl answers its calls
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

// lastWords gives the beginning of the newest words at or before a record.
func (s *Session) lastWords(seq furl.Seq) (string, time.Time) {
	var at time.Time
	if seq != 0 {
		at = s.log.At(seq).At
	}
	for ; seq != 0; seq = s.log.At(seq).Parent {
		if m, ok := s.log.At(seq).Body.(*furl.Message); ok {
			if t := titleOf(m); t != "" {
				return t, at
			}
		}
	}
	return "", at
}
