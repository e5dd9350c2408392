// Command portable type-checks the packages of a module, tests included, for
// other systems: what is written on one system must build on the others. It
// compiles nothing, and skips the function bodies of dependencies, so it takes
// seconds where go vet takes minutes on a machine with an empty build cache.
//
//	portable darwin/arm64 windows/amd64
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "portable: find the module:", err)
		os.Exit(2)
	}
	failed := false
	for _, system := range os.Args[1:] {
		for _, problem := range check(strings.TrimSpace(string(root)), system) {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %s\n", system, problem)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns what does not build on a system, such as darwin/arm64.
func check(root, system string) (problems []string) {
	goos, goarch, _ := strings.Cut(system, "/")
	own := root + string(filepath.Separator)
	all, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Tests: true,
		Env:   append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
		ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, own) {
				withoutBodies(file)
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		return []string{err.Error()}
	}
	seen := make(map[string]bool)
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			own := p.Module != nil && p.Module.Dir == root || strings.HasPrefix(e.Pos, own)
			if text := e.Error(); own && !seen[text] {
				seen[text] = true
				problems = append(problems, text)
			}
		}
	})
	return problems
}

// withoutBodies removes the bodies of a file's functions. The imports that only
// they used are then reported as unused, and ignored like all errors of dependencies.
func withoutBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
