package web

import (
	"strings"
	"testing"
)

func TestMarked(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		parts      []string
	}{
		{"Open the file.", "Open the <mark>file</mark>.", []string{"file"}},
		{"FILE and file_3", "<mark>FILE</mark> and <mark>file_3</mark>", []string{"file", "file_3"}},
		{"3 of 38", "<mark>3</mark> of 38", []string{"3"}},
		{"<b>&", "&lt;<mark>b</mark>&gt;&amp;", []string{"b"}},
		{"a.c abc", "<mark>a.c</mark> abc", []string{"a.c"}},
		{"保险库恢复", "保险<mark>库恢</mark>复", []string{"库恢"}},
		{"nothing", "nothing", nil},
		{"nothing", "nothing", []string{"", "zebra"}},
		{"", "", nil},
		{"\u202eabc\x00", "", []string{"abc"}},
	} {
		got := string(marked(tt.text, tt.parts))
		if tt.want == "" && tt.text != "" {
			if strings.ContainsAny(got, "\u202e\x00") || !strings.Contains(got, "<mark>abc</mark>") {
				t.Errorf("%q: %q", tt.text, got)
			}
		} else if got != tt.want {
			t.Errorf("%q %q: %q, want %q", tt.text, tt.parts, got, tt.want)
		}
	}
	long := strings.Repeat("line\n\n", 30) + "match\n" + strings.Repeat("after\n", 30)
	if got := string(marked(long, []string{"match"})); strings.Count(got, "\n") != maxExcerptLines+1 || !strings.Contains(got, "…\nline\nline\n<mark>match</mark>\nafter") || !strings.HasSuffix(got, "after\n…") {
		t.Errorf("a long excerpt: %q", got)
	}
}
