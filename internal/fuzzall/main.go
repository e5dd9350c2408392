// Fuzzall runs every fuzz target of the product for a while, one after the
// other, because go test takes one target at a time. It is silent about
// targets that find nothing.
//
//	go run ./internal/fuzzall -time 60s -total 30m
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
	"strings"
	"time"
)

func main() {
	each := flag.Duration("time", time.Minute, "time to fuzz each target")
	total := flag.Duration("total", time.Hour, "time after which no target is started, including builds")
	flag.Parse()
	targets, err := find(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(2)
	}
	if !fuzz(targets, *each, *total) {
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

// isModule reports whether a folder is the root of a module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// fuzz runs the targets and reports whether none of them found anything. Where
// there is too little time for all of them, each gets less.
func fuzz(targets []target, each, total time.Duration) bool {
	start, fuzzed, ok := time.Now(), time.Duration(0), true
	for i, t := range targets {
		turn := turnOf(i, len(targets), each, total, time.Since(start), fuzzed)
		if turn == 0 {
			fmt.Printf("%d of %d targets were not run within %v\n", len(targets)-i, len(targets), total)
			break
		}
		fuzzed += turn
		if err := fuzzOne(t, turn); err != nil {
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

func fuzzOne(t target, each time.Duration) error {
	// A target that hangs is a failure too; the build needs additional time.
	ctx, cancel := context.WithTimeout(context.Background(), each+3*time.Minute)
	defer cancel()
	// Coverage varies if goroutines work together, and go test would spend
	// all the time minimising each new input.
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzzminimizetime", "20x",
		"-fuzztime", each.Round(time.Second).String(), "./"+filepath.ToSlash(t.dir))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
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
