package token

import _ "embed"

// The vocabulary is o200k_base, which OpenAI publishes with tiktoken under
// the MIT licence (o200k.LICENSE). The file contains, in order of rank, how
// each token is made: for the first 256 tokens their byte, for each other
// token the two tokens that merge to it, 18 bits each, lowest first. The
// bytes of these tokens are not needed. If encoding a token's bytes ends with
// one merge, then the token is made by that same merge in any text: its
// surroundings have no part in the merges before.
//
//go:embed o200k.bin
var o200kFile string

const (
	byteTokens  = 256
	o200kTokens = 199_998 // without the special ones
	tokenBits   = 18
)

// vocabulary maps two adjacent tokens to the token they merge to. It has no
// pointers, so the garbage collector does not scan it, and takes 2 MB; the
// pairs stay in the program's file.
type vocabulary struct {
	bytes [byteTokens]uint32 // the token of each byte
	// A slot is 0 if it is free. Otherwise it contains a token and, in the
	// high bits, some bits of its pair's hash. A token is in the slot given
	// by the hash, or in the first free one after it.
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

// pairOf returns the two tokens that make a token, the second in the high
// bits.
func pairOf(token uint32) uint64 {
	bit := (token - byteTokens) * 2 * tokenBits // the first bit of a byte, or its fifth
	p := o200kFile[byteTokens+bit/8:][:5]
	bits := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 | uint64(p[4])<<32
	return bits >> (bit % 8) % (1 << (2 * tokenBits))
}

// place returns the first slot for a pair, and its tag. The set of pairs is
// fixed, so for any text a search ends within the longest run of used slots,
// which a test keeps short.
func place(pair uint64) (slot, tag uint32) {
	h := pair * 0x9E3779B97F4A7C15
	h = (h ^ h>>32) * 0x9E3779B97F4A7C15
	return uint32(h >> (64 - slotBits)), uint32(h >> (64 - slotBits - tagBits) % (1 << tagBits))
}

// none is the merge of neighbours that form no token: a rank after all
// others.
const none = 1<<32 - 1

// merge returns the token that two tokens form, or none. The token is also
// the rank of the merge: lower ranks are merged first.
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
