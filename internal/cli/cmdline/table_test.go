package cmdline

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// printed returns the output of a table on a terminal of this width, 0 for a pipe.
func printed(t *Table, cols int) string {
	var b strings.Builder
	t.w, t.Cols, t.styled = &b, cols, cols > 0
	t.Print()
	return b.String()
}

func sample() *Table {
	t := NewTable(new(strings.Builder), Text("session"), Number("messages"), Text("last words"))
	t.Add("4", "1,200", "yes")
	t.Add("会話", "7", "a longer text than that")
	t.Add("👩‍👩‍👧 e\u0301", "12", "\x1b[31mred\n\u202eover")
	return t
}

// Wide characters, emoji and combining marks line up. Control characters and
// changes of direction are made visible.
func TestTable(t *testing.T) {
	const want = `session  messages  last words
4           1,200  yes
会話            7  a longer text than that
👩‍👩‍👧 é           12  ␛[31mred␊` + "\uFFFD" + `over
`
	if got := printed(sample(), 0); got != strings.ReplaceAll(want, "é", "e\u0301") {
		t.Errorf("printed\n%s, want\n%s", got, want)
	}
}

func TestTableWithoutHead(t *testing.T) {
	tab := NewTable(new(strings.Builder), Text(""), Number(""))
	tab.Add("会話", "1")
	tab.Add("abcd", "22")
	if got, want := printed(tab, 0), "会話   1\nabcd  22\n"; got != want {
		t.Errorf("printed\n%s, want\n%s", got, want)
	}
}

// On a terminal the head is bold, no line is too long, and the only escape
// sequences are those of the style.
func TestTableOnTerminal(t *testing.T) {
	for cols := 1; cols < 60; cols++ {
		out := printed(sample(), cols)
		for line := range strings.Lines(out) {
			if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > cols {
				t.Errorf("a line of %d columns for %d: %q", n, cols, line)
			}
		}
		if rest := strings.NewReplacer("\x1b[1m", "", "\x1b[m", "").Replace(out); strings.Contains(rest, "\x1b") || out == rest {
			t.Errorf("with %d columns: %q", cols, out)
		}
	}
}

// A narrow terminal gets fewer columns.
func TestTableDropsColumns(t *testing.T) {
	tab := NewTable(new(strings.Builder), Text("policy"), Number("cost"), Number("overflows"))
	tab.Add("none", "$1.00", "0")
	if got, want := tab.Width(), 24; got != want {
		t.Errorf("width = %d, want %d", got, want)
	}
	for _, tt := range []struct {
		cols int
		fits bool
	}{{0, true}, {23, false}, {24, true}} {
		if tab.Cols = tt.cols; tab.Fits() != tt.fits {
			t.Errorf("in %d columns it fits: %v, want %v", tt.cols, tab.Fits(), tt.fits)
		}
	}
	tab.Drop("overflows")
	tab.Drop("overflows")
	if got, want := printed(tab, 0), "policy   cost\nnone    $1.00\n"; got != want {
		t.Errorf("printed\n%s, want\n%s", got, want)
	}
}

// Long cells are truncated until the table fits, to a minimum width.
func TestTableShrinks(t *testing.T) {
	for _, tt := range []struct{ cols, want int }{{0, 44}, {100, 44}, {30, 30}, {5, 17}} {
		tab := NewTable(new(strings.Builder), Text("id"), Text("title"))
		tab.Add("abc", strings.Repeat("x", 39))
		tab.Add("b", "short")
		tab.Cols = tt.cols
		tab.Shrink("title", 12)
		if got := tab.Width(); got != tt.want {
			t.Errorf("a table for %d columns has %d, want %d", tt.cols, got, tt.want)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	for b.Loop() {
		tab := NewTable(new(strings.Builder), Text("session"), Text("title"), Text("agent"), Text("model"), Number("messages"), Number("size"), Number("updated"))
		for range 10_000 {
			tab.Add("0199f3c2-7d1e-7a51-9d1b-6a8e2f1c0b7d", "Fix the flaky test of the scheduler", "claude-code", "claude-opus-4-5", "1,200", "38 kB", "2 days ago")
		}
		tab.Print()
	}
}

// A name with a line break takes two lines of the head. Other names are on the last
// one.
func TestTableHeadOfTwoLines(t *testing.T) {
	tab := NewTable(new(strings.Builder), Text("policy"), Number("input\ncost"), Number(""))
	tab.Add("auto", "24%", "1")
	const want = `        input
policy   cost
auto      24%  1
`
	if got := printed(tab, 0); got != want {
		t.Errorf("printed\n%s, want\n%s", got, want)
	}
	tab.Drop("input cost")
	if got, want := printed(tab, 0), "policy\nauto    1\n"; got != want {
		t.Errorf("printed\n%s, want\n%s", got, want)
	}
}

// An empty list is a list in JSON, not null.
func TestPrintEmptyList(t *testing.T) {
	var b strings.Builder
	if err := PrintList(&b, true, "holds", []string(nil), "No legal holds.", nil, nil); err != nil || b.String() != "{\n  \"holds\": []\n}\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}
