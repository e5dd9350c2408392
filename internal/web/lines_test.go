package web

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBodyLines(t *testing.T) {
	body := `{"model":"m","messages":[{"role":"user","content":"a\nb\\n\"c"},{"role":"assistant","content":[]}]}`
	want := []string{`{`, `"model":"m",`, `"messages":[`, `{`, `"role":"user",`, `"content":"a\n`, `b\\n\"c"},`, `{`, `"role":"assistant",`, `"content":[`, `]}]}`}
	if got := bodyLines([]byte(body)); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("lines %q, want %q", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.StringMatching(`[{}\[\]",:\\n\n a]{0,80}`).Draw(t, "body")
		if got := strings.Join(bodyLines([]byte(body)), ""); got != body {
			t.Fatalf("the lines of %q are %q together", body, got)
		}
	})
}
