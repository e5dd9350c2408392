package visible

import (
	"testing"
)

func TestQuoteArg(t *testing.T) {
	for in, want := range map[string]string{
		"a/b.jsonl":   "a/b.jsonl",
		"a b":         "'a b'",
		"it's":        `'it'\''s'`,
		"-x":          "./-x",
		"":            "''",
		"e\x1b[1m'\n": `$'e\x1b[1m\'\x0a'`,
	} {
		if got := QuoteArg(in); got != want {
			t.Errorf("quoteArg(%q) = %s, want %s", in, got, want)
		}
	}
}
