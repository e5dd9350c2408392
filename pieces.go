package furl

import "slices"

// Clients of Gemini send a streamed reply back as the pieces in which it came, each a message of
// its own, or joined. The text of a reply may be cut anywhere. So the chain of digests at the end
// of a reply is that of its pieces joined.

// inPieces reports whether a message may be a piece of a reply.
func (m *Message) inPieces() bool { return m.Format == FormatGemini && m.Role == RoleAssistant }

// joinedText returns the text at block i joined with the texts after it, and the index of the
// last of them. Only thinking, and blocks with Own set unless own is set, are between them.
func (m *Message) joinedText(i int, own bool) (joined Block, last int) {
	joined, last = m.Blocks[i], i
	for k := i + 1; k < len(m.Blocks); k++ {
		switch b := &m.Blocks[k]; {
		case b.Kind == KindThinking || b.Own && !own:
		case b.Kind == KindText:
			joined.Text += b.Text
			last = k
		default:
			return joined, last
		}
	}
	return joined, last
}

// maxPieces is how many messages before a piece are joined with it: more than a reply has.
const maxPieces = 512

// ChainAt returns the chain of digests at the end of message i of a history. chains are those at
// the ends of the messages before it. It is Message.Extend, except that texts of the model in
// adjacent messages are joined, in formats whose clients send a reply in pieces.
func ChainAt(msgs []Message, chains []Digest, i int) Digest {
	return extendPieces(i, func(i int) *Message { return &msgs[i] }, func(i int) Digest {
		if i == 0 {
			return Digest{}
		}
		return chains[i-1]
	})
}

// extendPieces is ChainAt. before returns the chain before message i.
func extendPieces(i int, at func(int) *Message, before func(int) Digest) Digest {
	m := at(i)
	if !m.inPieces() || len(m.Blocks) == 0 || i == 0 {
		return m.Extend(before(i))
	}
	start := i
	for k := i - 1; k >= 0 && i-k <= maxPieces; k-- {
		p := at(k)
		if addsNothing(p) && (p.HasOwn() || p.inPieces()) {
			continue
		}
		if !p.inPieces() || !endsInText(p) || !startsInText(at(start)) {
			break
		}
		start = k
	}
	chain, text := before(start), ""
	for k := start; k <= i; k++ {
		p := at(k)
		if k > start && !p.inPieces() || addsNothing(p) && k < i {
			continue // between two pieces
		}
		piece := *p
		piece.Blocks = slices.Clone(p.Blocks)
		if text != "" {
			b := firstCounted(piece.Blocks)
			if b < 0 {
				break
			}
			piece.Blocks[b].Text = text + piece.Blocks[b].Text
			text = ""
		}
		if k < i {
			b := lastCounted(piece.Blocks)
			text = piece.Blocks[b].Text
			joined := b
			for joined > 0 && (piece.Blocks[joined-1].Kind == KindText || !counted(&piece.Blocks[joined-1])) {
				joined--
				if counted(&piece.Blocks[joined]) {
					text = piece.Blocks[joined].Text + text
				}
			}
			piece.Blocks = piece.Blocks[:joined]
		}
		chain = piece.Extend(chain)
	}
	return chain
}

// counted reports whether a block is part of a chain.
func counted(b *Block) bool { return b.Kind != KindThinking && !b.Own }

// addsNothing reports whether a message adds nothing to a chain.
func addsNothing(m *Message) bool { return firstCounted(m.Blocks) < 0 }

func firstCounted(blocks []Block) int {
	return slices.IndexFunc(blocks, func(b Block) bool { return counted(&b) })
}

func lastCounted(blocks []Block) int {
	for i := len(blocks) - 1; i >= 0; i-- {
		if counted(&blocks[i]) {
			return i
		}
	}
	return -1
}

func startsInText(m *Message) bool {
	i := firstCounted(m.Blocks)
	return i >= 0 && m.Blocks[i].Kind == KindText
}

func endsInText(m *Message) bool {
	i := lastCounted(m.Blocks)
	return i >= 0 && m.Blocks[i].Kind == KindText
}

// anchorOf returns the id of a call, or of the call that a result answers, as digests have
// it: "" where ids identify nothing.
func anchorOf(b *Block, m *Message) string {
	if !m.Format.hasCallIDs() {
		return ""
	}
	return b.ID
}
