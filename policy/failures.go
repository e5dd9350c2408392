package policy

import "github.com/furlhq/furl"

// failureShare is the share of the window that results may take which only seem
// to have failed, judged by their first lines, and stay for that (A6).
const failureShare = 0.05

// failures are the results in a view that stay because they failed: all with an
// error flag, and the newest of those whose text reads like a failure, up to
// failureShare of the window.
type failures struct {
	byText map[furl.Pos]bool
}

func newFailures(v *furl.View, b furl.Budget) *failures {
	f := &failures{}
	window := b.Window
	if window <= 0 {
		window = b.Size
	}
	room := part(window, failureShare)
	for i := len(v.Units) - 1; i >= 0; i-- {
		u := &v.Units[i]
		for j := len(u.Blocks) - 1; j >= 0; j-- {
			sb := &u.Blocks[j]
			if !sb.Block.ErrorText || sb.Block.Error || sb.By != 0 {
				continue
			}
			size := b.Of(sb.Tokens, 0)
			if size > room {
				continue
			}
			if f.byText == nil {
				f.byText = make(map[furl.Pos]bool)
			}
			f.byText[sb.Pos] = true
			room -= size
		}
	}
	return f
}

// stay reports whether a result stays because it failed.
func (f *failures) stay(sb *furl.ShownBlock) bool {
	return sb.Block.Error || f.byText[sb.Pos]
}

// seemsFailed reports whether a result failed, by its flag or by its text.
func seemsFailed(b *furl.Block) bool {
	return b.IsResult() && (b.Error || b.ErrorText)
}
