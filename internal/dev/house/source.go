package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source is all Go files of the product outside tests.
type source struct {
	set   *token.FileSet
	files map[string]*ast.File // by path, with slashes
	text  map[string][]byte
}

// count is a number with a name.
type count struct {
	name  string
	count int
}

// skipped reports whether a folder has nothing that is counted.
func skipped(name string) bool {
	return name == "testdata" || name == "node_modules" || name == "packaging" || len(name) > 1 && name[0] == '.'
}

// dev is the folder of test kits, house tools and benchmarks, which are not part of the product.
func dev(root string) string { return filepath.Join(root, "internal", "dev") }

func parse(root string) (*source, error) {
	s := &source{set: token.NewFileSet(), files: make(map[string]*ast.File), text: make(map[string][]byte)}
	return s, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (skipped(d.Name()) || path == dev(root)):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(s.set, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		s.files[rel], s.text[rel] = f, text
		return nil
	})
}

// byHand is a command that counts the same lines.
const byHand = `git ls-files '*.go' | grep -v '_test\.go$\|^internal/dev/\|^packaging/\|/testdata/' | xargs cat | wc -l`

// lines counts all lines of the product.
func (s *source) lines() int { return s.linesIn("") }

// linesIn counts the lines of files whose paths begin with a folder.
func (s *source) linesIn(folder string) int {
	n := 0
	for path, text := range s.text {
		if strings.HasPrefix(path, folder) {
			n += bytes.Count(text, []byte("\n"))
		}
	}
	return n
}

// codeLines counts the lines that hold a token.
func (s *source) codeLines() int {
	lines := 0
	for _, text := range s.text {
		set := token.NewFileSet()
		file := set.AddFile("", -1, len(text))
		var sc scanner.Scanner
		sc.Init(file, text, nil, 0)
		last := 0
		for {
			pos, tok, lit := sc.Scan()
			if tok == token.EOF {
				break
			}
			if tok == token.SEMICOLON && lit == "\n" {
				continue
			}
			first := file.Line(pos)
			end := first + strings.Count(lit, "\n") // of a raw string
			lines += end - max(first-1, last)
			last = end
		}
	}
	return lines
}

// public reports whether other modules can import a folder's package.
func public(dir string) bool {
	return !strings.HasPrefix(dir, "internal") && !strings.Contains(dir, "/internal") && !strings.HasPrefix(dir, "cmd")
}

// exported counts the exported identifiers of public packages, and the exported
// methods of exported types.
func (s *source) exported() (total int, packages []count) {
	by := make(map[string]int)
	for path, f := range s.files {
		dir := "."
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			dir = path[:i]
		}
		if public(dir) && f.Name.Name != "main" {
			for _, d := range f.Decls {
				by[dir] += exportedIn(d)
			}
		}
	}
	for dir, n := range by {
		packages = append(packages, count{dir, n})
		total += n
	}
	slices.SortFunc(packages, func(a, b count) int { return cmp.Or(b.count-a.count, strings.Compare(a.name, b.name)) })
	return total, packages
}

func exportedIn(d ast.Decl) (n int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			n++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					n++
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						n++
					}
				}
			}
		}
	}
	return n
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// knowFormats are the packages whose business is one format or another.
var knowFormats = []string{
	"wire/", "transcript/", "sim/", "catalog/", "furltest/",
}

// compareFormats lists the files that decide by a wire format outside the
// packages whose business that is: with ==, != or a case, or by a map's keys.
func (s *source) compareFormats() (files []string) {
	for path, f := range s.files {
		if slices.ContainsFunc(knowFormats, func(p string) bool { return strings.HasPrefix(path, p) }) {
			continue
		}
		found := false
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				found = found || (n.Op == token.EQL || n.Op == token.NEQ) && (isFormat(n.X) || isFormat(n.Y))
			case *ast.CaseClause:
				found = found || slices.ContainsFunc(n.List, isFormat)
			case *ast.KeyValueExpr:
				found = found || isFormat(n.Key)
			}
			return !found
		})
		if found {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return files
}

func isFormat(e ast.Expr) bool {
	name := ""
	switch e := e.(type) {
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.Ident: // in the root package
		name = e.Name
	}
	return name == "FormatAnthropic" || name == "FormatChat" || name == "FormatResponses"
}
