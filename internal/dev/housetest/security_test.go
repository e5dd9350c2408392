package housetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest is a test in the security page: its package's folder and its
// name.
var namedTest = regexp.MustCompile("`([a-z0-9/]+) ((?:Test|Fuzz)[A-Za-z0-9_]*)`")

// Each promise of the security page names existing tests.
func TestSecurityPage(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "operate", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| promise | tests |\n|---|---|\n")
	if !ok {
		t.Fatal("the page has no table of promises")
	}
	promises := 0
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "|") {
			break
		}
		promises++
		if !namedTest.MatchString(row) {
			t.Errorf("a promise without a test: %s", row)
		}
	}
	if promises == 0 {
		t.Error("the table of promises is empty")
	}
	for _, m := range namedTest.FindAllStringSubmatch(string(page), -1) {
		if !hasTest(t, filepath.Join(root, m[1]), m[2]) {
			t.Errorf("test %s not found in %s", m[2], m[1])
		}
	}
}

// hasTest reports whether a folder's Go files have a test of that name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
