package account

import "github.com/furlhq/furl"

// HasReductions reports whether a path has reductions.
func HasReductions(st *furl.State) bool {
	for range st.Reductions() {
		return true
	}
	return false
}

// HiddenOf returns how much of a recorded block a view does not show, in counted tokens.
// shown is the block in the view, nil if the view lacks it. Of a block that is shown
// shorter, as a placeholder or clipped, what the text is shorter counts. Thinking that no
// reduction hides counts as visible, also if the provider drops it.
func HiddenOf(st *furl.State, pos furl.Pos, b *furl.Block, shown *furl.ShownBlock) int {
	switch {
	case shown != nil && shown.By == 0:
		return 0
	case shown != nil:
		return max(0, b.Tokens-shown.Tokens)
	case b.Kind == furl.KindThinking && st.ShownBy(pos) == 0:
		return 0
	}
	return b.Tokens
}

// Hidden returns how much of a path's messages a view does not show, and their size as
// recorded, in counted tokens. The rest is visible. Texts of whole messages that the view
// shows in place of others count as neither.
func Hidden(st *furl.State, v *furl.View) (hidden, recorded int) {
	next := 0 // message of the path
	message := func(i int, shown []furl.ShownBlock) {
		seq, m := st.Message(i)
		for j := range m.Blocks {
			pos := furl.Pos{Msg: seq, Block: j}
			var sb *furl.ShownBlock
			if len(shown) > 0 && shown[0].Pos == pos {
				sb, shown = &shown[0], shown[1:]
			}
			hidden += HiddenOf(st, pos, &m.Blocks[j], sb)
			recorded += m.Blocks[j].Tokens
		}
	}
	upTo := func(index int) {
		for ; next < index; next++ {
			message(next, nil)
		}
	}
	for i := range v.Messages {
		if sh := &v.Messages[i]; sh.Index >= 0 {
			upTo(sh.Index)
			message(sh.Index, sh.Blocks)
			next = sh.Index + 1
		}
	}
	upTo(st.Len())
	return hidden, recorded
}
