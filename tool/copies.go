package tool

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/numbers"
)

// copies keeps contents of files from before each change:
//
//	files/DIGEST    a content, by its SHA-256 in hexadecimal digits
//	journal.jsonl   one line for each change; it is only appended to
//
// Contents and lines are on disk before the file changes.
type copies struct {
	dir       string
	journal   *os.File
	size, max int64 // of all contents, in bytes
}

// entry is a line of the journal.
type entry struct {
	Record uint64    `json:"record"`
	Time   time.Time `json:"time"`
	// Path is the path in the folder, with slashes.
	Path string `json:"path"`
	// Old and New are digests of the content, "" if the file does not exist.
	Old string `json:"old"`
	New string `json:"new"`
	// Mode has the permissions from before the change.
	Mode fs.FileMode `json:"mode,omitempty"`
	// Temp is the file that is renamed to Path.
	Temp string `json:"temp,omitempty"`
}

func openCopies(dir string, max int64) (*copies, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("invalid directory %q: expected an absolute path", dir)
	}
	c := &copies{dir: dir, max: max}
	if err := os.MkdirAll(filepath.Join(dir, "files"), 0o700); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(filepath.Join(dir, "files"))
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			c.size += info.Size()
		}
	}
	if c.journal, err = os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	if err := c.repair(); err != nil {
		_ = c.journal.Close()
		return nil, err
	}
	return c, nil
}

func (c *copies) close() error { return c.journal.Close() }

// repair removes a last line that was not written completely. Its file did not change.
func (c *copies) repair() error {
	info, err := c.journal.Stat()
	if err != nil {
		return err
	}
	tail := make([]byte, min(info.Size(), maxEntry))
	if _, err := c.journal.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	torn := len(tail) - 1 - bytes.LastIndexByte(tail, '\n')
	if torn == 0 {
		return nil
	}
	return c.journal.Truncate(info.Size() - int64(torn))
}

// maxEntry is the size of a line, in bytes.
const maxEntry = 128 << 10

