package importtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The map of packages in docs/internals/design.md has each package of the program and each
// public one, once, and imports go from a line to lines below it.
func TestMap(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "internals", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := mapLines(t, string(text))
	module, err := modulePath(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	short := func(path string) string {
		if path == module {
			return "furl"
		}
		return strings.TrimPrefix(path, module+"/")
	}
	imports := map[string][]string{}
	for _, args := range [][]string{{"list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./..."}, {"list", "-deps", "./cmd/furl"}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v", strings.Join(args, " "), err)
		}
		for text := range strings.Lines(string(out)) {
			words := strings.Fields(text)
			if len(words) == 0 || words[0] != module && !strings.HasPrefix(words[0], module+"/") {
				continue
			}
			name := short(words[0])
			if args[1] == "-deps" || !strings.HasPrefix(name, "internal/") {
				if _, ok := line[name]; !ok {
					t.Errorf("the map in docs/internals/design.md lacks %s", name)
				}
			}
			if len(words) > 1 {
				imports[name] = words[1:]
			}
		}
	}
	for name, at := range line {
		dir := name
		if name == "furl" {
			dir = "."
		}
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Errorf("the map in docs/internals/design.md has %s, which does not exist", name)
		}
		for _, path := range imports[name] {
			if below, ok := line[short(path)]; ok && below <= at {
				t.Errorf("%s imports %s, which the map in docs/internals/design.md does not have below it", name, short(path))
			}
		}
	}
}

// mapLines returns the line of each package in the map. A line that begins with
// a package continues the one above, except for the lines of the program.
func mapLines(t *testing.T, text string) map[string]int {
	t.Helper()
	_, rest, ok := strings.Cut(text, "a test compares this map with the code.\n\n")
	if !ok {
		t.Fatal("docs/internals/design.md has no map of packages")
	}
	line := map[string]int{}
	at, open := 0, false
	for text := range strings.Lines(rest) {
		if !strings.HasPrefix(text, "    ") {
			break
		}
		words := strings.Fields(text)
		if text[4] != ' ' {
			words = words[1:] // the layer's name
		}
		if !open {
			at++
		}
		for _, name := range words {
			name = strings.TrimSuffix(name, ",")
			if was, twice := line[name]; twice {
				t.Errorf("the map in docs/internals/design.md has %s in two lines, %d and %d", name, was, at)
			}
			line[name] = at
		}
		open = strings.HasSuffix(words[len(words)-1], ",")
	}
	return line
}
