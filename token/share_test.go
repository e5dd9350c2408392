package token

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// One stretch of each eight is counted for every length of text and every
// position of breaks, so that the work is bounded for any text.
func TestShare(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		text := strings.Repeat("x", r.IntN(200*100))
		short := r.IntN(90)
		counted := 0
		got := share(text, 100, func(_ string, at int) int { return at - r.IntN(short+1) }, func(s string) int {
			counted += len(s)
			return 2 * len(s)
		})
		if got != 2*len(text) {
			t.Errorf("%d bytes of two tokens each: got %d", len(text), got)
		}
		stretches := len(text)/(100-short) + 1
		if most := 100 * (stretches/oneOf + 1); counted > most {
			t.Errorf("counted %d of %d bytes, want at most %d", counted, len(text), most)
		}
	}
}

// Which stretch of eight is counted differs from one group to the next.
func TestShareIsNotPeriodic(t *testing.T) {
	const eights = 1000
	var text strings.Builder
	for i := range eights * oneOf {
		text.WriteByte(byte('0' + i%oneOf))
	}
	var seen [oneOf]int
	share(text.String(), 1, func(_ string, at int) int { return at }, func(s string) int {
		seen[s[0]-'0']++
		return 1
	})
	for at, n := range seen {
		if n < eights/oneOf*3/4 || n > eights/oneOf*5/4 {
			t.Errorf("stretch %d of eight was counted %d times of %d", at, n, eights)
		}
	}
}

// A break holds in any context: the pieces of both sides are the pieces of
// the whole.
func FuzzBreakBefore(f *testing.F) {
	f.Add("func main() {\n\treturn 12ab34\n}\n  x y", uint(20))
	f.Add("a'll 9 \n\n9\r\nB/\nc", uint(9))
	f.Fuzz(func(t *testing.T, text string, n uint) {
		if len(text) < 2 {
			return
		}
		at := 1 + int(n%uint(len(text)-1))
		end := breakBefore(text, at)
		if end < 0 || end > at {
			t.Fatalf("%q: %d for %d", text, end, at)
		}
		if end == cut(text, at) {
			return // there may be none
		}
		for from := 0; from < len(text); from += split(text[from:]) {
			if from == end {
				return
			}
		}
		t.Errorf("%q: no piece ends at %d", text, end)
	})
}
