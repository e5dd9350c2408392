package policy

import "github.com/furlhq/furl"

// hasEdits reports whether a call on the path writes a file, in messages that are
// hidden too. The first call on a path reads all of it, later calls read only
// messages that are new.
func hasEdits(s *furl.State) bool {
	return furl.Memo(s, newEdits).in(s, s.Len())
}

// edits is what is known of the edits on a path.
type edits struct {
	messages int // read so far, up to the first one with an edit
	found    bool
	// original is of the path that a draft continues, and shared how many messages
	// they share.
	original *edits
	shared   int
}

func newEdits(original *edits, shared int) *edits {
	return &edits{original: original, messages: shared, shared: shared}
}

// in reports whether one of the first n messages of the path has an edit.
func (e *edits) in(s *furl.State, n int) bool {
	if e.original != nil && e.original.in(s, e.shared) {
		return true
	}
	for ; !e.found && e.messages < n; e.messages++ {
		_, m := s.Message(e.messages)
		for j := range m.Blocks {
			b := &m.Blocks[j]
			e.found = e.found || b.Kind == furl.KindCall && len(Written(b)) > 0
		}
	}
	return e.found && e.messages <= n
}
