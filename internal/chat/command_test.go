package chat

import "testing"

func TestSplit(t *testing.T) {
	for _, c := range []struct{ line, name, args string }{
		{"/help", "help", ""},
		{"  /compact  the parser ", "compact", "the parser"},
		{"/rolling-context on", "rolling-context", "on"},
		{"/usr/bin", "", ""},
		{"/usr/bin is full", "", ""},
		{"/", "", ""},
		{"/-", "", ""},
		{"/Help", "", ""},
		{"/2", "", ""},
		{"help", "", ""},
		{"", "", ""},
	} {
		name, args := Split(c.line)
		if name != c.name || args != c.args {
			t.Errorf("Split(%q): got %q and %q, want %q and %q", c.line, name, args, c.name, c.args)
		}
		if IsCommand(c.line) != (c.name != "") {
			t.Errorf("IsCommand(%q): got %t", c.line, IsCommand(c.line))
		}
	}
}
