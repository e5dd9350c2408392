package furl

import "slices"

// Furl answers calls of its own recall tools itself. Such a call and its
// result stand on the path like any other, so that every view, stage and search
// knows them, but the client never saw them: their blocks are marked Own, and
// the chain of digests, by which a client's history finds its place, leaves
// them out. What the model says before its call and after the answer is one
// message to the client.

// HasOwn reports whether a block of the message is furl's own: the message is
// then another than the client's, if the client has one at all.
func (m *Message) HasOwn() bool {
	for i := range m.Blocks {
		if m.Blocks[i].Own {
			return true
		}
	}
	return false
}

// Bare reports whether the message adds nothing to a chain of digests: it is
// empty, or thinking and what is furl's own.
func (m *Message) Bare() bool {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind != KindThinking && !b.Own {
			return false
		}
	}
	return true
}

// BetweenWords stands between what a model said before a call that furl answered
// and what it said behind, where a client has both in one text.
const BetweenWords = "\n\n"

// Extend gives the chain of digests of the path with one message more. It is
// Message.Extend, but that in Chat Completions, where a message has its words
// in one string, the words before a call that furl answered and those behind
// are one text.
func (s *State) Extend(m *Message) Digest {
	n := len(s.msgs)
	first := m.firstWords()
	if first < 0 || m.Format != FormatChat || n == 0 || !s.msgs[n-1].HasOwn() {
		return m.Extend(s.Chain(n))
	}
	text, at := m.Blocks[first].Text, n
	for i := n - 1; i >= 0 && s.msgs[i].answered(); i-- {
		if w := s.msgs[i].firstWords(); w >= 0 {
			before := s.msgs[i].Blocks[w].Text
			if before != "" && text != "" {
				before += BetweenWords
			}
			text, at = before+text, i
		}
	}
	joined := *m
	joined.Blocks = slices.Clone(m.Blocks)
	joined.Blocks[first].Text = text
	return joined.Extend(s.Chain(at))
}

// answered reports whether all calls of a message are furl's own, or it is the
// answer to such calls: what follows goes on with the same message.
func (m *Message) answered() bool {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == KindCall && !b.Own {
			return false
		}
	}
	return m.HasOwn()
}

// firstWords is the text that an assistant's message begins with, thinking
// aside; -1 if it begins with none.
func (m *Message) firstWords() int {
	if m.Role != RoleAssistant {
		return -1
	}
	i := slices.IndexFunc(m.Blocks, func(b Block) bool { return b.Kind != KindThinking })
	if i < 0 || m.Blocks[i].Kind != KindText {
		return -1
	}
	return i
}
