package promptcache

// Generations is a map of bounded size that forgets what was not used for
// long: when the young half is full, it becomes the old one, and what the old
// one held is gone unless it was asked for in between. Its zero value is
// empty and keeps at least DefaultSize entries. It is not safe for concurrent
// use.
type Generations[K comparable, V any] struct {
	// Size is how many entries a generation holds. If zero, DefaultSize.
	Size       int
	young, old map[K]V
}

// DefaultSize is the size of a generation that names none.
const DefaultSize = 1 << 17

// Get returns what is kept under a key, and counts as a use of it.
func (g *Generations[K, V]) Get(k K) (V, bool) {
	if v, ok := g.young[k]; ok {
		return v, true
	}
	v, ok := g.old[k]
	if ok {
		g.Put(k, v)
	}
	return v, ok
}

// Put keeps a value under a key.
func (g *Generations[K, V]) Put(k K, v V) {
	size := g.Size
	if size == 0 {
		size = DefaultSize
	}
	if _, ok := g.young[k]; !ok && len(g.young) >= size {
		g.old, g.young = g.young, nil
	}
	if g.young == nil {
		g.young = make(map[K]V)
	}
	g.young[k] = v
}

// Reset forgets everything.
func (g *Generations[K, V]) Reset() { g.young, g.old = nil, nil }
