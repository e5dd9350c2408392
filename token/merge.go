package token

import "sync"

// maxPiece is the longest piece, in bytes, that is encoded as one. Longer
// pieces, such as a megabyte of one letter, are cut there to bound memory;
// each cut adds at most two tokens.
const maxPiece = 4096

// encode returns the number of tokens of a piece of up to maxPiece bytes. Of
// all neighbours that form a token together, those of the lowest rank are
// merged first, until there are none (byte-pair encoding).
func (v *vocabulary) encode(piece string) int {
	if len(piece) <= maxScanned {
		return v.scan(piece)
	}
	return v.heap(piece)
}

// cut returns the largest index up to at that does not split a character.
func cut(s string, at int) int {
	for i := at; i > max(0, at-4); i-- {
		if s[i]&0xC0 != 0x80 {
			return i
		}
	}
	return at // not UTF-8
}

// maxScanned is the length up to which scanning all pairs for the lowest rank
// is faster than a heap.
const maxScanned = 64

// scan merges by scanning all pairs each time.
func (v *vocabulary) scan(piece string) int {
	var parts, merged [maxScanned]uint32 // tokens, and the merges of each with the next
	n := len(piece)
	for i := range n {
		parts[i] = v.bytes[piece[i]]
	}
	for i := range n - 1 {
		merged[i] = v.merge(parts[i], parts[i+1])
	}
	for n > 1 {
		lowest := 0
		for i := 1; i < n-1; i++ {
			if merged[i] < merged[lowest] {
				lowest = i
			}
		}
		if merged[lowest] == none {
			break
		}
		n--
		parts[lowest] = merged[lowest]
		copy(parts[lowest+1:n], parts[lowest+2:n+1])
		copy(merged[lowest:n-1], merged[lowest+1:n])
		if lowest < n-1 {
			merged[lowest] = v.merge(parts[lowest], parts[lowest+1])
		}
		if lowest > 0 {
			merged[lowest-1] = v.merge(parts[lowest-1], parts[lowest])
		}
	}
	return n
}

// part is a node of the list that heap merges; parts are identified by their
// first byte.
type part struct {
	prev, next int32
	token      uint32
	merged     uint32 // token of it and the next together
}

// scratch is heap's memory, reused for later pieces.
type scratch struct {
	list  [maxPiece + 1]part
	queue minHeap
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// heap merges with the pairs in a heap, for pieces for which scan would be
// too slow.
func (v *vocabulary) heap(piece string) int {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	n := len(piece)
	list, queue := s.list[:n+1], s.queue[:0]
	push := func(at int32) {
		p := &list[at]
		p.merged = none
		if int(p.next) >= n {
			return
		}
		if p.merged = v.merge(p.token, list[p.next].token); p.merged != none {
			queue.push(uint64(p.merged)<<32 | uint64(at))
		}
	}
	for i := range n {
		list[i] = part{prev: int32(i) - 1, next: int32(i) + 1, token: v.bytes[piece[i]]}
	}
	for i := range n {
		push(int32(i))
	}
	parts := n
	for len(queue) > 0 {
		top := queue.pop()
		at := int32(uint32(top))
		p := &list[at]
		if p.merged != uint32(top>>32) {
			continue // one of the two was merged with another
		}
		gone := &list[p.next]
		p.token = p.merged
		p.next = gone.next
		list[p.next].prev = at
		gone.merged = none
		parts--
		push(at)
		if p.prev >= 0 {
			push(p.prev)
		}
	}
	s.queue = queue
	return parts
}

// minHeap returns the smallest number first.
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
