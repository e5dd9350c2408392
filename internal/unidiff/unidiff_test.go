package unidiff

import "testing"

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		before, after []byte
		want          string
	}{
		{[]byte("a\nb\n"), []byte("a\nc\n"), "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		{nil, []byte("a\n"), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n"},
		{[]byte("a\n"), nil, "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n"},
		{[]byte("a"), []byte("a"), ""},
		{nil, nil, ""},
	} {
		if got := Diff("f", c.before, c.after); got != c.want {
			t.Errorf("%q to %q: got %q, want %q", c.before, c.after, got, c.want)
		}
	}
}
