package token

import (
	"slices"

	"github.com/furlhq/furl"
)

// Part is the counted size of a prompt or a part of it, split by how
// providers bill it.
type Part struct {
	// Tokens counts everything except thinking (see furl.Message.Measure).
	Tokens int
	// Thinking counts thinking, which some providers drop from old replies.
	Thinking int
	// Items is the number of tool calls and results: each costs more than its
	// text.
	Items int
	// Reasoning is thinking in the provider's tokens, where it was reported
	// and could not be counted.
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

// PartOfView counts what a view shows, without the thinking that the provider of
// its model drops.
func PartOfView(v *furl.View) Part {
	var p Part
	for i := range v.Messages {
		p = p.Plus(PartOfShown(&v.Messages[i]))
	}
	return p
}

// PartOfShown counts one shown message.
func PartOfShown(s *furl.Shown) Part {
	var p Part
	for i := range s.Blocks {
		p.add(s.Blocks[i].Block.Kind, s.Blocks[i].Tokens)
	}
	return p
}

// has reports whether a message has a block of the kind.
func has(m *furl.Message, k furl.Kind) bool {
	return slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == k })
}
