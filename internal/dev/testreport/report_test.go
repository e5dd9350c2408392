package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests that these tests run are no tests of furl.
func TestMain(m *testing.M) {
	if err := os.Unsetenv(totalsFile); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// The report is made from a real go test run of a module written for it.
func TestReport(t *testing.T) {
	files := map[string]string{
		"go.mod": "module example.test/m\n\ngo 1.26\n",
		"good/good_test.go": `package good
import "testing"
func TestFine(t *testing.T) {
	t.Log("not shown")
	t.Run("T1 one", func(t *testing.T) {})
	t.Run("T8 two", func(t *testing.T) {})
}
func TestNeedsFile(t *testing.T) { t.Skip("X_FILE is unset:\nset it") }
func TestT4Skipped(t *testing.T) {
	t.Run("T5", func(t *testing.T) { t.Skip("X_FILE is unset:\nset it") })
}
func TestT6(t *testing.T) {
	t.Run("T7 skipped", func(t *testing.T) { t.Skip("X_FILE is unset:\nset it") })
	t.Run("ran", func(t *testing.T) {})
}
`,
		"bad/bad_test.go": `package bad
import "testing"
func TestSum(t *testing.T) {
	t.Run("wrong", func(t *testing.T) { t.Error("got 3, want 4") })
	t.Run("right", func(t *testing.T) { t.Log("not shown") })
}
`,
		"broken/broken_test.go": `package broken
var x int = "words"
`,
		"panics/panics_test.go": `package panics
import "testing"
func TestPanics(t *testing.T) { panic("out of cheese") }
`,
		"empty/empty.go": "package empty\n",
		"both/both_test.go": `package both
import "testing"
func TestAtOnce(t *testing.T) {
	done := make(chan bool)
	go close(done)
	<-done
}
func TestWhole(t *testing.T) {}
`,
		"docs/internals/behaviours.md": "| id | promise | tested in |\n|---|---|---|\n" +
			"| T1 | ran | x |\n| T2 | did not run | x |\n| T3 | nobody says it did | not yet |\n" +
			"| T4 | skipped | x |\n| T5 | skipped | x |\n| T6 | one of two ran | x |\n| T7 | skipped | x |\n| T8 | ran | not yet |\n",
	}
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)

	tests := []struct {
		name   string
		args   []string
		noSkip bool
		ok     bool
		want   []string
		last   string
	}{
		{
			name: "everything", args: []string{"./..."},
			want: []string{
				"ok  \texample.test/m/good",
				"got 3, want 4",
				"FAIL\texample.test/m/bad",
				"cannot use \"words\"",
				"out of cheese",
				"skipped (3): X_FILE is unset: set it\n    example.test/m/good TestNeedsFile\n",
				"no test with the id ran: T2\n",
				"all tests with the id were skipped: T4, T5, T7\n",
				"a test with the id ran (run make generate): T8\n",
			},
			last: "6 passed, 3 failed, 3 skipped",
		},
		{
			name: "a skip is allowed", args: []string{"./good"}, ok: true,
			last: "3 passed, 0 failed, 3 skipped",
		},
		{
			name: "a skip is a failure", args: []string{"./good"}, noSkip: true,
			want: []string{"FURL_NO_SKIP"},
			last: "3 passed, 0 failed, 3 skipped",
		},
		{
			name: "flags are passed on", args: []string{"-run", "Fine", "./good"}, noSkip: true, ok: true,
			last: "2 passed, 0 failed, 0 skipped",
		},
		{
			name: "packages and tests without the race detector", args: []string{"-norace=other", "-whole=TestWhole", "-race", "-p", "3", "./..."},
			want: []string{"ok  \texample.test/m/good", "FAIL\texample.test/m/bad", "no test with the id ran: T2\n", "ok  \texample.test/m/both"},
			last: "6 passed, 3 failed, 3 skipped",
		},
		{
			name: "no such package", args: []string{"./nowhere"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			ok, err := run(&out, &errs, tt.args, tt.noSkip)
			if err != nil {
				t.Fatal(err)
			}
			if ok != tt.ok {
				t.Errorf("ok = %v, want %v", ok, tt.ok)
			}
			got := out.String()
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("the report lacks %q", want)
				}
			}
			if strings.Contains(got, "no test with the id ran") && !slices.Contains(tt.args, "./...") {
				t.Error("promises are compared although not everything ran")
			}
			if strings.Contains(got, "not shown") {
				t.Error("the report shows what a passing test logged")
			}
			if !strings.HasSuffix(got, "\n"+tt.last+"\n") && tt.last != "" && got != tt.last+"\n" {
				t.Errorf("the last line is not %q", tt.last)
			}
			if t.Failed() {
				t.Logf("report:\n%s%s", got, errs.String())
			}
		})
	}
}

