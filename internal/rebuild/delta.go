package rebuild

import (
	"bytes"
	"encoding/binary"
)

// A patch makes one text of another: how many bytes both begin with and end
// with, and then the bytes between as pairs of a text to insert and a part of
// the source to copy. Numbers are varints.

// block is the size, in bytes, of the parts of the source that a patch looks
// for. Shorter ones are inserted.
const block = 16

// patch returns a patch that makes to of from.
func patch(from, to []byte) []byte {
	head := common(from, to)
	a, b := from[head:], to[head:]
	tail := commonEnd(a, b)
	a, b = a[:len(a)-tail], b[:len(b)-tail]
	out := binary.AppendUvarint(nil, uint64(head))
	out = binary.AppendUvarint(out, uint64(tail))
	return between(out, from, a, b, head)
}

// between appends the pairs for b, with parts of a, which begins at offset in
// from.
func between(out, from, a, b []byte, offset int) []byte {
	var places map[[block]byte]int
	if len(b) > 2*block && len(a) >= block {
		places = make(map[[block]byte]int, len(a)/block)
		for at := len(a) / block * block; at >= block; at -= block {
			places[[block]byte(a[at-block:at])] = at - block // the first one stays
		}
	}
	inserted := 0
	for at := 0; at+block <= len(b) && places != nil; {
		place, ok := places[[block]byte(b[at:at+block])]
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
	if inserted < len(b) {
		out = binary.AppendUvarint(out, uint64(len(b)-inserted))
		out = append(out, b[inserted:]...)
	}
	return out
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
