package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/behaviours"
)

// unkept lists the promises that docs/internals/behaviours.md calls tested although no
// test with their id ran. The package behaviours checks the names in the
// source; this checks what was run. It applies to whole runs only.
func (r *report) unkept(args []string) ([]string, error) {
	partial := func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return strings.HasPrefix(arg, "-") && (name == "run" || name == "skip" || name == "short" || name == "list")
	}
	if !slices.Contains(args, "./...") || slices.ContainsFunc(args, partial) {
		return nil, nil
	}
	text, err := os.ReadFile("docs/internals/behaviours.md")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	table, err := behaviours.Parse(text)
	if err != nil {
		return nil, err
	}
	borne := map[string]bool{}
	for _, t := range r.tests {
		for _, id := range table.Borne(t.name) {
			borne[id] = true
		}
	}
	var ids []string
	for _, row := range table.Rows {
		if row.Tested() && !borne[row.ID] {
			ids = append(ids, row.ID)
		}
	}
	return ids, nil
}
