// Package namecount counts in how many blocks of a path each name occurs, and
// knows which message of the assistant used it first.
package namecount

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/toolscript"
)

// Blocks returns in how many blocks of the path a name occurs (see
// lexer.Names). The first call on a path reads all of it, later calls read only
// messages that are new.
func Blocks(s *furl.State, name string) int { return int(lookup(s, name).blocks) }

// FirstUse returns the index of the first message of the path in which the
// assistant itself uses the name, in its words or in the arguments of a call;
// false if it never does. It costs what Blocks costs.
func FirstUse(s *furl.State, name string) (message int, ok bool) {
	first := int(lookup(s, name).firstUse)
	return first - 1, first > 0
}

func lookup(s *furl.State, name string) count {
	t := furl.Memo(s, newTable)
	t.read(s, s.Len())
	return t.count(hash(name))
}

// table has the counts by the hashes of the names: long paths have tens of
// thousands of names.
type table struct {
	counts   map[uint64]count
	messages int // read so far
	// original is the table that the table of a draft continues. It has the
	// counts of the first shared messages.
	original *table
	shared   int
}

type count struct {
	blocks   uint32
	firstUse uint32 // 1 + the index of the message; 0: none
}

// newTable makes the table of a path, or of a draft that continues the path of
// an original table.
func newTable(original *table, shared int) *table {
	return &table{counts: make(map[uint64]count), original: original, messages: shared, shared: shared}
}

func (t *table) count(h uint64) count {
	c := t.counts[h]
	if t.original != nil {
		first := t.original.count(h)
		c.blocks += first.blocks
		if first.firstUse > 0 {
			c.firstUse = first.firstUse
		}
	}
	return c
}

// read counts the names in the first n messages of the path, except those that
// were read before.
func (t *table) read(s *furl.State, n int) {
	if t.original != nil {
		t.original.read(s, t.shared)
	}
	if t.messages >= n {
		return
	}
	seen := make(map[uint64]struct{}) // in the block
	for ; t.messages < n; t.messages++ {
		_, m := s.Message(t.messages)
		for i := range m.Blocks {
			b := &m.Blocks[i]
			use := m.Role == furl.RoleAssistant && (b.Kind == furl.KindText || b.Kind == furl.KindCall)
			clear(seen)
			for text := range toolscript.Texts(b) {
				for name := range lexer.Names(text) {
					h := hash(name)
					if _, ok := seen[h]; ok {
						continue
					}
					seen[h] = struct{}{}
					c := t.counts[h]
					c.blocks++
					if use && c.firstUse == 0 {
						c.firstUse = uint32(t.messages) + 1
					}
					t.counts[h] = c
				}
			}
		}
	}
}

// hash is FNV-1a. Two names of one path with the same hash are very unlikely,
// and would only be counted together.
func hash(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}
