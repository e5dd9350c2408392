package visible

import (
	"strings"
	"testing"
)

// A terminal gets the same text however it is split into writes, without characters that
// could move the cursor or change the title.
func TestPrintableWriter(t *testing.T) {
	const in = "plain\ttext\n\x1b]0;title\x07 \u202e \u009b31m é日🙂 \x9b31m \xff\xc3"
	const want = "plain\ttext\n␛]0;title␇ \uFFFD \uFFFD31m é日🙂 \uFFFD31m \uFFFD\uFFFD"
	for size := 1; size <= len(in); size++ {
		var out strings.Builder
		p := &Writer{W: &out}
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if wrote, err := p.Write([]byte(rest[:n])); err != nil || wrote != n {
				t.Fatalf("wrote %d of %d, %v", wrote, n, err)
			}
			rest = rest[n:]
		}
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("in writes of %d bytes: %q, want %q", size, out.String(), want)
		}
	}
}
