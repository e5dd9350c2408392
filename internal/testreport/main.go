// Testreport runs go test with its arguments and prints a short report: one
// line for each package, the output of failures, the reasons of skipped
// tests, and the counts as the last line.
//
//	go run ./internal/testreport [-norace=PACKAGE,PACKAGE] [flags of go test] ./...
//
// With -race, packages after -norace run without the race detector, beside the others and
// half of the packages at once (-p) each. These are packages that take long under it and
// gain little by it.
//
// With FURL_NO_SKIP set, a skipped test is a failure: the full set must run,
// as in .ci/run. Exit status 1 means that something failed.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
)

func main() {
	ok, err := run(os.Stdout, os.Stderr, os.Args[1:], os.Getenv("FURL_NO_SKIP") != "")
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run runs go test with the arguments and writes the report to out. It
// reports whether everything passed.
func run(out, errs io.Writer, args []string, noSkip bool) (bool, error) {
	parts, err := split(args)
	if err != nil {
		return false, err
	}
	r, ok := newReport(out), true
	var running []*exec.Cmd
	read := make(chan error, len(parts))
	for _, part := range parts {
		cmd := exec.Command("go", append([]string{"test", "-json"}, part...)...)
		cmd.Stderr = &lockedWriter{&r.mu, errs}
		events, err := cmd.StdoutPipe()
		if err != nil {
			return false, err
		}
		if err := cmd.Start(); err != nil {
			return false, err
		}
		running = append(running, cmd)
		go func() { read <- r.read(events) }()
	}
	for range running {
		if err := <-read; err != nil {
			return false, fmt.Errorf("read the output of go test: %w", err)
		}
	}
	for _, cmd := range running {
		if cmd.Wait() != nil { // also if a package did not build
			ok = false
		}
	}
	kept, err := r.promises(args)
	if err != nil {
		return false, fmt.Errorf("compare with docs/internals/behaviours.md: %w", err)
	}
	r.summary(noSkip, kept)
	return ok && r.failed == 0 && len(kept.unkept)+len(kept.unlisted) == 0 && (!noSkip || r.skipped == 0), nil
}

// lockedWriter is a writer that several commands write to.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// split returns the arguments of each run of go test: one, or two if -norace excludes
// packages of ./... from -race.
func split(args []string) ([][]string, error) {
	const flag, all = "-norace=", "./..."
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, flag) })
	if at < 0 {
		return [][]string{args}, nil
	}
	excluded := strings.Split(strings.TrimPrefix(args[at], flag), ",")
	args = slices.Delete(slices.Clone(args), at, at+1)
	if !slices.Contains(args, "-race") || !slices.Contains(args, all) {
		return [][]string{args}, nil
	}
	list, err := exec.Command("go", "list", all).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var with, without []string
	for name := range strings.FieldsSeq(string(list)) {
		if slices.Contains(excluded, name) {
			without = append(without, name)
		} else {
			with = append(with, name)
		}
	}
	flags := slices.DeleteFunc(args, func(arg string) bool { return arg == all })
	if len(without) == 0 {
		return [][]string{slices.Concat(flags, with)}, nil
	}
	beside := slices.DeleteFunc(slices.Clone(flags), func(arg string) bool { return arg == "-race" })
	if i := slices.Index(flags, "-p"); i >= 0 && i+1 < len(flags) {
		n, err := strconv.Atoi(flags[i+1])
		if err != nil {
			return nil, fmt.Errorf("-p %s: %w", flags[i+1], err)
		}
		half := max(1, n/2)
		flags[i+1], beside[slices.Index(beside, "-p")+1] = strconv.Itoa(max(1, n-half)), strconv.Itoa(half)
	}
	return [][]string{slices.Concat(flags, with), slices.Concat(beside, without)}, nil
}
