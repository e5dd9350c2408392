package session_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The code of docs/use/library.md is that of the examples, which run.
func TestLibraryGuide(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "docs", "use", "library.md"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range []string{"example_test.go", filepath.Join("..", "agent", "example_test.go"), filepath.Join("..", "tool", "example_test.go"), filepath.Join("..", "furlhttp", "agent_example_test.go")} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.WriteString(unindented(string(data)))
	}
	blocks := goBlock.FindAllStringSubmatch(string(guide), -1)
	if len(blocks) < 8 {
		t.Errorf("the guide has %d pieces of code", len(blocks))
	}
	for _, b := range blocks {
		if n := strings.Count(b[1], "\n"); n > 40 {
			t.Errorf("a piece of code has %d lines, want at most 40:\n%s", n, b[1])
		}
		if !strings.Contains(code.String(), unindented(b[1])) {
			t.Errorf("this is in no example:\n%s", b[1])
		}
	}
}

// unindented gives lines without the space before them, and without empty ones.
func unindented(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
