package behaviours

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Find returns, for each id, the sorted files below root with a test whose
// name contains it.
func (t *Table) Find(root string) (map[string][]string, error) {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// The names in this package's test are about ids, and npm's
			// packages are not ours.
			if path != root && strings.HasPrefix(d.Name(), ".") || d.Name() == "behaviours" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		var names []string
		switch {
		case strings.Contains("/"+rel, "/testdata/"):
			names = []string{d.Name()}
		case strings.HasSuffix(rel, "_test.go"):
			names, err = testNames(path)
		}
		for _, name := range names {
			for _, id := range t.Borne(name) {
				if !slices.Contains(found[id], rel) {
					found[id] = append(found[id], rel)
				}
			}
		}
		return err
	})
	return found, err
}

var bare = regexp.MustCompile(`^([TACRMX][0-9]{1,2}|preset|event) `)

// testNames lists the names of tests in a Go file: its test functions, the
// first argument of each Run, and the strings in tables of tests.
func testNames(path string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var names []string
	add := func(e ast.Expr, alone bool) {
		// Without a key, only strings that start like "T1 words" or "event
		// words" count as names.
		if s := leftmost(e); s != "" && (!alone || bare.MatchString(s)) {
			names = append(names, s)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && prefix.MatchString(n.Name.Name) {
				names = append(names, n.Name.Name)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Run" && len(n.Args) == 2 {
				add(n.Args[0], false)
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "name") {
				add(n.Value, false)
			}
			add(n.Key, true)
		case *ast.CompositeLit:
			if len(n.Elts) > 0 {
				add(n.Elts[0], true)
			}
		}
		return true
	})
	return names, nil
}

// leftmost is the string literal at the start of an expression, "" if there
// is none.
func leftmost(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.BinaryExpr:
			e = x.X
		case *ast.BasicLit:
			if x.Kind != token.STRING {
				return ""
			}
			s, _ := strconv.Unquote(x.Value) // the parser has checked it
			return s
		default:
			return ""
		}
	}
}
