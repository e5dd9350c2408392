package cli

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/replay"
)

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"äöü", 3, "äöü"},
		{"äöüä", 3, "äö…"},
		{"longer", 1, ""},
		{"", 0, ""},
	} {
		if got := cut(tt.in, tt.n); got != tt.want {
			t.Errorf("cut(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		in   string
		cols int
		want string
	}{
		{"one two three", 0, "one two three"},
		{"one two three", 7, "one two|three"},
		{"one two three", 2, "one|two|three"},
		{"", 10, ""},
	} {
		if got := strings.Join(wrap(tt.in, tt.cols), "|"); got != tt.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", tt.in, tt.cols, got, tt.want)
		}
	}
}

func TestQuoteArg(t *testing.T) {
	for in, want := range map[string]string{
		"a/b.jsonl":   "a/b.jsonl",
		"a b":         "'a b'",
		"it's":        `'it'\''s'`,
		"-x":          "./-x",
		"":            "''",
		"e\x1b[1m'\n": `$'e\x1b[1m\'\x0a'`,
	} {
		if got := quoteArg(in); got != want {
			t.Errorf("quoteArg(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestProgressLine(t *testing.T) {
	for _, tt := range []struct {
		p    replay.Progress
		want string
	}{
		{replay.Progress{File: "d/a.jsonl"}, "reading file 1, a.jsonl"},
		{replay.Progress{File: "d/a\n.jsonl", Files: 2, Done: 9, Total: 9}, strings.Repeat("█", 20) + " 9 of 9 runs of file 3, a␊.jsonl"},
		{replay.Progress{File: "b", Done: 1, Total: 4}, strings.Repeat("█", 5) + strings.Repeat("░", 15) + " 1 of 4 runs of file 1, b"},
	} {
		if got := progressLine(tt.p); got != tt.want {
			t.Errorf("progressLine(%+v) = %q, want %q", tt.p, got, tt.want)
		}
	}
}

// A narrow terminal gets fewer columns, never broken lines.
func TestTableDropsColumns(t *testing.T) {
	tb := table{head: []string{"policy", "cost", "overflows"}, rows: [][]string{{"none", "$1.00", "0"}}}
	if got, want := tb.width(), 24; got != want {
		t.Errorf("width = %d, want %d", got, want)
	}
	tb.drop("overflows")
	tb.drop("overflows")
	var b strings.Builder
	tb.print(&b, false)
	if got, want := b.String(), "policy   cost\nnone    $1.00\n"; got != want {
		t.Errorf("table without the column:\n%s\nwant:\n%s", got, want)
	}
}
