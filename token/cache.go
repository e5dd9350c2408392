package token

import (
	"hash/maphash"
	"sync/atomic"
)

// pieceCache stores the token counts of short pieces, because texts repeat
// their words, and of long runs. It is a table of fixed size in which a newer
// piece replaces an older one. It stores 64-bit hashes instead of the pieces:
// 16 bits select the slot, and the other 48 are stored in it next to the
// count. Two pieces can therefore be confused, about once in 2^48 lookups;
// the count is then wrong by a few tokens. This cannot be provoked, because
// the hash is seeded randomly in each process.
type pieceCache [1 << cacheBits]atomic.Uint64

const (
	cacheBits = 16
	maxCached = 48 // bytes, and so tokens; longer pieces rarely repeat
	// longPiece is the length from which merging is so slow that a lookup is
	// worth it again: lines of one character do repeat.
	longPiece = 256
)

var seed = maphash.MakeSeed()

func hashOf(piece string) uint64 { return maphash.String(seed, piece) }

// get returns the count of the piece with this hash.
func (c *pieceCache) get(h uint64) (tokens int, ok bool) {
	e := c[h%(1<<cacheBits)].Load()
	return int(e % (1 << cacheBits)), e>>cacheBits == h>>cacheBits && e%(1<<cacheBits) != 0
}

func (c *pieceCache) put(h uint64, tokens int) {
	c[h%(1<<cacheBits)].Store(h>>cacheBits<<cacheBits | uint64(tokens))
}
