// Package housetest checks rules that apply to every file of the repository.
package housetest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// forbidden is what no committed file may contain. The hints are lower-case
// words, at least one of which is in every file that matches the pattern:
// regular expressions are slow, words are fast. The patterns are written so
// that this file does not match.
var forbidden = []struct {
	what    string
	hints   []string
	pattern *regexp.Regexp
}{
	{"a path of one machine", []string{"/wo" + "rk/", "/fa" + "rm/", "/ro" + "ot/"},
		regexp.MustCompile(`(^|[^\w.])/(work|farm|root)[/]`)},
	{"a path of one machine", []string{"/tm" + "p/wt", "/bash_j" + "obs"},
		regexp.MustCompile(`/tmp/(wt|bash_jobs)[/.]`)},
	{"the host of a package registry", []string{".golang" + ".org", "npmjs", "pypi", "pythonhosted", "crates", ".debian"},
		regexp.MustCompile(`\b(proxy\.golang[.]org|sum\.golang[.]org|registry\.npmjs[.]org|pypi[.]org|` +
			`files\.pythonhosted[.]org|crates[.]io|deb\.debian[.]org)\b`)},
	{"a note of unfinished work", []string{"to" + "do", "fix" + "me", "xx" + "x"},
		regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)},
	{"a note of unfinished work", []string{"implemente" + "d"},
		regexp.MustCompile(`(?i)\b(not implemente[d]|unimplemente[d])\b`)},
	{"a document that is not in the repository", []string{"features.m" + "d", "pitfalls.m" + "d", "peers.m" + "d", "deps.m" + "d", "style.m" + "d", "wire.m" + "d"},
		regexp.MustCompile(`\b(features|pitfalls|peers|deps|style|wire)\.m[d]\b`)},
	{"a conflict marker", []string{"<<<<" + "<<<", ">>>>" + ">>>"},
		regexp.MustCompile(`^(<{7}|>{7})( |$)`)},
	{"a link or install line to the module", []string{"furlhq"},
		regexp.MustCompile(`go (install|get) github\.com/furlhq/furl|(https?://|pkg\.go\.dev/)(www\.)?github\.com/furlhq`)},
}

// offences lists the forbidden texts in a file.
func offences(text string) []string {
	var found []string
	small := strings.ToLower(text)
	for _, f := range forbidden {
		if !slices.ContainsFunc(f.hints, func(hint string) bool { return strings.Contains(small, hint) }) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if m := f.pattern.FindString(line); m != "" {
				found = append(found, fmt.Sprintf("line %d: %s: %q", i+1, f.what, m))
			}
		}
	}
	return found
}

// maxFile is the largest file allowed in the repository, in bytes.
const maxFile = 1 << 20

func TestCommittedFiles(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	for _, name := range committed(t, root) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > maxFile {
			t.Errorf("%s has %d bytes: a file of more than %d does not belong here", name, len(text), maxFile)
		}
		if name == "LICENSE" || name == "go.sum" || bytes.IndexByte(text, 0) >= 0 {
			continue
		}
		for _, offence := range offences(string(text)) {
			t.Errorf("%s: %s", name, offence)
		}
	}
}

// committed lists what git tracks or would add; in a copy without git, all
// files that are not hidden.
func committed(t *testing.T, root string) []string {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	}
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, path)
		names = append(names, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The patterns find what they should, and ignore similar texts.
func TestForbidden(t *testing.T) {
	tests := []struct {
		line string
		want bool
	}{
		{"see /wo" + "rk/main/go.mod", true},
		{`"/ro` + `ot/.cache"`, true},
		{"the network/proxy layer", false},
		{"src/wo" + "rk/x.go", false},
		{"// TO" + "DO: later", true},
		{"TodoWrite and TODOS", false},
		{"GOPROXY=https://proxy.gol" + "ang.org", true},
		{"errors: not imple" + "mented", true},
		{"go install github.com/fur" + "lhq/furl/cmd/furl", true},
		{`import "github.com/furlhq/furl"`, false},
		{"<<<<<" + "<< HEAD", true},
		{"=======", false},
		{"see features.m" + "d", true},
		{"see docs/internals/behaviours.md", false},
	}
	for _, tt := range tests {
		got := len(offences("first line\n"+tt.line)) > 0
		if got != tt.want {
			t.Errorf("%q is forbidden: %v, want %v", tt.line, got, tt.want)
		}
	}
}
