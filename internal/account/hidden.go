package account

import "github.com/furlhq/furl"

// HasReductions reports whether a path has reductions.
func HasReductions(st *furl.State) bool {
	for range st.Reductions() {
		return true
	}
	return false
}

// HiddenOriginals returns the original size of what a view does not show, in the
// provider's tokens.
func HiddenOriginals(st *furl.State, v *furl.View, b *furl.Budget) int {
	all := 0
	for i := range st.Len() {
		_, m := st.Message(i)
		all += m.Tokens()
	}
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			if sb := &v.Messages[i].Blocks[j]; sb.By == 0 && v.Messages[i].Index >= 0 {
				all -= sb.Block.Tokens
			}
		}
	}
	return b.Of(max(0, all), 0)
}
