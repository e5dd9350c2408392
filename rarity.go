package furl

// nameTable counts in how many blocks of the path each name occurs. It grows
// with the path: each message is read once. Long paths have tens of thousands
// of names, so that it has their hashes only.
type nameTable struct {
	uses map[uint64]nameUse
	msgs int // messages counted so far
	// below is, in the table of a draft, the one that it continues, which
	// counts the first from messages.
	below *nameTable
	from  int
}

type nameUse struct {
	blocks uint32
	own    uint32 // 1 + the first message in which the assistant uses it; 0: none
}

// hashName is FNV-1a. That two names of one path have the same is not to be
// expected, and would do no more than have them counted together.
func hashName(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

// Rarity is in how many blocks of the path the name occurs, see Names. The
// first call on a path reads it all; later ones only what is new.
func (s *State) Rarity(name string) int {
	return int(s.countNames(name).blocks)
}

// FirstOwn is the index of the first message of the path in which the
// assistant itself uses the name, in its words or in a call's arguments; false
// if it never does. What came before brought the name first-hand. It costs
// what Rarity does.
func (s *State) FirstOwn(name string) (message int, ok bool) {
	own := int(s.countNames(name).own)
	return own - 1, own > 0
}

// countNames counts what is new on the path and gives the uses of one name.
func (s *State) countNames(name string) nameUse {
	s.names.count(s.msgs)
	return s.names.use(hashName(name))
}

// draft returns a table for a draft of a path that has so many messages.
func (t *nameTable) draft(msgs int) *nameTable {
	return &nameTable{uses: make(map[uint64]nameUse), msgs: msgs, below: t, from: msgs}
}

func (t *nameTable) use(h uint64) nameUse {
	use := t.uses[h]
	if t.below != nil {
		first := t.below.use(h)
		use.blocks += first.blocks
		if first.own > 0 {
			use.own = first.own
		}
	}
	return use
}

func (t *nameTable) count(msgs []*Message) {
	if t.below != nil {
		t.below.count(msgs[:t.from])
	}
	seen := make(map[uint64]struct{})
	for ; t.msgs < len(msgs); t.msgs++ {
		m := msgs[t.msgs]
		for i := range m.Blocks {
			b := &m.Blocks[i]
			own := m.Role == RoleAssistant && (b.Kind == KindText || b.Kind == KindCall)
			clear(seen)
			for text := range b.Texts() {
				for name := range Names(text) {
					h := hashName(name)
					if _, ok := seen[h]; ok {
						continue
					}
					seen[h] = struct{}{}
					use := t.uses[h]
					use.blocks++
					if own && use.own == 0 {
						use.own = uint32(t.msgs) + 1
					}
					t.uses[h] = use
				}
			}
		}
	}
}
