package lexer

import "testing"

func TestFold(t *testing.T) {
	for line, want := range map[string]string{
		"":                        "",
		" \t\r\n":                 "",
		"a b":                     "a b",
		"\ta  b\u00a0c \r\n":      "a b c",
		"if x {\t// note":         "if x { // note",
		"  one\vtwo\u2003three\n": "one two three",
	} {
		if got := Fold(line); got != want {
			t.Errorf("Fold(%q) = %q, want %q", line, got, want)
		}
	}
}
