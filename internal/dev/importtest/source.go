package importtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// impure lists what a pure package must not import. A trailing slash covers a
// tree. The clock and goroutines are found in the code instead: values of
// package time are allowed.
var impure = []string{
	"os", "os/", "io/fs", "path/filepath", "net", "net/", "syscall", "log", "log/",
	"math/rand", "math/rand/", "crypto/rand", "embed", "plugin", "runtime/debug",
}

var sockets = []string{"net", "net/"}

// clock lists the functions of package time that read or wait for the clock.
var clock = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker",
}

// check compares the module whose root is at dir with the rules and returns
// one line per breach, in a stable order. Modules in folders of it, such as
// bench and packaging, have no rules: they are not part of the product.
func check(dir string, rules map[string]rule) ([]string, error) {
	module, err := modulePath(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	var breaches []string
	unknown := map[string]bool{}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if name != dir && (base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' || isModule(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		pkg := path.Dir(rel)
		r, ok := lookup(rules, pkg)
		if !ok {
			if !unknown[pkg] {
				unknown[pkg] = true
				breaches = append(breaches, fmt.Sprintf("package %s has no rule: say what it may import in internal/dev/importtest/rules.go", pkg))
			}
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, breach := range checkFile(file, module, pkg, r) {
			breaches = append(breaches, rel+": "+breach)
		}
		return nil
	})
	return breaches, err
}

func checkFile(file *ast.File, module, pkg string, r rule) []string {
	var breaches []string
	for _, spec := range file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		inside := name == module || strings.HasPrefix(name, module+"/")
		switch {
		case inside:
			target := strings.TrimPrefix(strings.TrimPrefix(name, module), "/")
			if target == "" {
				target = "."
			}
			if !covers(r.imports, target) {
				breaches = append(breaches, fmt.Sprintf("%s must not import %s", pkg, target))
			}
		case !standard(name):
			if r.stdlibOnly {
				breaches = append(breaches, fmt.Sprintf("%s uses the standard library only, not %s", pkg, name))
			}
		case r.pure && matches(impure, name):
			breaches = append(breaches, fmt.Sprintf("%s is pure and must not import %s", pkg, name))
		case r.offline && matches(sockets, name) && name != "net/url":
			breaches = append(breaches, fmt.Sprintf("%s is offline and must not import %s", pkg, name))
		}
	}
	if r.pure {
		breaches = append(breaches, checkPure(file, pkg)...)
	}
	return breaches
}

// checkPure finds goroutines and uses of the clock.
func checkPure(file *ast.File, pkg string) []string {
	var breaches []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			breaches = append(breaches, pkg+" is pure and must not start goroutines")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				breaches = append(breaches, fmt.Sprintf("%s is pure and must not use time.%s; take the time as an argument", pkg, n.Sel.Name))
			}
		}
		return true
	})
	return breaches
}

// lookup finds the rule of a package; its own precedes that of a tree.
func lookup(rules map[string]rule, pkg string) (rule, bool) {
	if r, ok := rules[pkg]; ok {
		return r, true
	}
	for dir := pkg; dir != "."; dir = path.Dir(dir) {
		if r, ok := rules[dir+"/..."]; ok {
			return r, true
		}
	}
	return rule{}, false
}

// covers reports whether a list of directories and trees contains target.
func covers(list []string, target string) bool {
	return slices.ContainsFunc(list, func(allowed string) bool {
		tree, ok := strings.CutSuffix(allowed, "/...")
		if !ok {
			return allowed == target
		}
		return tree == "." || target == tree || strings.HasPrefix(target, tree+"/")
	})
}

// matches is like covers for import paths, where a trailing slash is a tree.
func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return entry == name || strings.HasSuffix(entry, "/") && strings.HasPrefix(name, entry)
	})
}

// standard reports whether an import path belongs to the standard library:
// the first element of all others has a dot.
func standard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".")
}

// isModule reports whether a folder is the root of a module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func modulePath(gomod string) (string, error) {
	text, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("%s: no module line", gomod)
}
