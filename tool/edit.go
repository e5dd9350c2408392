package tool

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/unidiff"
)

// maxFile is the size of a file that can be changed, in bytes.
const maxFile = 8 << 20

type editInput struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all"`
}

type writeInput struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

func (f *Folder) editTool() Tool {
	return define(Tool{
		Name: "edit_file",
		Description: "Replace text in a file. The old text must occur exactly once, unless all is true. " +
			"If the old text is empty, a new file is created.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path of the file, relative to the working folder."},` +
			`"old":{"type":"string","description":"Text to replace, exactly as in the file, with spaces and line breaks. Empty to create a file."},` +
			`"new":{"type":"string","description":"Text to put in its place."},` +
			`"all":{"type":"boolean","description":"Replace every occurrence. Default: false."}` +
			`},"required":["path","old","new"],"additionalProperties":false}`),
		Changes: true,
	}, func(_ context.Context, in editInput) (Preview, error) {
		c, err := f.planEdit(in)
		return c.preview(), err
	}, func(ctx context.Context, in editInput) (Result, error) {
		return f.change(ctx, func() (change, error) { return f.planEdit(in) })
	})
}

func (f *Folder) writeTool() Tool {
	return define(Tool{
		Name:        "write_file",
		Description: "Create a file, or replace the whole content of a text file. Folders are created as needed.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path of the file, relative to the working folder."},` +
			`"text":{"type":"string","description":"Whole content of the file."}` +
			`},"required":["path","text"],"additionalProperties":false}`),
		Changes: true,
	}, func(_ context.Context, in writeInput) (Preview, error) {
		c, err := f.planWrite(in)
		return c.preview(), err
	}, func(ctx context.Context, in writeInput) (Result, error) {
		return f.change(ctx, func() (change, error) { return f.planWrite(in) })
	})
}

// change is a change of a file.
type change struct {
	name string // the path in the root
	// before and after are the contents, nil if the file does not exist.
	before, after []byte
	// mode has the permissions that the file gets if after is not nil. If zero, those
	// of a new file.
	mode fs.FileMode
	// info describes the file before the change.
	info fs.FileInfo
	// title and done say what the change does and has done.
	title, done string
}

func (c *change) preview() Preview {
	if c.name == "" {
		return Preview{}
	}
	return Preview{Title: c.title, Diff: diffOf(c.name, c.before, c.after)}
}

// planEdit returns the change of a call of edit_file.
func (f *Folder) planEdit(in editInput) (change, error) {
	c, err := f.load(in.Path)
	if err != nil {
		return change{}, err
	}
	if in.Old == "" {
		if len(c.before) > 0 {
			return change{}, fmt.Errorf("%q already exists: set old to the text to replace, or use write_file", in.Path)
		}
		return c.write(in.New)
	}
	if c.before == nil {
		return change{}, fmt.Errorf("%q does not exist: to create it, set old to an empty text", in.Path)
	}
	if err := textual(in.Path, c.before[:min(len(c.before), sniffLength)]); err != nil {
		return change{}, err
	}
	after, n, lines, err := replace(c.before, in.Old, in.New, in.All)
	if err != nil {
		return change{}, fmt.Errorf("edit %q: %w", in.Path, err)
	}
	c.after = after
	c.title = "Edit " + c.name
	c.done = fmt.Sprintf("Edited %s: replaced %s, line %s.", printable(c.name), count(n, "occurrence"), lines)
	return c.checked()
}

// planWrite returns the change of a call of write_file.
func (f *Folder) planWrite(in writeInput) (change, error) {
	c, err := f.load(in.Path)
	if err != nil {
		return change{}, err
	}
	if err := textual(in.Path, c.before[:min(len(c.before), sniffLength)]); err != nil {
		return change{}, err
	}
	return c.write(in.Text)
}

// write returns the change to a whole new content.
func (c change) write(text string) (change, error) {
	if allCRLF(c.before) {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	}
	c.after = append([]byte{}, text...)
	verb, done := "Create ", "Created "
	if c.before != nil {
		verb, done = "Replace ", "Replaced "
	}
	c.title = verb + c.name
	c.done = fmt.Sprintf("%s%s: %s bytes.", done, printable(c.name), numbers.Thousands(int64(len(c.after))))
	return c.checked()
}

// checked returns an error if a change cannot be made.
func (c change) checked() (change, error) {
	switch {
	case len(c.after) > maxFile:
		return change{}, fmt.Errorf("the file would have more than %s bytes", numbers.Thousands(maxFile))
	case c.before != nil && bytes.Equal(c.before, c.after):
		return change{}, errors.New("the change has no effect: the new text is the same as the old one")
	}
	return c, nil
}

