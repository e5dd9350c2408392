package rawjson

import (
	"bytes"
	"iter"
)

// Names are the fields of one kind of object that a caller reads. Call
// [NewNames] once and [Reader.FieldsOf] for each object.
type Names struct {
	list    []string
	longest int
	seed    uint32
	// slot contains the index in list, plus one, of the name with that hash.
	slot [256]uint8
}

const (
	// maxNames is the number of bits with which FieldsOf records seen names.
	maxNames = 64
	// maxFolded is the largest number of bytes of a letter that folds to an
	// ASCII letter: U+212A, which folds to k.
	maxFolded = 3
)

// NewNames returns a set of names in lower-case ASCII. It panics if a name is
// not, if one occurs twice, or if there are more than 64.
func NewNames(names ...string) *Names {
	if len(names) > maxNames {
		panic("rawjson: too many names")
	}
	for _, name := range names {
		for _, c := range []byte(name) {
			if c >= 0x80 || 'A' <= c && c <= 'Z' {
				panic("rawjson: name " + name + " is not lower-case ASCII")
			}
		}
	}
	n := &Names{list: names}
	for _, name := range names {
		n.longest = max(n.longest, len(name))
	}
	for !n.fill() { // a few tries, because there are many more slots than names
		if n.seed++; n.seed > 1<<20 {
			panic("rawjson: a name occurs twice")
		}
	}
	return n
}

// fill assigns each name its slot, and reports false on a collision.
func (n *Names) fill() bool {
	clear(n.slot[:])
	for i, name := range n.list {
		h := n.hash([]byte(name))
		if n.slot[h] != 0 {
			return false
		}
		n.slot[h] = uint8(i + 1)
	}
	return true
}

// hash is equal for names that differ only in the case of ASCII letters.
func (n *Names) hash(key []byte) uint8 {
	h := n.seed
	for _, c := range key {
		h = (h ^ uint32(c|0x20)) * 16777619
	}
	return uint8(h >> 24)
}

// find returns the index of the name that is equal to key, -1 if there is
// none. exact is false if the two differ in case.
func (n *Names) find(key []byte) (index int, exact bool) {
	if len(key) > maxFolded*n.longest {
		return -1, false
	}
	if i := int(n.slot[n.hash(key)]) - 1; i >= 0 {
		if string(key) == n.list[i] {
			return i, true
		}
		if len(key) == len(n.list[i]) && bytes.EqualFold(key, []byte(n.list[i])) {
			return i, false
		}
	}
	for _, c := range key {
		if c >= 0x80 { // U+017F folds to s, and U+212A to k
			return n.findFolded(key), false
		}
	}
	return -1, false
}

func (n *Names) findFolded(key []byte) int {
	for i, name := range n.list {
		if bytes.EqualFold(key, []byte(name)) {
			return i
		}
	}
	return -1
}

// FieldsOf is [Reader.Fields] for the fields with the given names; all others
// are skipped. A field that occurs twice, or whose name differs in case, is
// ambiguous: parsers differ in which one they use. FieldsOf continues: it
// yields both duplicates, skips names that differ in case, and
// [Reader.Ambiguous] reports the ambiguity.
func (r *Reader) FieldsOf(names *Names) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var seen uint64
		r.fields(func(key []byte) bool {
			i, exact := names.find(key)
			if i < 0 {
				return true
			}
			bit := uint64(1) << i
			if (seen&bit != 0 || !exact) && r.ambiguous == "" {
				r.ambiguous = names.list[i]
			}
			seen |= bit
			return !exact || yield(key)
		})
	}
}

// Ambiguous returns the name of the first ambiguous field found by FieldsOf,
// "" if there is none.
func (r *Reader) Ambiguous() string { return r.ambiguous }

// Join adds the ambiguities of a part of the value that was read by another
// Reader.
func (r *Reader) Join(part *Reader) {
	if r.ambiguous == "" {
		r.ambiguous = part.ambiguous
	}
}
