package demo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t`)

// failure is one test that fails: where in its file, and what it says there.
type failure struct {
	test string
	// path and the place in it: the first line that holds at, behind within.
	path, within, at string
	text             string
}

// test runs the tests of one package, verbosely.
func (a *agent) test(pkg string, failures ...failure) act {
	var b strings.Builder
	for _, path := range a.project.paths("internal/" + pkg + "/") {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range testFunc.FindAllStringSubmatch(a.project.files[path], -1) {
			a.oneTest(&b, m[1], failures)
		}
	}
	status, took := "ok  ", 0.2+a.rng.Float64()*2
	if len(failures) > 0 {
		b.WriteString("FAIL\n")
		status = "FAIL"
	} else {
		b.WriteString("PASS\n")
	}
	fmt.Fprintf(&b, "%s\t%s/internal/%s\t%.3fs\n", status, module, pkg, took)
	return a.bash("go test -v ./internal/"+pkg+"/", "Run the tests of "+pkg, b.String(), len(failures) > 0, 6, 25)
}

func (a *agent) oneTest(b *strings.Builder, name string, failures []failure) {
	fmt.Fprintf(b, "=== RUN   %s\n", name)
	verdict := "PASS"
	for _, f := range failures {
		if f.test == name || strings.HasPrefix(f.test, name+"/") {
			verdict = "FAIL"
			base := f.path[strings.LastIndexByte(f.path, '/')+1:]
			if f.test != name {
				fmt.Fprintf(b, "=== RUN   %s\n", f.test)
			}
			fmt.Fprintf(b, "    %s:%d: %s\n", base, a.line(f.path, f.within, f.at), f.text)
		}
	}
	fmt.Fprintf(b, "--- %s: %s (%.2fs)\n", verdict, name, a.rng.Float64()/20)
	for _, f := range failures {
		if strings.HasPrefix(f.test, name+"/") {
			fmt.Fprintf(b, "    --- FAIL: %s (0.00s)\n", f.test)
		}
	}
}

// testAll runs the tests of all packages; what does not build fails.
func (a *agent) testAll(broken ...string) act {
	var b strings.Builder
	for _, line := range broken {
		b.WriteString(line + "\n")
	}
	failed := len(broken) > 0
	for _, pkg := range []string{"api", "model", "planner", "store"} {
		full := module + "/internal/" + pkg
		switch {
		case failed && strings.Contains(broken[0], full):
			fmt.Fprintf(&b, "FAIL\t%s [build failed]\n", full)
		case !a.tested(pkg):
			fmt.Fprintf(&b, "?   \t%s\t[no test files]\n", full)
		default:
			fmt.Fprintf(&b, "ok  \t%s\t%.3fs\n", full, 0.1+a.rng.Float64()*3)
		}
	}
	if failed {
		b.WriteString("FAIL\n")
	}
	return a.bash("go vet ./... && go test ./...", "Vet and test everything", b.String(), failed, 15, 50)
}

// tested reports whether a package has tests.
func (a *agent) tested(pkg string) bool {
	return slices.ContainsFunc(a.project.paths("internal/"+pkg+"/"), func(path string) bool {
		return strings.HasSuffix(path, "_test.go")
	})
}

// broken is what the compiler says of a package.
func (a *agent) broken(pkg, path, within, at, text string) []string {
	return []string{
		fmt.Sprintf("# %s/internal/%s", module, pkg),
		fmt.Sprintf("%s:%d:%d: %s", path, a.line(path, within, at), 2+a.rng.IntN(12), text),
	}
}
