package fingerprint

// minRandom is the shortest part of an id that counts as random, in characters.
// Mistral's ids have nine.
const minRandom = 9

// IsRandomID reports whether the id of a call was made at random: letters and digits
// alternate in a part of it. Some servers count calls instead (call_0,
// functions.read:1), so other conversations have the same ids.
func IsRandomID(id string) bool {
	length, changes, last := 0, 0, byte(0)
	for i := range len(id) {
		kind := byte('-')
		switch c := id[i]; {
		case c >= '0' && c <= '9':
			kind = 'd'
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			kind = 'l'
		}
		if kind == '-' {
			length, changes, last = 0, 0, 0
			continue
		}
		if last != 0 && kind != last {
			changes++
		}
		if length, last = length+1, kind; length >= minRandom && changes >= 2 {
			return true
		}
	}
	return false
}
