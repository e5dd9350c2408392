package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/dev/behaviours"
)

// promises compares the ids of docs/internals/behaviours.md with those of the tests that
// ran.
type promises struct {
	unkept   []string // listed as tested, but no test with the id exists
	skipped  []string // listed as tested, but all tests with the id were skipped
	unlisted []string // listed as not tested, but a test with the id ran
}

// promises compares the ids in docs/internals/behaviours.md with the tests that ran and
// were not skipped. The package behaviours checks the names in the source; this checks
// what was run. It applies to whole runs only.
func (r *report) promises(args []string) (p promises, err error) {
	partial := func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return strings.HasPrefix(arg, "-") && (name == "run" || name == "skip" || name == "short" || name == "list")
	}
	if !slices.Contains(args, "./...") || slices.ContainsFunc(args, partial) {
		return p, nil
	}
	text, err := os.ReadFile("docs/internals/behaviours.md")
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	table, err := behaviours.Parse(text)
	if err != nil {
		return p, err
	}
	ran, skipped := map[string]bool{}, map[string]bool{}
	for _, t := range r.tests {
		if t.parent {
			continue // the names of its subtests contain its own
		}
		for _, id := range table.Borne(t.name) {
			if t.result == "skip" {
				skipped[id] = true
			} else {
				ran[id] = true
			}
		}
	}
	for _, row := range table.Rows {
		switch id := row.ID; {
		case ran[id] && !row.Tested():
			p.unlisted = append(p.unlisted, id)
		case ran[id] || !row.Tested():
		case skipped[id]:
			p.skipped = append(p.skipped, id)
		default:
			p.unkept = append(p.unkept, id)
		}
	}
	return p, nil
}
