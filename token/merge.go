package token

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// ranks maps the bytes of each token to its rank. Of two neighbouring parts
// of a piece that together are a token, those of the lowest rank are merged
// first (byte-pair encoding).
type ranks map[string]uint32

// o200kTokens is how many ordinary tokens o200k_base has.
const o200kTokens = 199_998

// vocabulary counts the tokens of single pieces. The module it takes the
// vocabulary from could count, too; counting on its tokens is five times as
// fast, and right on blank lines, which that module splits wrongly.
type vocabulary struct {
	ranks ranks
	cache pieceCache
}

var load = sync.OnceValue(newVocabulary)

func newVocabulary() *vocabulary {
	v := &vocabulary{ranks: make(ranks, o200kTokens)}
	published := codec.NewO200kBase()
	for id := range uint(o200kTokens) {
		if token, err := published.Decode([]uint{id}); err == nil {
			v.ranks[token] = uint32(id)
		}
	}
	return v
}

// maxPiece is the longest piece, in bytes, that is encoded as one. What the
// splitter does not split, such as a megabyte of one letter, is cut there, so
// that memory stays bounded; each cut adds a token or two at most.
const maxPiece = 4096

// countAll returns the number of tokens of a text, piece by piece.
func (v *vocabulary) countAll(text string) int {
	n := 0
	for len(text) > 0 {
		end := split(text)
		n += v.count(text[:end])
		text = text[end:]
	}
	return n
}

// count returns the number of tokens of one piece.
func (v *vocabulary) count(piece string) int {
	if len(piece) == 1 {
		return 1 // every byte is a token
	}
	if len(piece) > maxCached {
		n := 0
		for len(piece) > maxPiece {
			end := cut(piece, maxPiece)
			n += v.ranks.encode(piece[:end])
			piece = piece[end:]
		}
		return n + v.ranks.encode(piece)
	}
	h := hashOf(piece)
	if n, ok := v.cache.get(h, piece); ok {
		return n
	}
	n := v.ranks.encode(piece)
	v.cache.put(h, piece, n)
	return n
}

// cut returns the largest index up to at that does not split a character.
func cut(s string, at int) int {
	for i := at; i > at-4; i-- {
		if s[i]&0xC0 != 0x80 {
			return i
		}
	}
	return at // not UTF-8
}

// unmergeable is the rank of parts that are no token together.
const unmergeable = 1<<32 - 1

// encode returns the number of tokens of a piece of at most maxPiece bytes.
func (r ranks) encode(piece string) int {
	if _, ok := r[piece]; ok {
		return 1
	}
	if len(piece) <= maxScanned {
		return r.scan(piece)
	}
	return r.heap(piece)
}

func (r ranks) rank(pair string) uint32 {
	if rank, ok := r[pair]; ok {
		return rank
	}
	return unmergeable
}

// maxScanned is the length up to which looking through all pairs for the
// lowest is faster than keeping them in a heap.
const maxScanned = 64

// scan merges by looking through all pairs each time.
func (r ranks) scan(piece string) int {
	var starts [maxScanned + 1]uint8 // of the parts, and the end
	var pairs [maxScanned]uint32     // rank of the part and the next
	parts := len(piece)
	for i := range parts + 1 {
		starts[i] = uint8(i)
	}
	rank := func(i int) uint32 {
		if i+2 > parts {
			return unmergeable
		}
		return r.rank(piece[starts[i]:starts[i+2]])
	}
	for i := range parts {
		pairs[i] = rank(i)
	}
	for parts > 1 {
		lowest := 0
		for i := 1; i < parts-1; i++ {
			if pairs[i] < pairs[lowest] {
				lowest = i
			}
		}
		if pairs[lowest] == unmergeable {
			break
		}
		copy(starts[lowest+1:parts], starts[lowest+2:parts+1])
		copy(pairs[lowest+1:parts-1], pairs[lowest+2:parts])
		parts--
		pairs[lowest] = rank(lowest)
		if lowest > 0 {
			pairs[lowest-1] = rank(lowest - 1)
		}
	}
	return parts
}

// part is a node of the list that heap merges; parts are named by the byte
// they start at.
type part struct {
	prev, next int32
	rank       uint32 // of the part and the next
}

// heap merges with the pairs in a heap, for pieces of which scan would take
// too long.
func (r ranks) heap(piece string) int {
	n := len(piece)
	list := make([]part, n+1)
	queue := make(minHeap, 0, n)
	push := func(at int32) {
		p := &list[at]
		p.rank = unmergeable
		if int(p.next) >= n {
			return
		}
		if p.rank = r.rank(piece[at:list[p.next].next]); p.rank != unmergeable {
			queue.push(uint64(p.rank)<<32 | uint64(at))
		}
	}
	for i := range list {
		list[i] = part{prev: int32(i) - 1, next: int32(i) + 1}
	}
	for i := range n {
		push(int32(i))
	}
	parts := n
	for len(queue) > 0 {
		top := queue.pop()
		at := int32(uint32(top))
		p := &list[at]
		if p.rank != uint32(top>>32) {
			continue // one of the two was merged with another
		}
		gone := &list[p.next]
		p.next = gone.next
		list[p.next].prev = at
		gone.rank = unmergeable
		parts--
		push(at)
		if p.prev >= 0 {
			push(p.prev)
		}
	}
	return parts
}

// minHeap gives the smallest number first.
type minHeap []uint64

func (h *minHeap) push(x uint64) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up] <= s[i] {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *minHeap) pop() uint64 {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return top
		}
		if down+1 < last && s[down+1] < s[down] {
			down++
		}
		if s[i] <= s[down] {
			return top
		}
		s[i], s[down] = s[down], s[i]
		i = down
	}
}
