package furl

// nameTable counts in how many blocks of the path each name occurs. It grows
// with the path: each message is read once.
type nameTable struct {
	uses map[string]nameUse
	msgs int // messages counted so far
}

type nameUse struct {
	blocks int
	own    int // 1 + the first message in which the assistant uses it; 0: none
}

// Rarity is in how many blocks of the path the name occurs, see Names. The
// first call on a path reads it all; later ones only what is new.
func (s *State) Rarity(name string) int {
	s.countNames()
	return s.names.uses[name].blocks
}

// FirstOwn is the index of the first message of the path in which the
// assistant itself uses the name, in its words or in a call's arguments; false
// if it never does. What came before brought the name first-hand. It costs
// what Rarity does.
func (s *State) FirstOwn(name string) (message int, ok bool) {
	s.countNames()
	own := s.names.uses[name].own
	return own - 1, own > 0
}

func (s *State) countNames() {
	t := s.names
	seen := make(map[string]bool)
	for ; t.msgs < len(s.msgs); t.msgs++ {
		m := s.msgs[t.msgs]
		for i := range m.Blocks {
			b := &m.Blocks[i]
			own := m.Role == RoleAssistant && (b.Kind == KindText || b.Kind == KindCall)
			clear(seen)
			for text := range b.Texts() {
				for name := range Names(text) {
					if seen[name] {
						continue
					}
					seen[name] = true
					use := t.uses[name]
					use.blocks++
					if own && use.own == 0 {
						use.own = t.msgs + 1
					}
					t.uses[name] = use
				}
			}
		}
	}
}
