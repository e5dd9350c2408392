package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/furlhq/furl/internal/numbers"
)

const (
	maxListed = 1000 // entries in a result
	maxDepth  = 100
)

type listInput struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
}

func (f *Folder) listTool() Tool {
	return define(Tool{
		Name: "list_files",
		Description: "List files and folders, sorted by path. Folders end with a slash. " +
			"The content of .git, node_modules and symbolic links is not listed.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Folder to list, relative to the working folder. Default: the working folder."},` +
			`"depth":{"type":"integer","minimum":1,"description":"How many levels of folders to list. Default: 2."}` +
			`},"additionalProperties":false}`),
	}, nil, f.list)
}

// list lists the upper levels first, so that a large folder does not use up the limit.
func (f *Folder) list(ctx context.Context, in listInput) (Result, error) {
	if in.Depth < 0 {
		return Result{}, fmt.Errorf("invalid depth %d: expected 1 or more", in.Depth)
	}
	depth := min(cmp.Or(in.Depth, 2), maxDepth)
	start, err := f.resolve(in.Path)
	if err != nil {
		return Result{}, err
	}
	var lines []string
	var note string
	level := []string{start}
	for ; depth > 0 && len(level) > 0; depth-- {
		var next []string
		for _, dir := range level {
			if ctx.Err() != nil {
				return Result{}, ctx.Err()
			}
			list, more, err := f.entries(cmp.Or(in.Path, dir), dir)
			if err != nil && dir == start {
				return Result{}, err
			}
			if more {
				note = fmt.Sprintf("\n[%s has more than %s entries; the others are not listed.]", printable(dir), numbers.Thousands(maxEntries))
			}
			for _, e := range list {
				if len(lines) == maxListed {
					note = fmt.Sprintf("\n[There are more than %s entries. List a folder in it, or a smaller depth.]", numbers.Thousands(maxListed))
					next, depth = nil, 0
					break
				}
				name := join(dir, e.Name())
				lines = append(lines, f.listed(name, e))
				if e.IsDir() && e.Name() != "node_modules" {
					next = append(next, name)
				}
			}
			if depth == 0 {
				break
			}
		}
		level = next
	}
	if len(lines) == 0 {
		return Text("(The folder is empty.)" + note), nil
	}
	slices.Sort(lines)
	return Text(strings.Join(lines, "\n") + "\n" + note), nil
}

// listed returns the line of an entry.
func (f *Folder) listed(name string, e fs.DirEntry) string {
	switch {
	case e.IsDir():
		return printable(name) + "/"
	case e.Type()&fs.ModeSymlink != 0:
		if target, err := f.root.Readlink(name); err == nil {
			return printable(name) + " -> " + printable(target)
		}
	case !e.Type().IsRegular():
		return printable(name) + " (not a regular file)"
	}
	return printable(name)
}

// printable returns a path as one line of text, quoted if it contains characters that
// cannot be printed.
func printable(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}
