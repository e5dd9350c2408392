package token

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// Texts repeat their words, so the counts of short pieces are kept: a table of
// fixed size in which a newer piece takes the place of an older one. What is
// in it changes how long counting takes and nothing else.
const (
	cacheSlots = 1 << 16
	maxCached  = 48 // bytes; longer pieces seldom return
)

type pieceCache struct {
	slots [cacheSlots]atomic.Pointer[counted]
}

type counted struct {
	piece  string
	tokens int
}

var seed = maphash.MakeSeed()

func hashOf(piece string) uint64 { return maphash.String(seed, piece) }

func (c *pieceCache) get(h uint64, piece string) (int, bool) {
	e := c.slots[h%cacheSlots].Load()
	if e == nil || e.piece != piece {
		return 0, false
	}
	return e.tokens, true
}

func (c *pieceCache) put(h uint64, piece string, tokens int) {
	// Cloned, so as not to hold on to the text it was cut from.
	c.slots[h%cacheSlots].Store(&counted{strings.Clone(piece), tokens})
}
