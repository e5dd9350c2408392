package visible

import "testing"

func TestText(t *testing.T) {
	for _, c := range []struct{ in, text, line string }{
		{"plain\ttext\n", "plain\ttext\n", "plain␉text␊"},
		{"\x1b[31mred\x07", "␛[31mred␇", "␛[31mred␇"},
		{"a\u202egnp.exe\u2066", "a\ufffdgnp.exe\ufffd", "a\ufffdgnp.exe\ufffd"},
		{"zero\u200bwidth\u00ad\x7f\u0085", "zero\ufffdwidth\ufffd\ufffd\ufffd", "zero\ufffdwidth\ufffd\ufffd\ufffd"},
		{"👩‍🚀 और", "👩‍🚀 और", "👩‍🚀 और"}, // joiners stay
	} {
		if got := Text(c.in); got != c.text {
			t.Errorf("Text(%q) = %q, want %q", c.in, got, c.text)
		}
		if got := Line(c.in); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.in, got, c.line)
		}
	}
}
