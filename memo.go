package furl

// Memo is what a package derives from the messages of a path and extends while
// the path grows, so that it reads each message once. See State.Memo.
type Memo interface {
	// Fork returns a memo for a draft of the state. The draft shares the first
	// messages of the path; what it adds must not change the original.
	Fork(messages int) Memo
}

// Memo returns the memo that is kept with the state under a key, which should
// be of a type of the caller's package. On the first call it is what create
// returns. It lives as long as the state, which does not update it: the caller
// extends it by messages that are new. In a draft of the state (see Log.Draft) it
// is a fork of the original.
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
