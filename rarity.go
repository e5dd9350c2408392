package furl

// nameTable counts in how many blocks of the path each name occurs. It grows
// with the path: each message is read once.
type nameTable struct {
	count map[string]int
	msgs  int // messages counted so far
}

// Rarity is in how many blocks of the path the name occurs, see Names. The
// first call on a path reads it all; later ones only what is new.
func (s *State) Rarity(name string) int {
	s.countNames()
	return s.names.count[name]
}

func (s *State) countNames() {
	t := s.names
	seen := make(map[string]bool)
	for ; t.msgs < len(s.msgs); t.msgs++ {
		m := s.msgs[t.msgs]
		for i := range m.Blocks {
			clear(seen)
			for text := range m.Blocks[i].Texts() {
				for name := range Names(text) {
					if !seen[name] {
						seen[name] = true
						t.count[name]++
					}
				}
			}
		}
	}
}
