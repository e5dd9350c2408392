package tool

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/furlhq/furl/internal/numbers"
)

const (
	maxMatches  = 200     // lines in a result
	maxExcerpt  = 300     // bytes of one line in a result
	maxSearched = 1 << 20 // bytes of one line that are searched
	maxPattern  = 10_000  // bytes of a regular expression or a glob
)

type searchInput struct {
	Pattern string `json:"pattern"`
	Glob    string `json:"glob"`
	Path    string `json:"path"`
}

func (f *Folder) searchTool() Tool {
	return define(Tool{
		Name: "search_files",
		Description: "Search the lines of text files by a regular expression. Each result is file:line: text. " +
			"Files in .git and node_modules are not searched, symbolic links are not followed.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"Regular expression in RE2 syntax. (?i) at the start ignores case."},` +
			`"glob":{"type":"string","description":"Which files to search, such as *.go, src/**/*.ts or *.{c,h}. Without a slash it is compared with the file name, otherwise with the path relative to the working folder. Default: all files."},` +
			`"path":{"type":"string","description":"File or folder to search, relative to the working folder. Default: the working folder."}` +
			`},"required":["pattern"],"additionalProperties":false}`),
	}, nil, f.search)
}

// searcher is one search.
type searcher struct {
	f       *Folder
	pattern *regexp.Regexp
	glob    string
	out     strings.Builder
	matches int
	files   int
	skipped []string // notes
}

// errEnough ends a search.
var errEnough = errors.New("enough matches")

func (f *Folder) search(ctx context.Context, in searchInput) (Result, error) {
	if in.Pattern == "" || len(in.Pattern) > maxPattern || len(in.Glob) > maxPattern {
		return Result{}, fmt.Errorf("invalid pattern or glob: expected 1 to %s bytes", numbers.Thousands(maxPattern))
	}
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return Result{}, fmt.Errorf("invalid pattern: %w", err)
	}
	if !doublestar.ValidatePattern(in.Glob) {
		return Result{}, fmt.Errorf("invalid glob %q", in.Glob)
	}
	start, err := f.resolve(in.Path)
	if err != nil {
		return Result{}, err
	}
	info, err := f.root.Lstat(start)
	if err != nil {
		return Result{}, fileError(in.Path, err)
	}
	s := &searcher{f: f, pattern: pattern, glob: in.Glob}
	if info.IsDir() {
		err = s.folder(ctx, start)
	} else if err = regular(in.Path, info); err == nil {
		s.glob = ""
		err = s.file(ctx, start)
	}
	if errors.Is(err, errEnough) {
		s.skipped = append(s.skipped, fmt.Sprintf("[There are more matches than %d. Use a narrower pattern, glob or path.]", maxMatches))
	} else if err != nil {
		return Result{}, err
	}
	if s.matches == 0 {
		fmt.Fprintf(&s.out, "No matches in %s.\n", count(s.files, "file"))
	}
	for _, note := range s.skipped {
		s.out.WriteString("\n" + note)
	}
	return Text(s.out.String()), nil
}

// folder searches the files of a folder. Those that cannot be read are skipped.
func (s *searcher) folder(ctx context.Context, dir string) error {
	list, more, err := s.f.entries(dir, dir)
	if err != nil {
		return nil
	}
	if more {
		s.skipped = append(s.skipped, fmt.Sprintf("[%s has more than %s entries; the others are not searched.]", printable(dir), numbers.Thousands(maxEntries)))
	}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := join(dir, e.Name())
		switch {
		case e.IsDir() && e.Name() != "node_modules":
			err = s.folder(ctx, name)
		case e.Type().IsRegular() && s.selected(name):
			err = s.file(ctx, name)
		}
		if errors.Is(err, errEnough) || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func (s *searcher) selected(name string) bool {
	if s.glob == "" {
		return true
	}
	if !strings.Contains(s.glob, "/") {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(s.glob, "./"), name)
}

// file searches a file.
func (s *searcher) file(ctx context.Context, name string) error {
	file, _, err := s.f.openName(name, name)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(canceler{ctx, file}, 64<<10)
	if head, err := r.Peek(sniffLength); err != nil && !isEOF(err) {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return err
	} else if isBinary(head) {
		return nil
	}
	s.files++
	for n := 1; ; n++ {
		line, _, err := readLine(r, maxSearched)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 1 {
			line = strings.TrimPrefix(line, string(byteOrderMark))
		}
		at := s.pattern.FindStringIndex(line)
		if at == nil {
			continue
		}
		if s.matches == maxMatches {
			return errEnough
		}
		s.matches++
		fmt.Fprintf(&s.out, "%s:%d: %s\n", printable(name), n, around(line, at[0]))
	}
}

// around returns the part of a long line around a match.
func around(line string, at int) string {
	if len(line) <= maxExcerpt {
		return line
	}
	from := max(0, min(at-maxExcerpt/3, len(line)-maxExcerpt))
	text := strings.ToValidUTF8(line[from:min(len(line), from+maxExcerpt)], "")
	if from > 0 {
		text = "… " + text
	}
	if from+maxExcerpt < len(line) {
		text += " …"
	}
	return text
}