// load reads a file that is to be changed. It may not exist.
func (f *Folder) load(path string) (c change, err error) {
	if path == "" {
		return c, errors.New("path is empty: expected the path of a file")
	}
	if c.name, err = f.resolve(path); err != nil {
		return change{}, err
	}
	if control := f.control(c.name); control != "" {
		return change{}, fmt.Errorf("%q belongs to %s, whose files make version control run commands: change it with run_command", path, control)
	}
	if _, err := f.root.Lstat(c.name); errors.Is(err, fs.ErrNotExist) {
		if strings.HasSuffix(path, "/") {
			return change{}, fmt.Errorf("%q ends with a slash: expected the path of a file", path)
		}
		return c, nil
	}
	if c.before, c.info, err = f.readWhole(path, c.name); err != nil {
		return change{}, err
	}
	c.mode = c.info.Mode().Perm()
	if c.mode&0o200 == 0 {
		return change{}, fmt.Errorf("%q is read-only", path)
	}
	return c, nil
}

// controls are the folders of version control that can make it run commands, through
// hooks and settings such as core.fsmonitor. A worktree has a file of that name.
var controls = []string{".git", ".hg", ".jj"}

// control returns the folder of version control that a file belongs to, "" if none. On
// some file systems it has several names, as with other letters and the short names of NTFS.
func (f *Folder) control(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		folder := strings.Join(parts[:i], "/")
		info, err := f.root.Lstat(join(cmp.Or(folder, "."), part))
		for _, control := range controls {
			if strings.EqualFold(part, control) {
				return control
			}
			if err != nil {
				continue
			}
			if its, err := f.root.Lstat(join(cmp.Or(folder, "."), control)); err == nil && os.SameFile(info, its) {
				return control
			}
		}
	}
	return ""
}

// readWhole returns the content of a file, which is not nil.
func (f *Folder) readWhole(path, name string) ([]byte, fs.FileInfo, error) {
	file, info, err := f.openName(path, name)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, nil, fileError(path, err)
	}
	if len(data) > maxFile {
		return nil, nil, fmt.Errorf("%q has %s bytes: files of up to %s bytes can be changed", path, numbers.Thousands(info.Size()), numbers.Thousands(maxFile))
	}
	return data, info, nil
}

// change makes a change that plan returns.
func (f *Folder) change(ctx context.Context, plan func() (change, error)) (Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	c, err := plan()
	if err != nil {
		return Result{}, err
	}
	if err := f.apply(c); err != nil {
		return Result{}, fmt.Errorf("change %q: %w", c.name, err)
	}
	return Text(c.done), nil
}

// tempPrefix starts the names of files that are being written.
const tempPrefix = ".furl-edit-"

// apply makes a change. The old content is in the copies before the file changes. If
// the process is killed at any point, the file has its old or its new content.
func (f *Folder) apply(c change) error {
	folder := path.Dir(c.name)
	temp := join(folder, tempPrefix+rand.Text())
	if f.copies != nil {
		if err := f.copies.keep(c, temp, f.o.Record()); err != nil {
			return fmt.Errorf("keep a copy: %w", err)
		}
	}
	f.at("copied")
	if c.after != nil {
		if err := f.root.MkdirAll(folder, 0o777); err != nil {
			return fileError(folder, err)
		}
		defer func() { _ = f.root.Remove(temp) }() // fails once the file has its real name
		if err := f.writeNew(temp, c); err != nil {
			return fileError(c.name, err)
		}
	}
	f.at("written")
	if err := f.unchanged(c); err != nil {
		return err
	}
	var err error
	if c.after != nil {
		err = f.root.Rename(temp, c.name)
	} else {
		err = f.root.Remove(c.name)
	}
	if err != nil {
		return fileError(c.name, err)
	}
	f.at("renamed")
	if dir, err := f.root.Open(folder); err == nil {
		_ = dir.Sync() // not possible on every system
		_ = dir.Close()
	}
	return nil
}

func (f *Folder) at(step string) {
	if f.step != nil {
		f.step(step)
	}
}

// writeNew writes the new content of a file to another one.
func (f *Folder) writeNew(temp string, c change) error {
	w, err := f.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = w.Write(c.after)
	if c.info != nil {
		keepOwner(w, c.info)
	}
	if c.mode != 0 {
		err = errors.Join(err, w.Chmod(c.mode))
	}
	return errors.Join(err, w.Sync(), w.Close())
}

// unchanged returns an error if a file has changed since it was read.
func (f *Folder) unchanged(c change) error {
	now, _, err := f.readWhole(c.name, c.name)
	if c.before == nil {
		if _, err := f.root.Lstat(c.name); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	} else if err == nil && bytes.Equal(now, c.before) {
		return nil
	}
	return errors.New("another program changed the file at the same time: read it again")
}

