package token

import (
	"hash/maphash"
	"sync/atomic"
)

// Texts repeat their words, so the counts of short pieces are kept, and those of
// long runs: a table of fixed size in which a newer piece takes the place of an
// older one. It has no pieces, only their hashes of 64 bits: 16 say the slot,
// and the other 48 are in it beside the count. So two pieces may be taken for
// one another, once in 2^48 pieces that are looked for; the count is then off by
// some tokens. No text can be written to that end, since the hash is seeded at
// random in each process.
type pieceCache [1 << cacheBits]atomic.Uint64

const (
	cacheBits = 16
	maxCached = 48 // bytes, and so tokens; longer pieces seldom return
	// longPiece is from where on merging takes so long that looking is worth
	// it all the same: lines of one character do return.
	longPiece = 256
)

var seed = maphash.MakeSeed()

func hashOf(piece string) uint64 { return maphash.String(seed, piece) }

// get returns the count of the piece with this hash. No piece has none.
func (c *pieceCache) get(h uint64) (tokens int, ok bool) {
	e := c[h%(1<<cacheBits)].Load()
	return int(e % (1 << cacheBits)), e>>cacheBits == h>>cacheBits && e%(1<<cacheBits) != 0
}

func (c *pieceCache) put(h uint64, tokens int) {
	c[h%(1<<cacheBits)].Store(h>>cacheBits<<cacheBits | uint64(tokens))
}
