package cli

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/storage"
)

// printed returns the output of a table on a terminal of this width, 0 for a pipe.
func printed(t *table, cols int) string {
	var b strings.Builder
	t.w, t.cols, t.styled = &b, cols, cols > 0
	t.print()
	return b.String()
}

func sample() *table {
	t := newTable(new(strings.Builder), text("session"), number("messages"), text("last words"))
	t.add("4", "1,200", "yes")
	t.add("会話", "7", "a longer text than that")
	t.add("👩‍👩‍👧 e\u0301", "12", "\x1b[31mred\n\u202eover")
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
	tab := newTable(new(strings.Builder), text(""), number(""))
	tab.add("会話", "1")
	tab.add("abcd", "22")
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
	tab := newTable(new(strings.Builder), text("policy"), number("cost"), number("overflows"))
	tab.add("none", "$1.00", "0")
	if got, want := tab.width(), 24; got != want {
		t.Errorf("width = %d, want %d", got, want)
	}
	for _, tt := range []struct {
		cols int
		fits bool
	}{{0, true}, {23, false}, {24, true}} {
		if tab.cols = tt.cols; tab.fits() != tt.fits {
			t.Errorf("in %d columns it fits: %v, want %v", tt.cols, tab.fits(), tt.fits)
		}
	}
	tab.drop("overflows")
	tab.drop("overflows")
	if got, want := printed(tab, 0), "policy   cost\nnone    $1.00\n"; got != want {
		t.Errorf("printed\n%s, want\n%s", got, want)
	}
}

// Long cells are truncated until the table fits, to a minimum width.
func TestTableShrinks(t *testing.T) {
	for _, tt := range []struct{ cols, want int }{{0, 44}, {100, 44}, {30, 30}, {5, 17}} {
		tab := newTable(new(strings.Builder), text("id"), text("title"))
		tab.add("abc", strings.Repeat("x", 39))
		tab.add("b", "short")
		tab.cols = tt.cols
		tab.shrink("title", 12)
		if got := tab.width(); got != tt.want {
			t.Errorf("a table for %d columns has %d, want %d", tt.cols, got, tt.want)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	for b.Loop() {
		tab := newTable(new(strings.Builder), text("session"), text("title"), text("agent"), text("model"), number("messages"), number("size"), number("updated"))
		for range 10_000 {
			tab.add("0199f3c2-7d1e-7a51-9d1b-6a8e2f1c0b7d", "Fix the flaky test of the scheduler", "claude-code", "claude-opus-4-5", "1,200", "38 kB", "2 days ago")
		}
		tab.print()
	}
}

// A name with a line break takes two lines of the head. Other names are on the last
// one.
func TestTableHeadOfTwoLines(t *testing.T) {
	tab := newTable(new(strings.Builder), text("policy"), number("input\ncost"), number(""))
	tab.add("auto", "24%", "1")
	const want = `        input
policy   cost
auto      24%  1
`
	if got := printed(tab, 0); got != want {
		t.Errorf("printed\n%s, want\n%s", got, want)
	}
	tab.drop("input cost")
	if got, want := printed(tab, 0), "policy\nauto    1\n"; got != want {
		t.Errorf("printed\n%s, want\n%s", got, want)
	}
}

// Eighty columns show the agent and the model of savings whole.
func TestSavingsAt80Columns(t *testing.T) {
	rep := &storage.SavingsReport{Lines: []storage.SavingsLine{{Day: "2026-11-23", Agent: "Claude Code", Model: "claude-sonnet-4-5-20250929", Savings: storage.Savings{Requests: 21, Tokens: 109767, TokensWithout: 171058, Cost: 0.34, CostWithout: 0.53}, TokensSaved: 61291, Saved: 0.18}}}
	var b strings.Builder
	tab := savingsTable(&b, rep)
	tab.cols = 80
	fitSavings(tab)
	tab.print()
	if out := b.String(); !strings.Contains(out, "Claude Code  sonnet-4-5  ") || tab.width() > 80 {
		t.Errorf("printed\n%s", out)
	}
}

// Numbers have thousands separators, and one thing is singular.
func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 requests", 1: "1 request", 2: "2 requests", 3441: "3,441 requests"} {
		if got := numbers.Count(n, "request"); got != want {
			t.Errorf("numbers.Count(%d) = %q, want %q", n, got, want)
		}
	}
}
