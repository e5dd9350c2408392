package recorded

import (
	"errors"
	"iter"
	"os"
	"slices"

	"github.com/furlhq/furl/internal/index"
	"github.com/furlhq/furl/internal/packed"
	"github.com/furlhq/furl/transcript"
)

// These sections have in the index what was read of a file: by the filter by project. The records of a reading that is
// about usage only have other numbers.
const (
	sectionReadings      = "readings"
	sectionUsageReadings = "usage readings"
)

func (s *Source) readings() string {
	if s.usageOnly {
		return sectionUsageReadings
	}
	return sectionReadings
}

// minSilent is the size in bytes from which on the index has files that are no recordings: a smaller
// one, such as a source file, is read as fast as its entry.
const minSilent = 64 << 10

// maxUses bounds the other files that a file in the index depends on.
const maxUses = 1000

// walk reads standard input for "-", then files and folders. Files that the index knows are not read.
func (s *Source) walk() iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) {
		w := walker{s: s, yield: yield}
		if slices.Contains(s.Files, "-") {
			rec, err := transcript.Read(Stdin, s.stdin)
			if !w.add(rec, err) {
				return
			}
		}
		for _, path := range s.Files {
			if path == "-" {
				continue
			}
			s.Progress.next(path)
			if !w.root(path) {
				return
			}
		}
	}
}

// walker reads the files of a source in order.
type walker struct {
	s       *Source
	yield   func(*item, error) bool
	current *openFile // the file being read; nil: it is not for the index
	pending []*item   // of files that were not read, before the current one
	order   []string  // the files of a root
	unknown map[string]bool
	silent  []*openFile // files of which nothing was yielded
}

// openFile is a file that is read for the index.
type openFile struct {
	path   string
	file   *index.File
	read   reading
	failed bool
	ended  bool // all of it was read, and it is not written by itself any more
}

// root reads one of the named files and folders. It reports whether to continue.
func (w *walker) root(path string) bool {
	w.order, w.unknown, w.silent = nil, make(map[string]bool), nil
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && w.begin(path, true) {
		return w.flush()
	}
	reader := transcript.Reader{Skip: w.skip, SkipFolder: w.skipFolder, UsageOnly: w.s.usageOnly}
	for rec, err := range reader.Walk(path) {
		if !w.flush() {
			return false
		}
		if unknown := (*transcript.UnknownFilesError)(nil); errors.As(err, &unknown) {
			w.end()
			for _, name := range unknown.Files {
				w.unknown[name] = true
			}
			continue
		}
		if !w.add(rec, err) {
			return false
		}
	}
	w.end()
	return w.flush() && w.finish()
}

// skip is asked for each file in a folder before it is read.
func (w *walker) skip(path string) bool {
	w.end()
	if w.s.Filter.Skip(path) {
		w.s.filtered++
		return true
	}
	w.s.Progress.next(path)
	return w.begin(path, false)
}

// skipFolder is asked for each database, and for folders with a session in many files.
func (w *walker) skipFolder(path string) bool {
	w.end()
	return w.begin(path, false)
}

// begin reports whether the index knows a file, so that it need not be read. A file that was named has an
// error if it is no recording.
func (w *walker) begin(path string, named bool) bool {
	w.order = append(w.order, path)
	f := w.s.Index.File(path)
	if f == nil {
		return false
	}
	w.current = &openFile{path: path, file: f}
	data, ok := f.Get(w.s.readings(), w.s.Filter.Project)
	var read reading
	if !ok || packed.Unmarshal(data, &read) != nil || named && len(read.Recordings) == 0 {
		return false
	}
	if read.Unknown {
		w.unknown[path] = true
	}
	w.current.read, w.current.ended = read, true
	for i := range read.Recordings {
		w.pending = append(w.pending, &item{path: path, from: w.current, at: i, sum: &w.current.read.Recordings[i], filter: &w.s.Filter, usageOnly: w.s.usageOnly})
	}
	w.current = nil
	return true
}

// add yields a recording that was read, or an error.
func (w *walker) add(rec *transcript.Recording, err error) bool {
	if err != nil {
		if w.current != nil {
			w.current.failed = true
		}
		return w.yield(nil, err)
	}
	sum := w.s.Filter.summarize(rec)
	it := &item{path: rec.File, rec: rec, sum: &sum, filter: &w.s.Filter, usageOnly: w.s.usageOnly}
	if c := w.current; c != nil && c.path == rec.File {
		it.from, it.at = c, len(c.read.Recordings)
		c.read.Recordings = append(c.read.Recordings, sum)
		if c.file.Uses(rec.Uses...); len(rec.Uses) > maxUses {
			c.failed = true
		}
	}
	return w.yield(it, nil)
}

// end notes that the current file was read whole.
func (w *walker) end() {
	c := w.current
	if w.current = nil; c == nil {
		return
	}
	c.ended = true
	switch {
	case c.failed:
	case len(c.read.Recordings) == 0:
		w.silent = append(w.silent, c)
	default:
		c.write(w.s)
	}
}

// write writes what was read to the index.
func (c *openFile) write(s *Source) {
	c.file.Put(s.readings(), s.Filter.Project, packed.Marshal(c.read))
	c.file.Save()
}

// flush yields what is known of files that were not read.
func (w *walker) flush() bool {
	list := w.pending
	w.pending = nil
	for _, it := range list {
		if !w.yield(it, nil) {
			return false
		}
	}
	return true
}

// finish yields the files in unknown formats, as transcript.Walk does, after all others.
func (w *walker) finish() bool {
	for _, c := range w.silent {
		if c.file.Size() < minSilent {
			continue
		}
		c.read.Unknown = w.unknown[c.path]
		c.write(w.s)
	}
	var unknown []string
	for _, path := range w.order {
		if w.unknown[path] {
			unknown = append(unknown, path)
			delete(w.unknown, path)
		}
	}
	return len(unknown) == 0 || w.yield(nil, &transcript.UnknownFilesError{Files: unknown})
}
