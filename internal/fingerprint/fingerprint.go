// Package fingerprint compares replies of a model that a client has reworded.
// Clients send replies back trimmed, joined, without the text next to tool calls,
// or with other call ids.
package fingerprint

import (
	"strings"
	"unicode"

	"github.com/furlhq/furl"
)

// Likeness says how similar two replies must be to match.
type Likeness int

const (
	SameCalls Likeness = iota // the calls have the same ids
	SameIDs                   // the ids have the same letters and digits
	OtherIDs                  // the calls have the same names and arguments
)

// Reply is the fingerprint of a reply: its calls, or without calls its text.
type Reply struct {
	Likeness  Likeness
	calls     int
	callChain furl.Digest // digest of the calls
	text      strings.Builder
}

// Add adds a message of the reply. It returns false for messages without a
// fingerprint: those with media, blocks of unknown kind or calls without an id.
func (g *Reply) Add(m *furl.Message) bool {
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; {
		case b.Own || b.Kind == furl.KindThinking:
		case b.Kind == furl.KindText:
			for word := range strings.FieldsSeq(b.Text) {
				g.text.WriteString(word)
			}
		case b.Kind == furl.KindCall && b.ID != "":
			own := *b
			own.ID = g.Likeness.normalizeID(b.ID)
			call := furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{own}, Raw: m.Raw}
			g.calls, g.callChain = g.calls+1, call.Extend(g.callChain)
		default:
			return false
		}
	}
	return true
}

// normalizeID returns the part of a call id that is compared.
func (l Likeness) normalizeID(id string) string {
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

// Same reports whether two fingerprints match.
func (g *Reply) Same(o *Reply) bool {
	if g.calls > 0 || o.calls > 0 {
		return g.calls == o.calls && g.callChain == o.callChain
	}
	return g.text.Len() > 0 && g.text.String() == o.text.String()
}

// IsUserText reports whether a message is a user message without tool results.
func IsUserText(m *furl.Message) bool {
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

// AddsNothing reports whether a message adds nothing to a chain
// (Message.Extend): it is empty, or has only thinking and blocks with Own set.
func AddsNothing(m *furl.Message) bool {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind != furl.KindThinking && !b.Own {
			return false
		}
	}
	return true
}

// FromModel reports whether a message has content of the model by which a history can be
// recognized: a reply, or a compaction by the provider.
func FromModel(m *furl.Message) bool {
	return m.Role == furl.RoleAssistant && !AddsNothing(m) || m.HasCompaction()
}
