package rebuild

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// A patch makes one text of another: how many bytes both begin with and end
// with, and then the bytes between as pairs of a text to insert and a part of
// the source to copy. Numbers are varints.

// block is the size, in bytes, of the parts of the source that a patch looks
// for. Shorter ones are inserted.
const block = 16

// patcher makes patches. It keeps the memory of its table between them.
type patcher struct {
	// slots is a hash table with the first place of each block of the source, plus one; 0 is
	// free. Its length is a power of two.
	slots []int32
}

// maxSource is the size, in bytes, of the longest source whose blocks a patcher finds.
const maxSource = 1 << 30

// patch appends a patch that makes to of from. It gives up, and returns false, when the patch
// is certain to have limit bytes or more.
func (p *patcher) patch(out, from, to []byte, limit int) ([]byte, bool) {
	limit += len(out)
	head := common(from, to)
	a, b := from[head:], to[head:]
	tail := commonEnd(a, b)
	a, b = a[:len(a)-tail], b[:len(b)-tail]
	out = binary.AppendUvarint(out, uint64(head))
	out = binary.AppendUvarint(out, uint64(tail))
	out = p.between(out, a, b, head, limit)
	return out, len(out) < limit
}

// between appends the pairs for b, with parts of a, which begins at offset in the source. The
// result has limit bytes or more if the pairs do not fit.
func (p *patcher) between(out, a, b []byte, offset, limit int) []byte {
	inserted := 0
	if len(b) > 2*block && len(a) >= block && len(a) <= maxSource {
		p.fill(a)
		// The next part may begin in the block before it.
		for at := 0; at+block <= len(b) && at-inserted-block < limit-len(out); {
			place, ok := p.find(a, b[at:at+block])
			if !ok {
				at++
				continue
			}
			for place > 0 && at > inserted && a[place-1] == b[at-1] {
				place, at = place-1, at-1
			}
			n := common(a[place:], b[at:])
			out = binary.AppendUvarint(out, uint64(at-inserted))
			out = append(out, b[inserted:at]...)
			out = binary.AppendUvarint(out, uint64(offset+place))
			out = binary.AppendUvarint(out, uint64(n))
			at += n
			inserted = at
		}
	}
	if inserted < len(b) {
		out = binary.AppendUvarint(out, uint64(len(b)-inserted))
		out = append(out, b[inserted:]...)
	}
	return out
}

// fill makes a table of the blocks of a source.
func (p *patcher) fill(a []byte) {
	n := 1 << bits.Len(uint(2*(len(a)/block)))
	p.slots = slices.Grow(p.slots[:0], n)[:n]
	clear(p.slots)
	for at := 0; at+block <= len(a); at += block {
		if slot, known := p.slot(a, a[at:at+block]); !known {
			p.slots[slot] = int32(at) + 1
		}
	}
}

// find returns the first place of a block in the source.
func (p *patcher) find(a, b []byte) (place int, ok bool) {
	slot, ok := p.slot(a, b)
	return int(p.slots[slot]) - 1, ok
}

// slot returns the slot of a block, and whether it is in the table.
func (p *patcher) slot(a, b []byte) (slot uint64, known bool) {
	x, y := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	hi, lo := bits.Mul64(x^0x9e3779b97f4a7c15, y^0xc2b2ae3d27d4eb4f)
	mask := uint64(len(p.slots) - 1)
	for slot = (hi ^ lo) & mask; ; slot = (slot + 1) & mask {
		place := int(p.slots[slot]) - 1
		if place < 0 {
			return slot, false
		}
		if binary.LittleEndian.Uint64(a[place:]) == x && binary.LittleEndian.Uint64(a[place+8:]) == y {
			return slot, true
		}
	}
}

// patched applies a patch. ok is false if it is not one for this source, or
// makes more than limit bytes.
func patched(from, patch []byte, limit int) (_ []byte, ok bool) {
	r := reader{in: patch}
	head, tail := r.number(), r.number()
	if r.failed || head+tail > len(from) || len(from) > limit {
		return nil, false
	}
	out := bytes.Clone(from[:head])
	for r.left() > 0 {
		out = append(out, r.bytes(r.number())...)
		if r.left() == 0 {
			break
		}
		at, n := r.number(), r.number()
		if r.failed || at > len(from) || n > len(from)-at || len(out)+n > limit {
			return nil, false
		}
		out = append(out, from[at:at+n]...)
	}
	return append(out, from[len(from)-tail:]...), !r.failed
}

// common is how many bytes two texts begin with in common.
func common(a, b []byte) (n int) {
	for len(a)-n >= 64 && len(b)-n >= 64 && bytes.Equal(a[n:n+64], b[n:n+64]) {
		n += 64
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// commonEnd is how many bytes two texts end with in common.
func commonEnd(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
