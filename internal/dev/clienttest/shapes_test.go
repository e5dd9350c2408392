package clienttest

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// A shape is something that a client sends and that furl may have to know: an endpoint, a
// header, a beta, or the type of an object in a body with the names of its fields.
type shape struct {
	// API is messages, chat, responses, or other; any for a header.
	API string
	// Place is endpoint, header, beta, query, request for the top of a body, or the key
	// of the object, such as content, input, or cache_control.
	Place string
	// Type is the object's type, its role if it has no type, or the name itself.
	Type string
	// Fields are the names in the object, sorted.
	Fields []string
}

func (s shape) key() string { return s.API + " " + s.Place + " " + s.Type }

// shapesFile documents what clients send and what furl does with it.
const shapesFile = "../../../docs/internals/shapes.md"

// A row of shapesFile: what is listed, and what is said of it.
type row struct {
	shape
	Clients, Does, Test string
	line                int
}

// rows reads the tables of shapesFile.
func rows(t testing.TB) []row {
	t.Helper()
	text, err := os.ReadFile(shapesFile)
	if err != nil {
		t.Fatal(err)
	}
	var list []row
	for n, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 7 || !strings.Contains(cells[0], "`") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		r := row{Clients: cells[4], Does: cells[5], Test: strings.Trim(cells[6], "`"), line: n + 1}
		r.API, r.Place, r.Type = strings.Trim(cells[0], "`"), strings.Trim(cells[1], "`"), strings.Trim(cells[2], "`")
		for f := range strings.FieldsSeq(cells[3]) {
			r.Fields = append(r.Fields, strings.Trim(f, "`"))
		}
		list = append(list, r)
	}
	return list
}

// Every row of the table says what furl does with the shape and names a test that shows
// it, which exists; a definition names the test that no policy hides it.
func TestShapes(t *testing.T) {
	list := rows(t)
	if len(list) < 50 {
		t.Fatalf("%d rows in %s", len(list), shapesFile)
	}
	tests := testNames(t)
	seen := make(map[string]int)
	for _, r := range list {
		if first := seen[r.key()]; first > 0 {
			t.Errorf("line %d repeats line %d: %s", r.line, first, r.key())
		}
		seen[r.key()] = r.line
		if r.Does == "" || r.Clients == "" {
			t.Errorf("line %d: %s does not say who sends it and what furl does with it", r.line, r.key())
		}
		name, _, _ := strings.Cut(r.Test, "/")
		if !tests[name] {
			t.Errorf("line %d: %s names the test %q, which does not exist", r.line, r.key(), r.Test)
		}
		if r.Does == "definition: never hidden" && name != "TestFixedStays" {
			t.Errorf("line %d: %s is never hidden; name TestFixedStays, not %s", r.line, r.key(), r.Test)
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)

// testNames are the names of all tests of the module.
func testNames(t testing.TB) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	err := eachGoTest("../../..", func(text []byte) {
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func eachGoTest(dir string, do func(text []byte)) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && e.Name() != "testdata" && e.Name() != "node_modules" && !strings.HasPrefix(e.Name(), "."):
			err = eachGoTest(name, do)
		case strings.HasSuffix(name, "_test.go"):
			var text []byte
			if text, err = os.ReadFile(name); err == nil {
				do(text)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