func TestSplit(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.test/m\n\ngo 1.26\n",
		"a/a.go": "package a\nfunc f() { go f() }\n", "a/a_test.go": "package a\nfunc TestLong() {}\n",
		"b/b.go": "package b\n", "b/b_test.go": "package b\nfunc TestLong() {}\nfunc g() { w.Go(g) }\n",
		"c/c.go": "package c\n", "c/c_test.go": "package c\nfunc TestLong() {}\n",
		"furltest/kit.go": "package furltest\nfunc f() { go f() }\n",
		"k/k.go":          "package k\n", "k/k_test.go": "package k\nimport _ \"example.test/m/furltest\"\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for args, want := range map[string]string{
		"-race -v ./a":        "-race -v ./a",
		"-norace=b -v ./...":  "-v ./...",
		"-norace=b -race ./a": "-race ./a",
		"-first=c,b -v ./...": "-v m/c m/b m/a m/furltest m/k",
		// Only what starts goroutines runs under the race detector.
		"-race ./...":                        "-race m/a m/b m/furltest m/k & m/c",
		"-race -v -norace=a,k ./...":         "-race -v m/b m/furltest & -v m/a m/c m/k",
		"-race -norace=a,b,furltest,k ./...": "m/a m/b m/c m/furltest m/k",
		// Tests that run whole are skipped under it, in packages that have them.
		"-race -p 3 -whole=TestLong,TestNone -norace=b ./...": "-race -p 2 -skip ^(TestLong|TestNone)$ m/a m/furltest m/k & -p 1 m/b m/c; -p 1 -run ^(TestLong|TestNone)$ m/a",
		"-race -whole=TestNone ./...":                         "-race m/a m/b m/furltest m/k & m/c",
	} {
		lanes, err := split(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, lane := range lanes {
			var runs []string
			for _, run := range lane {
				runs = append(runs, strings.Join(run, " "))
			}
			got = append(got, strings.Join(runs, "; "))
		}
		if got := strings.ReplaceAll(strings.Join(got, " & "), "example.test/", ""); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

// A package of two runs is counted in each, and the total has both with the reasons for skipping.
func TestTotals(t *testing.T) {
	name := filepath.Join(t.TempDir(), "totals")
	for i := range 2 {
		r := newReport(new(bytes.Buffer))
		for run := range 2 {
			for _, e := range []event{
				{Action: "pass", Package: "m/a", Test: "TestA"},
				{Action: "output", Package: "m/a", Test: "TestB", Output: "    a_test.go:3: no files\n"},
				{Action: "skip", Package: "m/a", Test: "TestB"},
				{Action: "pass", Package: "m/a"},
			} {
				r.add(run, e)
			}
		}
		if r.passed != 2 || r.skipped != 2 || r.failed != 0 {
			t.Errorf("run %d: %d passed, %d failed, %d skipped, want 2, 0, 2", i, r.passed, r.failed, r.skipped)
		}
		if err := r.keepTotals(name); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := printTotals(&out, name); err != nil {
		t.Fatal(err)
	}
	if want := "skipped     4  no files\ntotal: 4 passed, 0 failed, 4 skipped\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestSlowTestsAreListed(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out)
	for _, e := range []event{
		{Action: "pass", Package: "m/a", Test: "TestQuick", Elapsed: 19.9},
		{Action: "pass", Package: "m/a", Test: "TestSlow/part", Elapsed: 30},
		{Action: "pass", Package: "m/a", Test: "TestSlow", Elapsed: 30.4},
		{Action: "fail", Package: "m/b", Test: "TestSlower", Elapsed: 61},
		{Action: "pass", Package: "m/a", Elapsed: 120},
	} {
		r.add(0, e)
	}
	r.slowest()
	if want := "slow     61s  m/b TestSlower\nslow     30s  m/a TestSlow\n"; out.String() != want {
		t.Errorf("listed %q, want %q", out.String(), want)
	}
}
