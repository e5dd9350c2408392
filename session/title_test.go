package session_test

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

func TestTitle(t *testing.T) {
	titleOf := func(text string) string {
		return session.Title([]furl.Record{{Seq: 1, Body: &furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindText, Text: text}}}}})
	}
	for text, want := range map[string]string{
		"":                               "",
		"  \n\t fix  the\ttest \nplease": "fix the test",
		"<env>\nfix":                     "",
		strings.Repeat("é", 60):          strings.Repeat("é", 60),
		strings.Repeat("é", 61):          strings.Repeat("é", 59) + "…",
		strings.Repeat("é", 1000):        strings.Repeat("é", 59) + "…",
		"x" + strings.Repeat("é", 1000):  "x" + strings.Repeat("é", 58) + "…",
		strings.Repeat(" ", 5000) + "go": "go",
	} {
		if got := titleOf(text); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
	// A line can be as long as a request; the title takes no memory for that.
	long := "fix é " + strings.Repeat("a b é ", 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	title := titleOf(long)
	runtime.ReadMemStats(&after)
	if !strings.HasPrefix(title, "fix é a b é") || utf8.RuneCountInString(title) != 60 {
		t.Errorf("the title is %q", title)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
		t.Errorf("the title of %d bytes takes %d", len(long), taken)
	}
}
