package furl

import "crypto/sha256"

// Thinking is derived, not recorded: on models that bind thinking to what
// stood before it, a block is shown only if its prefix renders the same now
// as when it was written. The Exchange before a reply keeps the digest of that
// prefix. After a reduction is lifted, old blocks become valid again.

// Prefix returns the digest of the rendered messages without thinking, which
// Exchange.View records.
func (v *View) Prefix() Digest {
	var d Digest
	for i := range v.Messages {
		d = v.extend(d, &v.Messages[i])
	}
	return d
}

// extend chains the digest by one shown message.
func (v *View) extend(d Digest, sh *Shown) Digest {
	var x Digest
	if sh.Index >= 0 && sh.AsRecorded() {
		x = v.State.exactDigest(sh.Index)
	} else {
		x = exactShown(sh.Msg.Role, sh.Blocks)
	}
	var both [2 * len(d)]byte
	copy(both[:], d[:])
	copy(both[len(d):], x[:])
	return sha256.Sum256(both[:])
}

// exactDigest covers everything of message i that a provider renders, thinking
// and cache marks aside; unlike Message.Digest, results count by content.
func (s *State) exactDigest(i int) Digest {
	if s.exact[i].IsZero() {
		m := s.msgs[i]
		d := newDigester()
		defer d.done()
		d.field(string(m.Role))
		for b := range m.Blocks {
			blk := &m.Blocks[b]
			if blk.Kind != KindThinking {
				blk.exact(d, blk.Text, m.Raw)
			}
		}
		s.exact[i] = d.sum()
	}
	return s.exact[i]
}

func exactShown(role Role, blocks []ShownBlock) Digest {
	d := newDigester()
	defer d.done()
	d.field(string(role))
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Block.Kind == KindThinking:
		case b.By != 0:
			d.field(b.Block.ID)
			d.field(b.Text)
		default:
			b.Block.exact(d, b.Block.Text, nil)
		}
	}
	return d.sum()
}

// unbind leaves out thinking whose prefix renders differently now, and what
// follows a block that was left out from the middle.
func (b *viewer) unbind() {
	v, s := b.v, b.s
	if s.layers.len() == 0 {
		return // nothing was ever hidden on this path
	}
	var d, before Digest // of everything so far; before the current reply
	var last Pos         // newest thinking block shown so far
	var gone []Pos       // thinking left out
	reply := -1          // exchange of the current reply
	for i := range v.Messages {
		sh := &v.Messages[i]
		if sh.Index >= 0 && sh.Msg.Role == RoleAssistant {
			n := s.exchOf[sh.Index]
			if n != reply || n < 0 || s.exchanges[n].msgs == sh.Index {
				reply, before = n, d
			}
			for j := range sh.Blocks {
				sb := &sh.Blocks[j]
				if sb.Block.Kind != KindThinking {
					continue
				}
				if !s.bound(n, before, last) {
					gone = append(gone, sb.Pos)
					continue
				}
				last = sb.Pos
			}
		}
		d = v.extend(d, sh)
	}
	if len(gone) > 0 {
		v.Dropped = len(gone)
		b.drop(gone)
	}
}

// bound reports whether thinking in the reply to exchange n is valid after a
// prefix with the digest d whose newest thinking shown is last. Thinking may
// be missing from the front only (Anthropic, preserved thinking: "remove
// thinking from the front"), so last is what it was, or none, or of the same
// reply.
func (s *State) bound(n int, d Digest, last Pos) bool {
	if n < 0 || s.exchanges[n].ex.View.IsZero() {
		return false // the prefix was not recorded
	}
	x := s.exchanges[n]
	if x.ex.View != d {
		return false
	}
	return last == Pos{} || last == x.ex.Thinking || last.Msg > x.seq
}

// drop removes blocks from the view.
func (b *viewer) drop(gone []Pos) {
	v := b.v
	kept := v.blocks[:0:0]
	for i := range v.Messages {
		lo := len(kept)
		for _, sb := range v.Messages[i].Blocks {
			if len(gone) > 0 && sb.Pos == gone[0] && sb.Pos.Msg != 0 {
				gone = gone[1:]
				continue
			}
			kept = append(kept, sb)
		}
		b.spans[i] = blockSpan{lo, len(kept)}
	}
	v.blocks = kept
	for i := range v.Messages {
		v.Messages[i].Blocks = kept[b.spans[i].lo:b.spans[i].hi:b.spans[i].hi]
	}
}

// DropsThinking reports whether m, following before, is user text after an
// answer, at which providers that keep only the last thinking
// (Thinking.LastOnly) drop older thinking. Text together with results, or right
// after them, does not. Before is nil for the first message.
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

// unbill finds the message at which the provider drops thinking. What it drops
// costs nothing, so hiding it frees nothing.
func (b *viewer) unbill() {
	v := b.v
	for i := len(v.Messages) - 1; i > 0; i-- {
		if v.Messages[i].Msg.DropsThinking(v.Messages[i-1].Msg) {
			v.ThinkingFrom = i
			break
		}
	}
	for i := range v.ThinkingFrom {
		blocks := v.Messages[i].Blocks
		for j := range blocks {
			if blocks[j].Block.Kind == KindThinking {
				blocks[j].Tokens = 0
			}
		}
	}
}
