package token

import "github.com/furlhq/furl"

// Part is what was counted of a prompt or of a part of it, split by how
// providers bill it.
type Part struct {
	// Tokens counts everything but thinking (see furl.Message.Measure).
	Tokens int
	// Thinking counts thinking, which some providers drop from old replies.
	Thinking int
	// Items is how many tool calls and results there are: each costs more
	// than its words.
	Items int
	// Reasoning is thinking in the provider's own tokens, where it was
	// reported and could not be counted.
	Reasoning int
}

// Plus returns the sum of two parts.
func (p Part) Plus(q Part) Part {
	return Part{p.Tokens + q.Tokens, p.Thinking + q.Thinking, p.Items + q.Items, p.Reasoning + q.Reasoning}
}

// Minus returns p without q.
func (p Part) Minus(q Part) Part {
	return Part{p.Tokens - q.Tokens, p.Thinking - q.Thinking, p.Items - q.Items, p.Reasoning - q.Reasoning}
}

// add counts one block of the given size.
func (p *Part) add(k furl.Kind, tokens int) {
	switch k {
	case furl.KindThinking:
		p.Thinking += tokens
		return
	case furl.KindCall, furl.KindResult:
		p.Items++
	}
	p.Tokens += tokens
}

// PartOf counts blocks that were measured, such as those of a message or the
// preamble of a request.
func PartOf(blocks []furl.Block) Part {
	var p Part
	for i := range blocks {
		p.add(blocks[i].Kind, blocks[i].Tokens)
	}
	return p
}

// PartOfView counts what a view shows, without the thinking that the model's
// provider drops.
func PartOfView(v *furl.View, m *furl.Model) Part {
	var p Part
	from := ThinkingFrom(v, m)
	for i := range v.Messages {
		q := PartOfShown(&v.Messages[i])
		if i < from {
			q.Thinking = 0
		}
		p = p.Plus(q)
	}
	return p
}

// PartOfShown counts one shown message, thinking included.
func PartOfShown(s *furl.Shown) Part {
	var p Part
	for i := range s.Blocks {
		p.add(s.Blocks[i].Block.Kind, s.Blocks[i].Tokens)
	}
	return p
}

// ThinkingFrom is the index in the view's messages of the first whose thinking
// the model's provider keeps and bills; 0 where it keeps all.
func ThinkingFrom(v *furl.View, m *furl.Model) int {
	if !m.Thinking.LastOnly {
		return 0
	}
	for i := len(v.Messages) - 1; i >= 0; i-- {
		var before *furl.Message
		if i > 0 {
			before = v.Messages[i-1].Msg
		}
		if ends(before, v.Messages[i].Msg) {
			return i
		}
	}
	return 0
}

// ends reports whether a message is the user's words after an answer, with
// which the thinking of the tool calls before it is dropped where a provider
// does that. Words that come with results, or after them, leave it.
func ends(before, m *furl.Message) bool {
	return m.Role == furl.RoleUser && has(m, furl.KindText) && !has(m, furl.KindResult) &&
		(before == nil || !has(before, furl.KindResult))
}

func has(m *furl.Message, k furl.Kind) bool {
	for i := range m.Blocks {
		if m.Blocks[i].Kind == k {
			return true
		}
	}
	return false
}
