package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options are the options of a Folder. The zero value is useful.
type Options struct {
	// Copies is the absolute path of a directory that keeps the content of files from
	// before each change, for Folder.Changes and Folder.Restore. It is created if it
	// does not exist. The tools do not see it. If empty, no copies are kept.
	Copies string
	// MaxCopies limits the size of all copies, in bytes. At the limit, changes of
	// files fail. If zero, defaults to 1 GiB.
	MaxCopies int64
	// Record returns the number of the session's last record, on whatever branch. Each
	// change is kept with this number. If nil, the number is 0.
	Record func() uint64
	// Timeout ends a command that specifies no timeout itself. If zero, defaults to
	// two minutes.
	Timeout time.Duration
	// MaxOutput limits the output of a command in its result, in bytes. Of a longer
	// output, the result has the start and the end. If zero, defaults to 30,000.
	MaxOutput int
	// Environment names variables that commands get although they look like
	// credentials. Other variables that look like credentials are not passed on, see
	// Folder.Tools.
	Environment []string
}

// Folder is a working folder with tools. It is safe for concurrent use.
type Folder struct {
	o    Options
	root *os.Root
	// dir and real are the absolute path of the folder as given and without links.
	dir, real string
	// hidden is the path of the copies in the folder, "" if they are not in it.
	hidden string

	mu     sync.Mutex // held while a file is changed
	copies *copies    // nil: none are kept

	// step, if not nil, is called between the steps of a change, in tests.
	step func(name string)
}

// Open opens a working folder.
func Open(dir string, opts *Options) (*Folder, error) {
	f := &Folder{}
	if opts != nil {
		f.o = *opts
	}
	f.o.MaxCopies = cmp.Or(f.o.MaxCopies, 1<<30)
	f.o.Timeout = cmp.Or(f.o.Timeout, 2*time.Minute)
	f.o.MaxOutput = cmp.Or(f.o.MaxOutput, 30_000)
	f.o.Environment = slices.Clone(f.o.Environment)
	if f.o.Record == nil {
		f.o.Record = func() uint64 { return 0 }
	}
	var err error
	if f.dir, err = filepath.Abs(dir); err == nil {
		f.real, err = filepath.EvalSymlinks(f.dir)
	}
	if err == nil {
		f.root, err = os.OpenRoot(f.real)
	}
	if err != nil {
		return nil, fmt.Errorf("open the working folder: %w", err)
	}
	if f.o.Copies == "" {
		return f, nil
	}
	if f.copies, err = openCopies(f.o.Copies, f.o.MaxCopies); err != nil {
		_ = f.root.Close()
		return nil, fmt.Errorf("open the copies of changed files: %w", err)
	}
	if real, err := filepath.EvalSymlinks(f.o.Copies); err == nil {
		if rel, ok := f.local(real); ok && rel != "." {
			f.hidden = filepath.ToSlash(rel)
		}
	}
	f.removeTemporary()
	return f, nil
}

// Close closes the folder. Its tools return errors afterwards.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.root.Close()
	if f.copies != nil {
		err = errors.Join(err, f.copies.close())
	}
	return err
}

// Dir returns the absolute path of the folder.
func (f *Folder) Dir() string { return f.dir }

// Tools returns the tools: read_file, list_files, search_files, edit_file, write_file
// and run_command.
//
// All except run_command are confined to the folder: paths and symbolic links that lead
// out of it are refused, and so are files that are not regular. run_command runs a
// command line by sh, or by cmd on Windows, with the rights of the program. It ends with
// all processes it has started. Environment variables are not passed on if their name
// contains a word such as KEY, TOKEN, SECRET or PASSWORD, if it starts with AWS_, or if
// their value is a URL with a password.
//
// edit_file and write_file change no file of version control, such as .git/config, because
// it would then run commands without a call of run_command.
//
// A file can be changed if it has up to 8 MiB. The file is replaced at once, so another
// program never reads half of a change. Its permissions stay.
func (f *Folder) Tools() []Tool {
	return []Tool{f.readTool(), f.listTool(), f.searchTool(), f.editTool(), f.writeTool(), f.commandTool()}
}

// define returns a tool whose input is an In. plan, which may be nil, is its Preview.
func define[In any](t Tool, plan func(context.Context, In) (Preview, error), run func(context.Context, In) (Result, error)) Tool {
	if plan != nil {
		t.Preview = func(ctx context.Context, input json.RawMessage) (p Preview, err error) {
			in, err := decode[In](input)
			if err != nil {
				return p, err
			}
			return plan(ctx, in)
		}
	}
	t.Run = func(ctx context.Context, input json.RawMessage) (r Result, err error) {
		in, err := decode[In](input)
		if err != nil {
			return r, err
		}
		return run(ctx, in)
	}
	return t
}

// decode reads the input of a call.
func decode[In any](input json.RawMessage) (in In, err error) {
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	err = d.Decode(&in)
	if err == nil && len(bytes.TrimSpace(input[d.InputOffset():])) > 0 {
		err = errors.New("more than one JSON value")
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%q is a JSON %s: expected %s", t.Field, t.Value, jsonType(t.Type.Kind().String()))
	}
	if err != nil {
		return in, fmt.Errorf("invalid input: %w", err)
	}
	return in, nil
}

