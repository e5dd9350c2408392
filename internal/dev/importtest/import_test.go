package importtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestImportsPointOneWay(t *testing.T) {
	breaches, err := check("../../..", rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, breach := range breaches {
		t.Error(breach)
	}
}

// The rules must not allow a cycle: what may import another package must not
// be reachable from there.
func TestRulesHaveNoCycle(t *testing.T) {
	for name := range rules {
		if covers(rules[name].imports, "internal/cli") {
			continue // the top, which no package may import
		}
		seen := map[string]bool{}
		var walk func(string, []string)
		walk = func(at string, trail []string) {
			if at == name && len(trail) > 0 {
				t.Errorf("%s may import itself by way of %s", name, strings.Join(trail, ", "))
				return
			}
			if seen[at] {
				return
			}
			seen[at] = true
			for _, next := range rules[at].imports {
				walk(next, append(trail, next))
			}
		}
		walk(name, nil)
	}
}

// Every kind of violation is found in a module made for it.
func TestCheckFindsBreaches(t *testing.T) {
	files := map[string]string{
		"go.mod":            "module example.test/m\n",
		"root.go":           "package m\nimport (\n\"os\"\n\"example.test/m/low\"\n\"example.test/other\"\n)\n",
		"clock.go":          "package m\nimport \"time\"\nfunc f() { go f(); _ = time.Now() ; _ = time.Second }\n",
		"low/low.go":        "package low\nimport \"example.test/m\"\n",
		"low/low_test.go":   "package low\nimport \"example.test/m/high\"\n",
		"low/testdata/x.go": "package x\nimport \"example.test/m/high\"\n",
		"off/off.go":        "package off\nimport (\n\"net/http\"\n\"net/url\"\n\"os\"\n)\n",
		"high/high.go":      "package high\nimport (\n\"example.test/m/low\"\n\"example.test/m/tree/deep\"\n)\n",
		"tree/deep/deep.go": "package deep\nimport \"example.test/m/high\"\n",
		"new/new.go":        "package new\n",
		"other/go.mod":      "module example.test/m/other\n",
		"other/other.go":    "package other\nimport \"example.test/m/high\"\n",
	}
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := check(dir, map[string]rule{
		".":        {stdlibOnly: true, pure: true},
		"low":      {imports: []string{"."}},
		"off":      {offline: true},
		"high":     {imports: []string{"low", "tree/..."}},
		"tree/...": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"clock.go: . is pure and must not start goroutines",
		"clock.go: . is pure and must not use time.Now; take the time as an argument",
		"off/off.go: off is offline and must not import net/http",
		"package new has no rule: say what it may import in internal/dev/importtest/rules.go",
		"root.go: . is pure and must not import os",
		"root.go: . must not import low",
		"root.go: . uses the standard library only, not example.test/other",
		"tree/deep/deep.go: tree/deep must not import high",
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
