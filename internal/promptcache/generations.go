package promptcache

// Generations is a map of bounded size that forgets entries that were not
// used recently. When the young half is full, it becomes the old one, and the
// entries of the old one are dropped unless they were used meanwhile. The
// zero value is empty and keeps at least DefaultSize entries. It is not safe
// for concurrent use.
type Generations[K comparable, V any] struct {
	// Size is the number of entries in a generation. If zero, DefaultSize.
	Size       int
	young, old map[K]V
}

// DefaultSize is the default size of a generation.
const DefaultSize = 1 << 17

// Get returns the value of a key, and counts as a use of it.
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

// Put sets the value of a key.
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

// Reset removes all entries.
func (g *Generations[K, V]) Reset() { g.young, g.old = nil, nil }
