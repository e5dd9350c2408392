package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// foreign are turns of phrase by which text reads like a translation. Each is
// right somewhere; their number tells.
var foreign = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"behind", regexp.MustCompile(`(?i)\bbehind\b`)},
	{"stand, stands, standing", regexp.MustCompile(`(?i)\bstand(s|ing)?\b`)},
	{"nobody", regexp.MustCompile(`(?i)\bnobody\b`)},
	{"furl's own", regexp.MustCompile(`(?i)\bfurl's own\b`)},
	{"is no, are no", regexp.MustCompile(`(?i)\b(is|are|was|were) no [a-z]`)},
}

// foreignWords counts them in all Go and Markdown files, tests included.
func foreignWords(root string) ([]count, error) {
	counts := make([]count, len(foreign))
	for i := range foreign {
		counts[i].name = foreign[i].name
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (skipped(d.Name()) || path == filepath.Join(dev(root), "house")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i := range foreign {
			counts[i].count += len(foreign[i].pattern.FindAllIndex(text, -1))
		}
		return nil
	})
	return counts, err
}

// docWords counts the words of the root package's documentation.
func docWords(root string) (int, error) {
	cmd := exec.Command("go", "doc", "-all", ".")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("go doc -all .: %w", err)
	}
	return len(bytes.Fields(out)), nil
}
