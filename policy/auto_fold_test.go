package policy

import "testing"

// A list names each file by its path once, and then by its last element.
func TestToldBrief(t *testing.T) {
	told := newTold()
	long := "src/a_package_with_a_long_name/and_a_folder_with_a_long_name/and_another_one_of_many/and_a_file.go"
	for _, tt := range []struct{ target, want string }{
		{"/home/a/src/parse.go", "/home/a/src/parse.go"},
		{"/home/a/src/parse.go", "parse.go"},
		{"func Parse in /home/a/src/parse.go", "func Parse in parse.go"},
		{"/home/a/test/parse.go", "/home/a/test/parse.go"}, // another file of that name
		{"/home/a/src/parse.go", "/home/a/src/parse.go"},
		{"src/x.go, src/y.go", "src/x.go, src/y.go"},
		{"src/y.go, src/x.go", "y.go, x.go"},
		{"cd /home/a && go test ./... 2>/dev/null", "cd /home/a && go test ./... 2>/dev/null"},
		{"cd /home/a && go test ./... 2>/dev/null", "go test ./... 2>/dev/null"},
		{"cd /home/b && sed s/a/b.c/ x.go", "cd /home/b && sed s/a/b.c/ x.go"},
		{"cd /home/b && sed s/a/b.c/ x.go", "sed s/a/b.c/ x.go"},
		{"a pattern in " + long, "a pattern in " + cut(long, maxTarget-len("a pattern in "))},
		{long, long}, // it was cut off
		{long, "and_a_file.go"},
		{"", ""},
	} {
		if got := told.brief(tt.target); got != tt.want {
			t.Errorf("%q in brief: %q, want %q", tt.target, got, tt.want)
		}
	}
}
