package cmdline

import (
	"strings"
	"testing"
)

// Invisible characters and those that change the direction of writing become visible.
// Characters that scripts and emoji need stay.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                              "plain\ttext\n",
		"\x00\x1b[31m\r\b\x7f":                       "␀␛[31m␍␈\uFFFD",
		"\u0085\u009b31m":                            "\uFFFD\uFFFD31m",
		"\u061c\u200e\u202a\u202e\u2066\u2069\u2028": strings.Repeat("\uFFFD", 7),
		"zero\u200bwidth\ufeff\u2060\u00ad\u180e":    "zero\uFFFDwidth\uFFFD\uFFFD\uFFFD\uFFFD",
		"tag\U000e0041\U000e007f":                    "tag\uFFFD\uFFFD",
		"\ufffe\uffff":                               "\uFFFD\uFFFD",
		"می\u200cخواهم 👩\u200d👧 ❤\ufe0f u\u0308 日本": "می\u200cخواهم 👩\u200d👧 ❤\ufe0f u\u0308 日本",
	} {
		if got := Printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Label("a\tb\nc"); got != "a␉b␊c" {
		t.Errorf("label gives %q", got)
	}
}
