// Testreport runs go test with its arguments and prints a short report: one
// line for each package, the output of failures, the reasons of skipped
// tests, and the counts as the last line.
//
//	go run ./internal/testreport [flags of go test] ./...
//
// With FURL_NO_SKIP set, a skipped test is a failure: the full set must run,
// as in .ci/run. Exit status 1 means that something failed.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
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
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = errs
	events, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	r := newReport(out)
	if err := r.read(events); err != nil {
		return false, fmt.Errorf("read the output of go test: %w", err)
	}
	failed := cmd.Wait() // non-zero also if a package did not build
	kept, err := r.promises(args)
	if err != nil {
		return false, fmt.Errorf("compare with docs/internals/behaviours.md: %w", err)
	}
	r.summary(noSkip, kept)
	return failed == nil && r.failed == 0 && len(kept.unkept)+len(kept.unlisted) == 0 && (!noSkip || r.skipped == 0), nil
}
