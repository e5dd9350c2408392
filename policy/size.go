package policy

import (
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// part is a share of a window in tokens, rounded down (C2).
func part(window int, share float64) int {
	return int(float64(window)*share + 1e-9) // 0.29×100 is 28.999…
}

// reached is the trigger at a share of the window. Without a window it is never
// reached.
func reached(share float64) func(*furl.View, furl.Budget) bool {
	return func(_ *furl.View, b furl.Budget) bool {
		return b.Window > 0 && b.Size >= part(b.Window, share)
	}
}

// below is the opposite of reached.
func below(share float64) func(*furl.View, furl.Budget) bool {
	trigger := reached(share)
	return func(v *furl.View, b furl.Budget) bool { return !trigger(v, b) }
}

// Chars is the length of all text that the model sees, in characters.
func Chars(v *furl.View) int {
	n := 0
	for i := range v.Units {
		n += unitChars(&v.Units[i])
	}
	return n
}

func unitChars(u *furl.Unit) int {
	n := 0
	for i := range u.Blocks {
		sb := &u.Blocks[i]
		if sb.By == 0 && sb.Block.Kind == furl.KindCall {
			n += utf8.RuneCount(sb.Block.Args)
			continue
		}
		n += utf8.RuneCountInString(sb.Words())
	}
	return n
}
