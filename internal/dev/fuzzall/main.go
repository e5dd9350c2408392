// Fuzzall runs every fuzz target of the product for a while, one after the
// other, because go test takes one target at a time. It is silent about
// targets that find nothing. Where the time is too short for all of them, it begins with
// another package each hour, so that every target has its turn.
//
//	go run ./internal/dev/fuzzall -time 60s -total 30m
//	go run ./internal/dev/fuzzall -time 2s -turns 4 -turn 17
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	each := flag.Duration("time", time.Minute, "time to fuzz each target")
	total := flag.Duration("total", time.Hour, "time after which no target is started, including builds")
	turns := flag.Int("turns", 1, "fuzz the targets of every n-th package only")
	turn := flag.Int("turn", 0, "which of these turns it is; larger numbers begin again")
	flag.Parse()
	targets, err := find(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(2)
	}
	targets = rotate(inTurn(targets, max(1, *turns), *turn), int(time.Now().Unix()/3600))
	bin, err := os.MkdirTemp("", "fuzzall")
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(2)
	}
	ok := fuzz(targets, bin, *each, *total)
	os.RemoveAll(bin)
	if !ok {
		os.Exit(1)
	}
}

// target is one fuzz function.
type target struct{ dir, name string }

// find lists the fuzz targets of the module at root in the order of its folders,
// without those of modules in them.
func find(root string) ([]target, error) {
	var targets []target
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || isModule(path)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				targets = append(targets, target{filepath.Dir(path), f.Name.Name})
			}
		}
		return nil
	})
	return targets, err
}

// inTurn returns the targets of every n-th package: turn is the first of them, or a larger
// number with the same remainder.
func inTurn(targets []target, n, turn int) (list []target) {
	pkg := -1
	for i, t := range targets {
		if i == 0 || t.dir != targets[i-1].dir {
			pkg++
		}
		if pkg%n == turn%n {
			list = append(list, t)
		}
	}
	return list
}

// rotate moves the targets of the first n packages to the end; n is reduced to less than
// the number of packages.
func rotate(targets []target, n int) []target {
	var first []int // index of the first target of each package
	for i, t := range targets {
		if i == 0 || t.dir != targets[i-1].dir {
			first = append(first, i)
		}
	}
	if len(first) == 0 {
		return nil
	}
	at := first[n%len(first)]
	return slices.Concat(targets[at:], targets[:at])
}

// isModule reports whether a folder is the root of a module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// fuzz runs the targets and reports whether none of them found anything. Where
// there is too little time for all of them, each gets less. Test programs are built in
// folder bin, one for each package.
func fuzz(targets []target, bin string, each, total time.Duration) bool {
	start, fuzzed, ok := time.Now(), time.Duration(0), true
	var p program
	for i, t := range targets {
		turn := turnOf(i, len(targets), each, total, time.Since(start), fuzzed)
		if turn == 0 {
			fmt.Printf("%d of %d targets were not run within %v\n", len(targets)-i, len(targets), total)
			break
		}
		if p.dir != t.dir {
			p = build(t.dir, bin)
		}
		fuzzed += turn
		if err := p.fuzz(t.name, turn); err != nil {
			fmt.Printf("%s in %s: %v\n", t.name, t.dir, err)
			ok = false
		}
	}
	fmt.Printf("%d fuzz targets in %v\n", len(targets), time.Since(start).Round(time.Second))
	return ok
}

// turnOf is how long target i of n is fuzzed: its share of the remaining
// time, minus the average build time so far, and at most each; 0 if no time
// is left. It is in whole seconds, as go test requires.
func turnOf(i, n int, each, total, passed, fuzzed time.Duration) time.Duration {
	var building time.Duration
	if i > 0 {
		building = (passed - fuzzed) / time.Duration(i)
	}
	left := total - passed
	if left < time.Second {
		return 0
	}
	due := left/time.Duration(n-i) - building
	return min(each, max(time.Second, due.Truncate(time.Second)))
}

// program is the test program of a package.
type program struct {
	dir, path string
	err       error // it was not built
}

// build builds the test program of the package in dir in folder bin.
func build(dir, bin string) program {
	p := program{dir: dir, path: filepath.Join(bin, "fuzz.test")}
	out, err := exec.Command("go", "test", "-c", "-fuzz", ".", "-o", p.path, "./"+filepath.ToSlash(dir)).CombinedOutput()
	if err != nil {
		p.err = fmt.Errorf("build: %w\n%s", err, out)
	}
	return p
}

// fuzz runs one target. Inputs of earlier runs that are worth keeping are in the user's
// folder of caches.
func (p program) fuzz(name string, each time.Duration) error {
	if p.err != nil {
		return p.err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	// A target that hangs is a failure too.
	ctx, cancel := context.WithTimeout(context.Background(), each+3*time.Minute)
	defer cancel()
	// Coverage varies if goroutines work together, and go test would spend
	// all the time minimising each new input.
	cmd := exec.CommandContext(ctx, p.path, "-test.run", "^$", "-test.fuzz", "^"+name+"$", "-test.fuzzminimizetime", "20x",
		"-test.fuzztime", each.Round(time.Second).String(), "-test.fuzzcachedir", filepath.Join(cache, "furl-fuzz", p.dir))
	cmd.Dir = p.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("did not end: %w", ctx.Err())
	case err != nil && endOfTime(out.String()):
		return nil
	}
	if err != nil {
		os.Stdout.Write(out.Bytes())
	}
	return err
}

// endOfTime recognises a run that fails only because the time ran out while a
// worker was busy, which go test reports as a failure without an input.
func endOfTime(out string) bool {
	return strings.Contains(out, "context deadline exceeded") && !strings.Contains(out, "Failing input")
}
