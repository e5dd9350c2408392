package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// options are the flags of testreport itself, which go test does not know.
type options struct {
	noRace []string // packages that run without the race detector
	whole  []string // tests that run without it, in packages that run with it
	first  []string // packages that start before the others
}

// cut removes the flags of testreport from arguments.
func cut(args []string) (o options, rest []string) {
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		list := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		switch name {
		case "-norace":
			o.noRace = list
		case "-whole":
			o.whole = list
		case "-first":
			o.first = list
		default:
			rest = append(rest, arg)
		}
	}
	return o, rest
}

// everything is the pattern of all packages of a module.
const everything = "./..."

// split returns the runs of go test for the arguments: lanes that run at once, each a list
// of arguments that run one after the other. There is one run, or if -race is for all
// packages, one with the race detector and next to it those without: the packages that start no
// goroutine or that -norace lists, and the tests that -whole lists.
func split(args []string) ([][][]string, error) {
	o, args := cut(args)
	if !slices.Contains(args, everything) || !slices.Contains(args, "-race") && len(o.first) == 0 {
		return [][][]string{{args}}, nil
	}
	all, err := list()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *pkg) int { return cmp.Compare(a.turn(o.first), b.turn(o.first)) })
	flags := slices.DeleteFunc(args, func(arg string) bool { return arg == everything })
	var with, without, whole []string
	for _, p := range all {
		switch {
		case p.concurrent && !slices.Contains(o.noRace, p.dir) && slices.Contains(flags, "-race"):
			with = append(with, p.path)
			if slices.ContainsFunc(o.whole, func(name string) bool { return p.tests[name] }) {
				whole = append(whole, p.path)
			}
		default:
			without = append(without, p.path)
		}
	}
	beside := slices.DeleteFunc(slices.Clone(flags), func(arg string) bool { return arg == "-race" })
	if len(with) == 0 {
		return [][][]string{{slices.Concat(beside, without)}}, nil
	}
	pattern := "^(" + strings.Join(o.whole, "|") + ")$"
	if len(whole) > 0 {
		flags = append(slices.Clone(flags), "-skip", pattern)
	}
	lanes := [][][]string{{slices.Concat(flags, with)}}
	var second [][]string
	if len(without) > 0 {
		second = append(second, slices.Concat(beside, without))
	}
	if len(whole) > 0 {
		second = append(second, slices.Concat(beside, []string{"-run", pattern}, whole))
	}
	if len(second) == 0 {
		return lanes, nil
	}
	lanes = append(lanes, second)
	return lanes, share(lanes)
}

// share divides the packages that run at once (-p) among the lanes.
func share(lanes [][][]string) error {
	i := slices.Index(lanes[0][0], "-p")
	if i < 0 || i+1 >= len(lanes[0][0]) {
		return nil
	}
	n, err := strconv.Atoi(lanes[0][0][i+1])
	if err != nil {
		return fmt.Errorf("-p %s: %w", lanes[0][0][i+1], err)
	}
	for at, lane := range lanes {
		each := max(1, n/2)
		if at == 0 {
			each = max(1, n-n/2)
		}
		for _, run := range lane {
			run[slices.Index(run, "-p")+1] = strconv.Itoa(each)
		}
	}
	return nil
}

// pkg is a package of the module.
type pkg struct {
	path  string // import path
	dir   string // from the root of the module, with slashes
	tests map[string]bool
	// concurrent reports whether the package, its tests or a test kit that it imports
	// start goroutines.
	concurrent bool
}

// turn is the place of a package in a list of directories, or after all of them.
func (p *pkg) turn(first []string) int {
	if i := slices.Index(first, p.dir); i >= 0 {
		return i
	}
	return len(first)
}

// list reads the packages of the module in the current folder.
func list() ([]*pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Module,GoFiles,TestGoFiles,XTestGoFiles,TestImports,XTestImports", everything)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []*pkg
	imports := map[*pkg][]string{}
	kits := map[string]bool{} // packages for tests that start goroutines, by path
	in := json.NewDecoder(out)
	for {
		var l struct {
			ImportPath, Dir                                               string
			Module                                                        struct{ Path string }
			GoFiles, TestGoFiles, XTestGoFiles, TestImports, XTestImports []string
		}
		if err := in.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		p := &pkg{path: l.ImportPath, dir: strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, l.Module.Path), "/"), tests: map[string]bool{}}
		for _, name := range slices.Concat(l.GoFiles, l.TestGoFiles, l.XTestGoFiles) {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
			if f == nil {
				return nil, err // it does not exist; go test reports its errors
			}
			starts := startsGoroutines(f)
			p.concurrent = p.concurrent || starts
			if starts && isKit(p.dir) && !strings.HasSuffix(name, "_test.go") {
				kits[p.path] = true
			}
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil {
					p.tests[d.Name.Name] = true
				}
			}
		}
		imports[p] = slices.Concat(l.TestImports, l.XTestImports)
		all = append(all, p)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for p, of := range imports {
		p.concurrent = p.concurrent || slices.ContainsFunc(of, func(path string) bool { return kits[path] })
	}
	return all, nil
}

// isKit reports whether a folder has a package for tests of other packages.
func isKit(dir string) bool { return dir == "furltest" || strings.HasPrefix(dir, "internal/dev/") }

// starters are functions that start goroutines, such as those of sync.WaitGroup,
// testing.T, package time and httptest.
var starters = []string{"Go", "Parallel", "AfterFunc", "NewServer", "NewTLSServer", "NewUnstartedServer", "RunParallel"}

// startsGoroutines reports whether a file does so in its text.
func startsGoroutines(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && slices.Contains(starters, s.Sel.Name)
		}
		return !found
	})
	return found
}
