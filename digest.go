package furl

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Digest is a SHA-256.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:8]) }

// IsZero reports whether d was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// DigestOf is the digest of some bytes.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// Seal computes the message's Digest over its canonical blocks: role, words,
// ids, tool names, arguments with sorted keys; media and opaque blocks by
// their bytes. Left out is what clients change without meaning to say
// something else: cache marks, thinking, key order, the string form of
// content against the block form, and the content of tool results, which
// count by their call's id alone because clients clear old results
// themselves.
func (m *Message) Seal() { m.Digest = m.Extend(Digest{}) }

// Extend continues a chain of digests by the message. Chaining goes block by
// block, so that messages of one role in a row give the same chain however
// the client groups their blocks.
func (m *Message) Extend(chain Digest) Digest {
	h := sha256.New()
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind == KindThinking {
			continue
		}
		h.Reset()
		h.Write(chain[:])
		b.canonical(h, m)
		h.Sum(chain[:0])
	}
	return chain
}

func (b *Block) canonical(h hash.Hash, m *Message) {
	role := m.Role
	if b.Kind == KindResult {
		role = RoleTool // Anthropic carries results in user messages
	}
	writeField(h, string(role))
	writeField(h, b.Kind.String())
	switch b.Kind {
	case KindText:
		writeField(h, b.Text)
	case KindCall:
		writeField(h, b.ID)
		writeField(h, b.Name)
		writeBytes(h, canonicalJSON(b.Args))
	case KindResult:
		writeField(h, b.ID)
	case KindImage, KindDocument:
		for _, media := range b.Media {
			h.Write(media.Digest[:])
		}
	default:
		writeField(h, b.Name)
		if b.End > b.Start && b.End <= len(m.Raw) {
			writeBytes(h, canonicalJSON(m.Raw[b.Start:b.End]))
		} else {
			writeField(h, b.Text)
		}
	}
}

// writeField writes a length and a string, so that fields cannot run together.
func writeField(h hash.Hash, s string) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}

func writeBytes(h hash.Hash, b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}

// exact adds everything of the block that a provider renders, cache marks
// aside, with text in place of the recorded one.
func (b *Block) exact(h hash.Hash, text string, raw []byte) {
	writeField(h, b.Kind.String())
	writeField(h, b.ID)
	writeField(h, b.Name)
	writeField(h, text)
	writeBytes(h, b.Args)
	if b.Error {
		writeField(h, "error")
	}
	for i := range b.Media {
		h.Write(b.Media[i].Digest[:])
	}
	if b.Kind == KindOpaque && b.End > b.Start && b.End <= len(raw) {
		writeBytes(h, raw[b.Start:b.End])
	}
}
