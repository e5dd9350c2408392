package token

import _ "embed"

// The vocabulary is o200k_base, which OpenAI publishes with tiktoken under the
// MIT licence (o200k.LICENSE). Of each token the file has what makes it, in
// order of rank: of the first 256 the byte that it is, of every other the two
// tokens that merge to it, 18 bits each, lowest first. The bytes of the others
// are not needed. Encoding ends with one merge where it ends with
// one token, and in whatever text a token comes up it is by that same merge:
// what stands beside it had no part in the merges before.
//
//go:embed o200k.bin
var o200kFile string

const (
	byteTokens  = 256
	o200kTokens = 199_998 // without the special ones
	tokenBits   = 18
)

// vocabulary says what two neighbouring tokens merge to. It has no pointers,
// so that the garbage collector never looks through it, and is 2 MB; the
// pairs stay in the program's file.
type vocabulary struct {
	bytes [byteTokens]uint32 // the token of each byte
	// A slot is 0 if it is free; else it has a token and, above it, some bits
	// of its pair's hash. A token is in the slot that the hash says, or behind
	// it in the first that was free.
	slots [1 << slotBits]uint32
}

const (
	slotBits = 19
	tagBits  = 32 - tokenBits
)

func newVocabulary() *vocabulary {
	v := &vocabulary{}
	for token := range uint32(byteTokens) {
		v.bytes[o200kFile[token]] = token
	}
	for token := uint32(byteTokens); token < o200kTokens; token++ {
		slot, tag := place(pairOf(token))
		for v.slots[slot] != 0 {
			slot = (slot + 1) % (1 << slotBits)
		}
		v.slots[slot] = tag<<tokenBits | token
	}
	return v
}

// pairOf returns the two tokens that make a token, the second above the first.
func pairOf(token uint32) uint64 {
	bit := (token - byteTokens) * 2 * tokenBits // the first of a byte, or its fifth
	p := o200kFile[byteTokens+bit/8:][:5]
	bits := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 | uint64(p[4])<<32
	return bits >> (bit % 8) % (1 << (2 * tokenBits))
}

// place returns where to look for a pair first, and its tag. The pairs are
// known beforehand: whatever a text has, no search goes past the longest run
// of slots that are taken, which a test holds short.
func place(pair uint64) (slot, tag uint32) {
	h := pair * 0x9E3779B97F4A7C15
	h = (h ^ h>>32) * 0x9E3779B97F4A7C15
	return uint32(h >> (64 - slotBits)), uint32(h >> (64 - slotBits - tagBits) % (1 << tagBits))
}

// none is what neighbours merge to that make no token: a rank behind all.
const none = 1<<32 - 1

// merge returns the token that two tokens make, or none. It is the rank of
// the merge, too: the lowest is to be done first.
func (v *vocabulary) merge(left, right uint32) uint32 {
	pair := uint64(left) | uint64(right)<<tokenBits
	slot, tag := place(pair)
	for v.slots[slot] != 0 {
		s := v.slots[slot]
		if token := s % (1 << tokenBits); s>>tokenBits == tag && pairOf(token) == pair {
			return token
		}
		slot = (slot + 1) % (1 << slotBits)
	}
	return none
}
