package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/a_test.go":          "package a\nimport \"testing\"\nfunc FuzzOne(f *testing.F) {}\nfunc FuzzTwo(f *testing.F) {}\nfunc TestFuzzy(t *testing.T) {}\n",
		"a/a.go":               "package a\nfunc FuzzNot() {}\n",
		"a/testdata/x_test.go": "package x\nfunc FuzzNot() {}\n",
		"other/go.mod":         "module other\n",
		"other/x_test.go":      "package x\nimport \"testing\"\nfunc FuzzNot(f *testing.F) {}\n",
		"b/c/c_test.go":        "package c\nimport \"testing\"\nfunc FuzzDeep(f *testing.F) {}\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := find(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []target{
		{filepath.Join(dir, "a"), "FuzzOne"},
		{filepath.Join(dir, "a"), "FuzzTwo"},
		{filepath.Join(dir, "b", "c"), "FuzzDeep"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

func TestRotate(t *testing.T) {
	all := []target{{"a", "1"}, {"a", "2"}, {"b", "3"}, {"c", "4"}}
	for n, want := range map[int]string{0: "1234", 1: "3412", 2: "4123", 3: "1234", 700_001: "4123"} {
		var got strings.Builder
		for _, one := range rotate(all, n) {
			got.WriteString(one.name)
		}
		if got.String() != want {
			t.Errorf("rotated by %d: %s, want %s", n, got.String(), want)
		}
	}
	if got := rotate(nil, 3); len(got) > 0 {
		t.Errorf("no targets became %v", got)
	}
}

// Each package has its turn once.
func TestInTurn(t *testing.T) {
	all := []target{{"a", "1"}, {"a", "2"}, {"b", "3"}, {"c", "4"}}
	for turn, want := range map[int]string{0: "124", 1: "3", 2: "124", 701: "3"} {
		var got strings.Builder
		for _, one := range inTurn(all, 2, turn) {
			got.WriteString(one.name)
		}
		if got.String() != want {
			t.Errorf("turn %d: %s, want %s", turn, got.String(), want)
		}
	}
	if got := inTurn(all, 1, 5); len(got) != len(all) {
		t.Errorf("one turn has %v, want all targets", got)
	}
}

// Every target is run, however long builds take.
func TestTurns(t *testing.T) {
	for _, building := range []time.Duration{0, 1600 * time.Millisecond, 3 * time.Second} {
		const n, each, total = 46, 3 * time.Second, 200 * time.Second
		var passed, fuzzed time.Duration
		for i := range n {
			turn := turnOf(i, n, each, total, passed, fuzzed)
			if turn < time.Second || turn > each {
				t.Errorf("build time %v: target %d gets %v after %v", building, i, turn, passed)
			}
			fuzzed += turn
			passed += turn + building
		}
		if passed > total+each {
			t.Errorf("build time %v: all took %v", building, passed)
		}
	}
	if turn := turnOf(3, 5, time.Minute, time.Minute, time.Minute, 0); turn != 0 {
		t.Errorf("a turn of %v after the end", turn)
	}
}
