package event

import "github.com/furlhq/furl"

// Hides reports whether a state hides something that its client sends.
func Hides(st *furl.State) bool {
	for red := range st.Reductions() {
		if !red.Undone && !red.External() {
			return true
		}
	}
	return false
}
