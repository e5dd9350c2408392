package furl

// ThinkingFrom is the index in Messages of the first whose thinking the
// model's provider keeps and bills; 0 where it keeps all. Providers that keep
// only the last (Thinking.LastOnly) drop what stands before the newest words
// of the user.
func (v *View) ThinkingFrom(m *Model) int {
	if !m.Thinking.LastOnly {
		return 0
	}
	for i := len(v.Messages) - 1; i >= 0; i-- {
		var before *Message
		if i > 0 {
			before = v.Messages[i-1].Msg
		}
		if v.Messages[i].Msg.DropsThinking(before) {
			return i
		}
	}
	return 0
}

// DropsThinking reports whether m, behind the message before, is the user's
// words after an answer, with which a provider that keeps only the last
// thinking (Thinking.LastOnly) drops that of the tool calls before it. Words
// that come with results, or right behind them, leave it. Before is nil for
// the first message.
func (m *Message) DropsThinking(before *Message) bool {
	return m.Role == RoleUser && m.has(KindText) && !m.has(KindResult) &&
		(before == nil || !before.has(KindResult))
}

func (m *Message) has(k Kind) bool {
	for i := range m.Blocks {
		if m.Blocks[i].Kind == k {
			return true
		}
	}
	return false
}

// unbill takes the thinking in front of message from for nothing: the provider
// drops it itself, so hiding it frees nothing.
func (b *viewer) unbill(from int) {
	for i := range min(from, len(b.v.Messages)) {
		blocks := b.v.Messages[i].Blocks
		for j := range blocks {
			if blocks[j].Block.Kind == KindThinking {
				blocks[j].Tokens = 0
			}
		}
	}
}
