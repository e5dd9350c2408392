// Package gist recognizes an answer of a model in other words: clients send it
// back trimmed, joined, without what was said beside its calls, or with other
// call ids.
package gist

import (
	"strings"
	"unicode"

	"github.com/furlhq/furl"
)

// Likeness says how alike two answers must be.
type Likeness int

const (
	SameCalls Likeness = iota // the calls have the same ids
	SameIDs                   // the ids have the same letters and digits
	OtherIDs                  // the calls have the same names and arguments
)

// Gist is what an answer is known by in other words.
type Gist struct {
	Like  Likeness
	calls int
	chain furl.Digest // of the calls
	words strings.Builder
}

// Add adds a message to the gist. It is false for what is not known so: media,
// blocks of unknown kind, calls without an id.
func (g *Gist) Add(m *furl.Message) bool {
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; {
		case b.Own || b.Kind == furl.KindThinking:
		case b.Kind == furl.KindText:
			for word := range strings.FieldsSeq(b.Text) {
				g.words.WriteString(word)
			}
		case b.Kind == furl.KindCall && b.ID != "":
			own := *b
			own.ID = g.Like.id(b.ID)
			call := furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{own}, Raw: m.Raw}
			g.calls, g.chain = g.calls+1, call.Extend(g.chain)
		default:
			return false
		}
	}
	return true
}

// id gives what of a call's id counts.
func (l Likeness) id(id string) string {
	switch l {
	case SameIDs:
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, id)
	case OtherIDs:
		return ""
	}
	return id
}

// Same reports whether two gists are of one answer.
func (g *Gist) Same(o *Gist) bool {
	if g.calls > 0 || o.calls > 0 {
		return g.calls == o.calls && g.chain == o.chain
	}
	return g.words.Len() > 0 && g.words.String() == o.words.String()
}

// OnlyWords reports whether a message is words of the user and nothing else.
func OnlyWords(m *furl.Message) bool {
	if m.Role != furl.RoleUser {
		return false
	}
	for i := range m.Blocks {
		if m.Blocks[i].Kind == furl.KindResult {
			return false
		}
	}
	return true
}

// Bare reports whether a message adds nothing to a chain (Message.Extend): it is
// empty, or has only thinking and blocks with Own set.
func Bare(m *furl.Message) bool {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind != furl.KindThinking && !b.Own {
			return false
		}
	}
	return true
}
