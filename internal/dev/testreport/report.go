package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// event is one line of go test -json (see "go doc test2json").
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64 // seconds
}

// test is one test or subtest, or with an empty name the package itself.
type test struct {
	run       int // of go test, since a package may be in several
	pkg, name string
	result    string // "pass", "fail", "skip"; "" while it runs
	seconds   float64
	output    []string
	parent    bool // has subtests, which are counted instead
}

type report struct {
	mu    sync.Mutex // of all, while runs of go test are read
	out   io.Writer
	tests map[string]*test    // by run, package and name
	pkgs  map[string][]*test  // by run and package
	build map[string][]string // compiler output by import path

	passed, failed, skipped int
	skips                   map[string][]string // names by reason
}

func newReport(out io.Writer) *report {
	return &report{
		out:   out,
		tests: map[string]*test{},
		pkgs:  map[string][]*test{},
		build: map[string][]string{},
		skips: map[string][]string{},
	}
}

// read reads the events of one run of go test until the end. Lines that are not events are
// printed.
func (r *report) read(run int, events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.mu.Lock()
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				r.add(run, e)
			} else {
				r.out.Write(line)
			}
			r.mu.Unlock()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(run int, e event) {
	switch e.Action {
	case "build-output":
		r.build[e.ImportPath] = append(r.build[e.ImportPath], e.Output)
		return
	case "build-fail":
		fmt.Fprint(r.out, strings.Join(r.build[e.ImportPath], ""))
		return
	}
	t := r.find(run, e.Package, e.Test)
	switch e.Action {
	case "output":
		t.output = append(t.output, e.Output)
	case "pass", "fail", "skip":
		t.result, t.seconds = e.Action, e.Elapsed
		if e.Test == "" {
			r.closePackage(t)
		} else if e.Action == "pass" {
			t.output = nil
		}
	}
}

// find finds a test, or adds a new one.
func (r *report) find(run int, pkg, name string) *test {
	in := strconv.Itoa(run) + "\x00" + pkg
	key := in + "\x00" + name
	t := r.tests[key]
	if t == nil {
		t = &test{run: run, pkg: pkg, name: name}
		r.tests[key] = t
		if name != "" {
			r.pkgs[in] = append(r.pkgs[in], t)
		}
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			r.find(run, pkg, name[:i]).parent = true
		}
	}
	return t
}

// closePackage counts the tests of a finished package and prints its line,
// with the output of failures.
func (r *report) closePackage(p *test) {
	failed := r.failed
	for _, t := range r.pkgs[strconv.Itoa(p.run)+"\x00"+p.pkg] {
		if t.result == "" { // ended by a panic or a timeout
			t.result = "fail"
		}
		switch {
		case t.result == "fail":
			fmt.Fprint(r.out, strings.Join(t.output, ""))
			if !t.parent {
				r.failed++
			}
		case t.result == "skip":
			r.skipped++
			reason := skipReason(t.output)
			r.skips[reason] = append(r.skips[reason], p.pkg+" "+t.name)
		case !t.parent:
			r.passed++
		}
	}
	if p.result == "fail" && r.failed == failed {
		r.failed++ // the package itself: it did not build, or TestMain failed
	}
	for _, line := range p.output {
		if p.result == "fail" || strings.HasPrefix(line, "ok  ") {
			fmt.Fprint(r.out, line)
		}
	}
}

var logPrefix = regexp.MustCompile(`^\s*[^\s:]+\.go:\d+: `)

// skipReason extracts a skipped test's message from its output.
func skipReason(output []string) string {
	var reason []string
	for line := range strings.SplitSeq(strings.Join(output, ""), "\n") {
		switch at := logPrefix.FindString(line); {
		case at != "":
			reason = []string{strings.TrimSpace(line[len(at):])} // the last one counts
		case strings.HasPrefix(strings.TrimSpace(line), "--- SKIP"), strings.HasPrefix(line, "==="):
		case len(reason) > 0 && strings.TrimSpace(line) != "":
			reason = append(reason, strings.TrimSpace(line))
		}
	}
	if len(reason) == 0 {
		return "no reason given"
	}
	return strings.Join(reason, " ")
}

// A test that takes slowSeconds is listed as slow, at most maxSlow of them.
const (
	slowSeconds = 20
	maxSlow     = 16
)

// slowest lists the slowest tests, without subtests.
func (r *report) slowest() {
	var slow []*test
	for _, t := range r.tests {
		if t.seconds >= slowSeconds && t.name != "" && !strings.Contains(t.name, "/") {
			slow = append(slow, t)
		}
	}
	slices.SortFunc(slow, func(a, b *test) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), strings.Compare(a.name, b.name))
	})
	for _, t := range slow[:min(len(slow), maxSlow)] {
		fmt.Fprintf(r.out, "slow  %5.0fs  %s %s\n", t.seconds, t.pkg, t.name)
	}
}

// maxNames is how many skipped tests are named for each reason.
const maxNames = 8

// summary prints the skipped tests and their reasons, the promises without a
// test that ran, the slowest tests, and then the counts on a separate line.
func (r *report) summary(noSkip bool, kept promises) {
	reasons := sortedKeys(r.skips)
	for _, reason := range reasons {
		names := r.skips[reason]
		slices.Sort(names)
		fmt.Fprintf(r.out, "\nskipped (%d): %s\n", len(names), reason)
		for i, name := range names {
			if i == maxNames {
				fmt.Fprintf(r.out, "    and %d more\n", len(names)-i)
				break
			}
			fmt.Fprintf(r.out, "    %s\n", name)
		}
	}
	if len(reasons) > 0 {
		fmt.Fprintln(r.out, "\nCONTRIBUTING.md says how to run what was skipped.")
		if noSkip {
			fmt.Fprintln(r.out, "FURL_NO_SKIP is set: skipped tests count as a failure.")
		}
	}
	for _, of := range []struct {
		what string
		ids  []string
	}{
		{"listed as tested in docs/internals/behaviours.md, but no test with the id ran", kept.unkept},
		{"listed as tested in docs/internals/behaviours.md, but all tests with the id were skipped", kept.skipped},
		{"listed as not tested in docs/internals/behaviours.md, but a test with the id ran (run make generate)", kept.unlisted},
	} {
		if len(of.ids) > 0 {
			fmt.Fprintf(r.out, "\n%s: %s\n", of.what, strings.Join(of.ids, ", "))
		}
	}
	r.slowest()
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}
