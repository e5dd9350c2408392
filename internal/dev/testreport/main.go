// Testreport runs go test with its arguments and prints a short report: one
// line for each package, the output of failures, the reasons of skipped
// tests, and the counts as the last line.
//
//	go run ./internal/dev/testreport [-norace=DIR,DIR] [-whole=TEST,TEST] [-first=DIR,DIR] [flags of go test] ./...
//	go run ./internal/dev/testreport -total FILE
//
// With -race, packages that start no goroutine run without the race detector, next to the
// others and half of the packages at once (-p) each. So do the packages after -norace,
// which take long under it and gain little by it, and the tests after -whole, which their
// packages skip under it. Packages after -first start before the others.
//
// With FURL_NO_SKIP set, a skipped test is a failure: the full set must run,
// as in .ci/run. With FURL_TEST_TOTALS set to a file, the counts are added to it; -total
// prints the sum of all runs in such a file. Exit status 1 means that something failed.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "-total" {
		if err := printTotals(os.Stdout, os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
			os.Exit(2)
		}
		return
	}
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
	lanes, err := split(args)
	if err != nil {
		return false, err
	}
	r, ok := newReport(out), true
	type result struct {
		ok  bool
		err error
	}
	results, n := make(chan result, len(lanes)), 0
	for _, lane := range lanes {
		first := n
		n += len(lane)
		go func() {
			all := result{ok: true}
			for i, part := range lane {
				ok, err := r.test(first+i, &lockedWriter{&r.mu, errs}, part)
				all.ok = all.ok && ok
				if all.err = err; err != nil {
					break
				}
			}
			results <- all
		}()
	}
	for range lanes {
		each := <-results
		if each.err != nil {
			return false, each.err
		}
		ok = ok && each.ok
	}
	kept, err := r.promises(args)
	if err != nil {
		return false, fmt.Errorf("compare with docs/internals/behaviours.md: %w", err)
	}
	r.summary(noSkip, kept)
	if err := r.keepTotals(os.Getenv(totalsFile)); err != nil {
		return false, fmt.Errorf("write the counts to %s: %w", totalsFile, err)
	}
	return ok && r.failed == 0 && len(kept.unkept)+len(kept.unlisted) == 0 && (!noSkip || r.skipped == 0), nil
}

// test runs go test with the arguments and reads its events. It reports whether everything
// passed.
func (r *report) test(run int, errs io.Writer, args []string) (bool, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = errs
	events, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	if err := r.read(run, events); err != nil {
		return false, fmt.Errorf("read the output of go test: %w", err)
	}
	return cmd.Wait() == nil, nil // not if a package did not build
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
