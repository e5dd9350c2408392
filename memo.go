package furl

// Memo is what a package derives from the messages of a path, extended as the
// path grows, so that each message is read once.
type Memo interface {
	// Fork returns a memo for a draft that shares the first messages of the
	// path. What the draft adds must not change the original.
	Fork(messages int) Memo
}

// Memo returns the memo kept with the state under a key of a type of the
// caller's package, at first the result of create. The caller extends it by new
// messages. A draft of the state has a fork of it.
func (s *State) Memo(key any, create func() Memo) Memo { return s.memos.get(key, create) }

// memos are the memos of a state and of the copies of it that have the same
// messages.
type memos struct {
	byKey    map[any]Memo
	original *memos // of a draft
	messages int    // of the path that the draft continues
}

func (m *memos) get(key any, create func() Memo) Memo {
	memo, ok := m.byKey[key]
	if ok {
		return memo
	}
	if m.original != nil {
		memo = m.original.get(key, create).Fork(m.messages)
	} else {
		memo = create()
	}
	if m.byKey == nil {
		m.byKey = make(map[any]Memo)
	}
	m.byKey[key] = memo
	return memo
}

// draft returns the memos of a draft that continues so many messages.
func (m *memos) draft(messages int) *memos { return &memos{original: m, messages: messages} }
