package housetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ +(.*?) *$`)
	code    = regexp.MustCompile("(?ms)^```.*?^```")
	unslug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Links between the documents point to an existing file and heading.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	headings := map[string]map[string]bool{}
	for _, name := range committed(t, root) {
		if filepath.Ext(name) != ".md" || strings.Contains(name, "testdata") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), filepath.FromSlash(target))
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
				continue
			}
			if anchor == "" {
				continue
			}
			if headings[file] == nil {
				headings[file] = slugs(t, filepath.Join(root, file))
			}
			if !headings[file][anchor] {
				t.Errorf("%s links to %s, but %s has no such heading", name, m[1], file)
			}
		}
	}
}

// named is a file or folder with a folder before it, or a document.
var named = regexp.MustCompile("`([a-zA-Z0-9_./-]+/[a-zA-Z0-9_.-]*|[A-Z]+\\.md)`")

// The files that the recipes of CONTRIBUTING.md name exist. NAME is that of what is added.
func TestRecipes(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, recipes, found := strings.Cut(string(text), "\n## A new wire format\n")
	recipes, _, ends := strings.Cut(recipes, "\n## Findings\n")
	if !found || !ends || strings.Count(recipes, "\n## ") < 5 {
		t.Fatal("CONTRIBUTING.md lacks recipes")
	}
	for _, m := range named.FindAllStringSubmatch(recipes, -1) {
		if name := m[1]; !strings.Contains(name, "NAME") {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("CONTRIBUTING.md names %s, which is not there", name)
			}
		}
	}
}

// slugs are the anchors that common renderers make from a file's headings.
func slugs(t *testing.T, file string) map[string]bool {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if m := heading.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			found[strings.ReplaceAll(unslug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
		}
	}
	return found
}
