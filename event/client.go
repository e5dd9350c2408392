package event

import "github.com/furlhq/furl"

// Hides reports whether a state hides something that its client does not hide
// itself.
func Hides(st *furl.State) bool {
	for red := range st.Reductions() {
		if !red.Undone && red.Stage != furl.StageClient {
			return true
		}
	}
	return false
}