// jsonType returns the JSON type of a kind of Go type.
func jsonType(kind string) string {
	switch kind {
	case "int":
		return "an integer"
	case "bool":
		return "true or false"
	case "struct":
		return "an object"
	}
	return "a " + kind
}

// maxLinks is how many symbolic links a path may have.
const maxLinks = 40

// resolve returns the path of a file in the root, with slashes and without symbolic
// links. The file may not exist. The root refuses links too; resolve exists so that a
// file has one path, links with absolute targets in the folder work, and errors say
// what is wrong.
func (f *Folder) resolve(path string) (string, error) {
	rest, ok := f.local(path)
	if !ok {
		return "", outside(path)
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("invalid path %q: it contains a zero byte", path)
	}
	parts := split(rest)
	var out []string
	for links := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(out) == 0 {
				return "", outside(path)
			}
			out = out[:len(out)-1]
			continue
		}
		name := strings.Join(append(out, part), "/")
		info, err := f.root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !slices.Contains(parts, ".."):
			parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" || p == "." })
			return f.visible(path, strings.Join(append(out, append([]string{part}, parts...)...), "/"))
		case err != nil:
			return "", fileError(path, err)
		case info.Mode()&fs.ModeSymlink == 0:
			out = append(out, part)
			continue
		}
		target, err := f.root.Readlink(name)
		if err != nil {
			return "", fileError(path, err)
		}
		rest, ok := f.local(target)
		if !ok {
			return "", fmt.Errorf("%w: the symbolic link %q leads out of it", outside(path), name)
		}
		if filepath.IsAbs(target) {
			out = nil
		}
		parts = append(split(rest), parts...)
		if links++; links > maxLinks {
			return "", fmt.Errorf("path %q has more than %d symbolic links", path, maxLinks)
		}
	}
	return f.visible(path, cmp.Or(strings.Join(out, "/"), "."))
}

// visible returns name unless it is that of a copy.
func (f *Folder) visible(path, name string) (string, error) {
	if f.hidden != "" && (name == f.hidden || strings.HasPrefix(name, f.hidden+"/")) {
		return "", fmt.Errorf("%q has copies of changed files: it cannot be read or changed", path)
	}
	return name, nil
}

// local returns a path relative to the folder. It reports false if the path is absolute
// and not in the folder. A relative path may still lead out of it.
func (f *Folder) local(path string) (string, bool) {
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		return path, filepath.VolumeName(path) == "" && (path == "" || !os.IsPathSeparator(path[0]))
	}
	for _, base := range []string{f.dir, f.real} {
		if rel, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

func split(path string) []string { return strings.Split(filepath.ToSlash(path), "/") }

func outside(path string) error {
	return fmt.Errorf("%q is outside of the working folder", path)
}

// fileError returns an error of the file system with the path that the model has used.
func fileError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q does not exist", path)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%q: %w", path, err)
}

// open opens a regular file for reading. name is its path in the root.
func (f *Folder) open(path string) (name string, file *os.File, info fs.FileInfo, err error) {
	if path == "" {
		return "", nil, nil, errors.New("path is empty: expected the path of a file")
	}
	if name, err = f.resolve(path); err != nil {
		return "", nil, nil, err
	}
	file, info, err = f.openName(path, name)
	return name, file, info, err
}

// openName opens a regular file by its path in the root. path is for errors. Opening a
// pipe or a device does not wait.
func (f *Folder) openName(path, name string) (*os.File, fs.FileInfo, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, nil, fileError(path, err)
	}
	if err := regular(path, info); err != nil {
		return nil, nil, err
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, fileError(path, err)
	}
	if info, err = file.Stat(); err == nil {
		err = regular(path, info) // it may have been replaced
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func regular(path string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return fmt.Errorf("%q is a folder: expected a file", path)
	}
	return fmt.Errorf("%q is not a regular file: pipes, sockets and devices cannot be used", path)
}

// entries returns the files and folders of a folder, sorted, without version control
// data and copies. more reports that there are too many.
func (f *Folder) entries(path, name string) (list []fs.DirEntry, more bool, err error) {
	dir, err := f.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, false, fileError(path, err)
	}
	defer dir.Close()
	if info, err := dir.Stat(); err != nil || !info.IsDir() {
		return nil, false, fmt.Errorf("%q is not a folder", path)
	}
	list, err = dir.ReadDir(maxEntries + 1)
	if err != nil && len(list) == 0 && !isEOF(err) {
		return nil, false, fileError(path, err)
	}
	if more = len(list) > maxEntries; more {
		list = list[:maxEntries]
	}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		return e.Name() == ".git" || f.hidden != "" && join(name, e.Name()) == f.hidden
	})
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, more, nil
}

// maxEntries is how many entries of one folder are read.
const maxEntries = 20_000

// join joins paths in the root.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