// replace replaces old, which must occur exactly once unless all is set. Line ends of
// the file and of the texts may differ; new text gets those that the file has. n is the
// number of occurrences, and lines says where they are.
func replace(file []byte, old, new string, all bool) (after []byte, n int, lines string, err error) {
	text, returns := withoutReturns(file)
	old = strings.ReplaceAll(old, "\r\n", "\n")
	if bytes.IndexByte(text, '\n') >= 0 {
		new = strings.ReplaceAll(new, "\r\n", "\n")
		if 2*len(returns) > bytes.Count(text, []byte("\n")) {
			new = strings.ReplaceAll(new, "\n", "\r\n")
		}
	}
	n = bytes.Count(text, []byte(old))
	lines = occurrences(text, []byte(old))
	switch {
	case n == 0:
		return nil, 0, "", notFound(string(text), old)
	case !all && (n > 1 || strings.Contains(lines, ",")):
		return nil, 0, "", fmt.Errorf("the old text occurs %d times, in lines %s: add text before or after it so that it occurs once, or set all to true", max(n, 2), lines)
	}
	if size := int64(len(file)) + int64(n)*int64(len(new)-len(old)); size > maxFile {
		return nil, 0, "", fmt.Errorf("the file would have more than %s bytes", numbers.Thousands(maxFile))
	}
	after = []byte{}
	done, from := 0, 0
	for range n {
		i := from + bytes.Index(text[from:], []byte(old))
		from = i + len(old)
		// Positions in the file: each removed return before a position moves it.
		start := i + sort.SearchInts(returns, i)
		end := from + sort.SearchInts(returns, from)
		after = append(append(after, file[done:start]...), new...)
		done = end
	}
	return append(after, file[done:]...), n, lines, nil
}

// occurrences lists the lines of the first ten occurrences. Occurrences that overlap
// count too.
func occurrences(text, old []byte) string {
	var lines []string
	line, from := 1, 0
	for {
		n := bytes.Index(text[from:], old)
		if n < 0 {
			return strings.Join(lines, ", ")
		}
		if len(lines) == 10 {
			return strings.Join(lines, ", ") + ", …"
		}
		line += bytes.Count(text[from:from+n], []byte("\n"))
		lines = append(lines, fmt.Sprint(line))
		if text[from+n] == '\n' {
			line++
		}
		from += n + 1
	}
}

// withoutReturns returns a text whose lines end with \n only, and the positions in it
// of line ends that had an \r.
func withoutReturns(file []byte) (text []byte, returns []int) {
	if !bytes.Contains(file, []byte("\r\n")) {
		return file, nil
	}
	text = make([]byte, 0, len(file))
	for i, b := range file {
		if b == '\r' && i+1 < len(file) && file[i+1] == '\n' {
			returns = append(returns, len(text))
			continue
		}
		text = append(text, b)
	}
	return text, returns
}

// allCRLF reports whether a text has lines, all of which end with \r\n.
func allCRLF(text []byte) bool {
	n := bytes.Count(text, []byte("\n"))
	return n > 0 && n == bytes.Count(text, []byte("\r\n"))
}

// notFound returns an error that says where a similar text is.
func notFound(text, old string) error {
	trimmed := func(s string) []string {
		lines := strings.Split(strings.Trim(s, "\n"), "\n")
		for i := range lines {
			lines[i] = strings.Join(strings.Fields(lines[i]), " ")
		}
		return lines
	}
	want := trimmed(old)
	if len(old) < 10_000 && len(text) < 1<<20 && strings.TrimSpace(old) != "" {
		have := trimmed(text)
		skipped := len(text) - len(strings.TrimLeft(text, "\n"))
		for i := 0; i+len(want) <= len(have); i++ {
			if slices.Equal(have[i:i+len(want)], want) {
				return fmt.Errorf("the old text does not occur in the file, but line %d has the same words with other spaces: copy the text exactly", i+1+skipped)
			}
		}
	}
	return errors.New("the old text does not occur in the file: read the file and copy the text exactly, with spaces and line breaks")
}

// maxDiff is the size of a diff, in bytes.
const maxDiff = 1 << 20

// diffOf returns the change of a file as a diff to look at.
func diffOf(name string, before, after []byte) string {
	if isBinary(before) || isBinary(after) {
		return fmt.Sprintf("Binary files differ: %s\n", printable(name))
	}
	if allCRLF(before) && allCRLF(after) {
		before, _ = withoutReturns(before)
		after, _ = withoutReturns(after)
	}
	diff := strings.ToValidUTF8(unidiff.Diff(printable(name), before, after), "\uFFFD")
	if len(diff) > maxDiff {
		cut := strings.LastIndexByte(diff[:maxDiff], '\n') + 1
		diff = fmt.Sprintf("%s[The diff is cut: %s more bytes.]\n", diff[:cut], numbers.Thousands(int64(len(diff)-cut)))
	}
	return diff
}
