package event

import "github.com/furlhq/furl"

// StageClient is the stage of reductions that record what a client has hidden in
// its own history.
const StageClient = "client"

// Hides reports whether a state hides something that its client does not hide
// itself.
func Hides(st *furl.State) bool {
	for red := range st.Reductions() {
		if !red.Undone && red.Stage != StageClient {
			return true
		}
	}
	return false
}