// keep keeps the content from before a change and records the change.
func (c *copies) keep(change change, temp string, record uint64) error {
	old, err := c.add(change.before)
	if err != nil {
		return err
	}
	e := entry{Record: record, Time: time.Now().UTC(), Path: change.name, Old: old, New: digest(change.after), Temp: temp}
	if change.info != nil {
		e.Mode = change.info.Mode().Perm()
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if len(line) >= maxEntry {
		return fmt.Errorf("the path %.100q is too long", change.name)
	}
	if _, err := c.journal.Write(append(line, '\n')); err != nil {
		return errors.Join(err, c.repair())
	}
	return c.journal.Sync()
}

// digest returns the digest of a content, "" of one that is nil.
func digest(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// add keeps a content and returns its digest.
func (c *copies) add(data []byte) (string, error) {
	name := digest(data)
	if name == "" {
		return "", nil
	}
	folder := filepath.Join(c.dir, "files")
	file := filepath.Join(folder, name)
	if info, err := os.Stat(file); err == nil && info.Size() == int64(len(data)) {
		return name, nil
	}
	if c.size+int64(len(data)) > c.max {
		return "", fmt.Errorf("the copies in %s have reached the limit of %s bytes: delete that directory, or raise the limit", c.dir, numbers.Thousands(c.max))
	}
	w, err := os.CreateTemp(folder, "new-*") // mode 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(w.Name()) // fails once it has its real name
	_, err = w.Write(data)
	if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
		return "", err
	}
	if err := os.Rename(w.Name(), file); err != nil {
		return "", err
	}
	c.size += int64(len(data))
	if dir, err := os.Open(folder); err == nil {
		_ = dir.Sync() // not possible on every system
		_ = dir.Close()
	}
	return name, nil
}

// RemoveCopies removes the contents that secret reports true for from the copies in a
// directory (Options.Copies), and returns their number. With dry it removes nothing. Changes
// since then have a Problem: their files cannot be restored. A directory that does not exist
// has no copies.
func RemoveCopies(dir string, dry bool, secret func(content []byte) bool) (n int, err error) {
	folder := filepath.Join(dir, "files")
	list, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, e := range list {
		file := filepath.Join(folder, e.Name())
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return n, err
		}
		if !secret(data) {
			continue
		}
		n++
		if dry {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
	}
	return n, nil
}

var digestPattern = lazyregexp.New(`^[0-9a-f]{64}$`)

// get returns a content, nil for the digest "".
func (c *copies) get(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(filepath.Join(c.dir, "files", name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("its copy was removed, as furl redact does with copies that contain a secret")
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if digest(data) != name {
		return nil, fmt.Errorf("the copy %s is damaged", file.Name())
	}
	return data, nil
}

// each calls visit with the lines of the journal.
func (c *copies) each(visit func(entry)) error {
	info, err := c.journal.Stat()
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(io.NewSectionReader(c.journal, 0, info.Size()))
	lines.Buffer(nil, maxEntry)
	n := 0
	for lines.Scan() {
		n++
		var e entry
		err := json.Unmarshal(lines.Bytes(), &e)
		for _, d := range []string{e.Old, e.New} {
			if err == nil && d != "" && !digestPattern.MatchString(d) {
				err = fmt.Errorf("invalid digest %q", d)
			}
		}
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", c.journal.Name(), n, err)
		}
		visit(e)
	}
	return lines.Err()
}

// Change is the difference between a file now and at an earlier time.
type Change struct {
	// Path is the path of the file in the folder, with slashes.
	Path string
	// Diff is the change that Folder.Restore makes, as a unified diff.
	Diff string
	// Remove reports that the file did not exist: Restore removes it.
	Remove bool
	// Others reports that the file was also changed without the tools, for example by
	// the user or by a command.
	Others bool
	// Problem says why the file cannot be restored, "" if it can.
	Problem string

	then, now string // digests
	mode      fs.FileMode
}

// history is what the journal says of a file.
type history struct {
	path  string
	first entry
	last  entry
	gap   bool // the tools have seen a content that is not theirs
}

// Changes returns how the files that the tools have changed differ from what they were
// when record was the session's last record; see Options.Record. Files that are the
// same are not in the list. Files that only commands have changed are not known.
func (f *Folder) Changes(record uint64) ([]Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copies == nil {
		return nil, errors.New("list changes: the folder has no copies")
	}
	var order []*history
	known := map[string]*history{}
	from := false
	err := f.copies.each(func(e entry) {
		if from = from || e.Record >= record; !from {
			return
		}
		h := known[e.Path]
		if h == nil {
			h = f.sameFile(order, e.Path)
		}
		if h == nil {
			h = &history{path: e.Path, first: e}
			order = append(order, h)
		} else if e.Old != h.last.Old && e.Old != h.last.New {
			h.gap = true
		}
		known[e.Path] = h
		h.last = e
	})
	if err != nil {
		return nil, fmt.Errorf("list changes: %w", err)
	}
	var list []Change
	for _, h := range order {
		c, err := f.compare(h)
		if err != nil {
			return nil, fmt.Errorf("list changes: %s: %w", h.path, err)
		}
		if c.then != c.now || c.Problem != "" {
			list = append(list, c)
		}
	}
	return list, nil
}

// sameFile returns the history of a file whose name differs only by case, in a file
// system that ignores it.
func (f *Folder) sameFile(list []*history, name string) *history {
	for _, h := range list {
		if !strings.EqualFold(h.path, name) {
			continue
		}
		a, err1 := f.root.Lstat(h.path)
		b, err2 := f.root.Lstat(name)
		if err1 == nil && err2 == nil && os.SameFile(a, b) {
			return h
		}
	}
	return nil
}

// compare returns the change that undoes a history.
func (f *Folder) compare(h *history) (Change, error) {
	c := Change{Path: h.path, Remove: h.first.Old == "", Others: h.gap, then: h.first.Old, mode: h.first.Mode & fs.ModePerm}
	now, err := f.current(h.path)
	if err != nil {
		c.Problem, c.Others = err.Error(), true
		return c, nil
	}
	c.now = digest(now.before)
	// A change that was interrupted by the end of the process may not have happened.
	c.Others = c.Others || c.now != h.last.New && c.now != h.last.Old
	if c.now == c.then {
		return c, nil
	}
	then, err := f.copies.get(c.then)
	if err != nil {
		c.Problem = err.Error()
		return c, nil
	}
	c.Diff = diffOf(h.path, now.before, then)
	return c, nil
}

// current returns a file with the path of a journal.
func (f *Folder) current(name string) (change, error) {
	c, err := f.load(name)
	if err == nil && c.name != name {
		err = fmt.Errorf("%q has become a symbolic link", name)
	}
	return c, err
}

// Restore makes changes that Changes has returned, and returns those that it has
// skipped: files with a Problem, files that have changed since Changes was called, and
// files with Others unless overwrite is set. A restored file can be restored again to
// what it was before: Restore keeps copies too.
func (f *Folder) Restore(changes []Change, overwrite bool) (skipped []Change, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copies == nil {
		return changes, errors.New("restore files: the folder has no copies")
	}
	var failed []error
	for _, c := range changes {
		if c.Problem != "" || c.Others && !overwrite {
			skipped = append(skipped, c)
			continue
		}
		now, err := f.current(c.Path)
		if err != nil || digest(now.before) != c.now {
			c.Others = true
			skipped = append(skipped, c)
			continue
		}
		if now.after, err = f.copies.get(c.then); err == nil {
			now.mode = cmp.Or(c.mode, now.mode)
			err = f.apply(now)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("restore %s: %w", c.Path, err))
		}
	}
	return skipped, errors.Join(failed...)
}

// removeTemporary removes what the last change has left if the process was killed.
func (f *Folder) removeTemporary() {
	var last entry
	if f.copies.each(func(e entry) { last = e }) == nil && strings.HasPrefix(path.Base(last.Temp), tempPrefix) {
		_ = f.root.Remove(last.Temp)
	}
}
