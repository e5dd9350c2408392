package transcript

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// Reader reads recordings. The zero value is ready to use. A Reader is safe
// for concurrent use.
type Reader struct {
	// MaxBytes is the largest size of one file in bytes, uncompressed. Larger
	// files are refused with a TooLargeError. If zero, 16 GiB.
	MaxBytes int64
	// MaxRecords is the largest number of records in one file, or in one part of it:
	// lines of JSON Lines, elements of lists, and messages. Files with more are
	// refused with a TooManyRecordsError. If zero, 10 million.
	MaxRecords int
	// MaxMemory is the most memory, in bytes, that one recording may take, as
	// estimated while it is read: about three times the bytes of its
	// messages, plus 1 KiB for each. If it takes more, the file is refused
	// with a TooMuchMemoryError. JSON Lines are read line by line; files in
	// other layouts are additionally kept in memory as a whole. If zero, 320
	// MiB.
	//
	// Walk reads a large session in parts instead, if its format is JSON Lines and has
	// compactions: see Recording.Part.
	MaxMemory int64
	// MaxLine is the longest line of JSON Lines, in bytes. Longer lines are
	// skipped and reported. If zero, 256 MiB. A file with a line that takes
	// more memory than MaxMemory is refused.
	MaxLine int
	// Counter measures every block that is added to the log. If nil, all
	// sizes in the log are zero. Sessions in the furl format keep their
	// recorded sizes.
	Counter furl.Counter
	// Bodies has the bodies of recorded requests described (furl.Exchange.Request,
	// Session.Contents). It takes time for each request.
	Bodies bool
	// UsageOnly leaves out most of what was said in sessions of Claude Code and Codex, and reads them in half the
	// time. Sessions and requests are those of a full reading. The numbers of their records may differ, and
	// so may their Replies: those of two readings with UsageOnly are equal where those of two full
	// readings are. A recording is valid until Walk yields the next.
	UsageOnly bool
	// Skip, if set, is called by Walk with the path of each file in a folder
	// before it is read. Files for which it returns true are passed over.
	// It is not asked about sessions that a folder stores in many files, and about databases.
	Skip func(path string) bool
	// SkipFolder is like Skip for folders that store a session in many files, and for databases.
	SkipFolder func(dir string) bool
}

const (
	defaultMaxBytes   = 16 << 30
	defaultMaxLine    = 256 << 20
	defaultMaxRecords = 10_000_000
	defaultMaxMemory  = 320 << 20
)

// UnknownFormatError reports that a file is not in a known format.
type UnknownFormatError struct {
	Name  string
	Tried []string // the formats that were tried
	Empty bool     // the file contains only white space
	// Database is set for a SQLite database of an unknown program, and for one that Read gets,
	// because databases are read from files only.
	Database bool

	near []string // the formats that it resembles, and how it differs from them
}

func (e *UnknownFormatError) Error() string {
	if e.Empty {
		return e.Name + ": empty file"
	}
	if e.Database {
		return e.Name + ": unknown SQLite database: furl reads those of opencode, Kilo, OpenClaw and Crush, from their files"
	}
	if len(e.near) > 0 {
		return fmt.Sprintf("%s: unknown recording format; it resembles %s", e.Name, strings.Join(e.near, " and "))
	}
	return fmt.Sprintf("%s: unknown recording format (tried %s)", e.Name, strings.Join(e.Tried, ", "))
}

// limit returns MaxBytes or its default.
func (rd *Reader) limit() int64 {
	if rd.MaxBytes > 0 {
		return rd.MaxBytes
	}
	return defaultMaxBytes
}

// TooLargeError reports that a file is larger than Reader.MaxBytes,
// uncompressed.
type TooLargeError struct {
	Name  string
	Limit int64 // in bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: larger than %d bytes uncompressed, the limit for one file", e.Name, e.Limit)
}

// Read reads one recording with a zero Reader.
func Read(name string, r io.Reader) (*Recording, error) { return new(Reader).Read(name, r) }

// ReadFile reads one recording from a file with a zero Reader.
func ReadFile(path string) (*Recording, error) { return new(Reader).ReadFile(path) }

// Read reads one recording. The name is used in messages only. Read returns
// an *UnknownFormatError if the format is unknown, and a *TooLargeError,
// *TooManyRecordsError or *TooMuchMemoryError if a limit is exceeded. Broken
// records are not an error; they are listed in Recording.Skipped.
func (rd *Reader) Read(name string, r io.Reader) (*Recording, error) {
	return rd.read(name, "", nil, r)
}

// ReadFile reads one recording from a file. For formats with a second file in
// the same folder it reads that file too. From a database it reads all sessions; Walk yields them
// one by one.
func (rd *Reader) ReadFile(path string) (*Recording, error) {
	if isDatabase(path) {
		return rd.readDatabase(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rd.read(path, filepath.Dir(path), nil, f)
}

func (rd *Reader) input(name, dir string) *input {
	return &input{
		dir: dir, maxLine: cmp.Or(max(rd.MaxLine, 0), defaultMaxLine), counter: rd.Counter, bodies: rd.Bodies, usageOnly: rd.UsageOnly,
		bounds: bounds{cmp.Or(max(rd.MaxRecords, 0), defaultMaxRecords), cmp.Or(max(rd.MaxMemory, 0), defaultMaxMemory)},
		name:   name, limit: rd.limit(),
	}
}

// read reads a recording as a whole. homes may be nil.
func (rd *Reader) read(name, dir string, homes *rolloutHomes, r io.Reader) (*Recording, error) {
	in := rd.input(name, dir)
	defer in.close()
	f, err := rd.open(in, homes, r)
	if err != nil {
		return nil, err
	}
	return in.recording(f)
}

// open detects the format of a recording and prepares reading it.
func (rd *Reader) open(in *input, homes *rolloutHomes, r io.Reader) (*format, error) {
	f, err := in.open(r, in.limit)
	if err != nil {
		return nil, err
	}
	if in.dir != "" {
		in.homes = homes
		in.another = func(path string, read func(*input)) error {
			in.use(path)
			return rd.another(path, f, func(other *input) {
				read(other)
				in.use(other.uses...)
			})
		}
	}
	if f.read == nil {
		return nil, &companionError{name: in.name, of: f.agent}
	}
	return f, nil
}

// recording reads what is open: a file, or the next part of one.
func (in *input) recording(f *format) (*Recording, error) {
	in.rec = &Recording{File: in.name, Format: f.name, Agent: f.agent}
	if in.torn != nil && in.stream == nil {
		in.note("the compressed file is truncated: %v", in.torn)
	}
	var err error
	in.rec.Sessions, err = f.read(in)
	if in.refused != nil {
		return nil, in.refused
	}
	if err != nil {
		return nil, fmt.Errorf("read %s as %s: %w", in.name, f.name, err)
	}
	if in.torn != nil && in.stream != nil {
		in.note("the compressed file is truncated: %v", in.torn)
	}
	in.dropEmpty()
	in.summarize()
	in.rec.name()
	in.rec.Uses = slices.Clone(in.uses)
	return in.rec, nil
}

// use notes other files that what is read depends on.
func (in *input) use(paths ...string) {
	for _, path := range paths {
		if in.used == nil {
			in.used = make(map[string]bool)
		}
		if !in.used[path] {
			in.used[path] = true
			in.uses = append(in.uses, path)
		}
	}
}

// another calls f with another file, which must be in a format.
func (rd *Reader) another(path string, want *format, f func(*input)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := rd.input(path, filepath.Dir(path))
	defer in.close()
	in.rec = &Recording{File: path}
	switch is, err := in.open(file, in.limit); {
	case err != nil:
		return err
	case is != want:
		return &UnknownFormatError{Name: path, Tried: []string{want.name}}
	}
	f(in)
	return nil
}

// dropEmpty removes conversations without a sent message, such as one whose
// only request failed. Files in the furl format are unchanged.
func (in *input) dropEmpty() {
	if in.rec.Format == furlOwn.name {
		return
	}
	n := len(in.rec.Sessions)
	in.rec.Sessions = slices.DeleteFunc(in.rec.Sessions, func(s *Session) bool { return s.Log.Len() == 0 })
	if n -= len(in.rec.Sessions); n > 0 {
		in.note("skipped %s in which no message was sent", plural(n, "conversation"))
	}
}

// name gives sessions without an id one made from the file's name.
func (rec *Recording) name() {
	base := filepath.Base(rec.File)
	for i, s := range rec.Sessions {
		if s.ID == "" {
			s.ID = base
			if len(rec.Sessions) > 1 {
				s.ID = fmt.Sprintf("%s#%d", base, i+1)
			}
		}
	}
}

// companionError reports a file that belongs to a recording but is not one.
type companionError struct{ name, of string }

func (e *companionError) Error() string {
	return fmt.Sprintf("%s: not a recording, but a file that %s keeps next to one", e.name, e.of)
}

// input is one file being read.
type input struct {
	data      []byte // uncompressed; nil if the file is read line by line
	name      string
	limit     int64         // of its size in bytes, uncompressed
	stream    *bufio.Reader // the lines, if data is nil
	line      int           // of the stream, read last
	parts     *parts        // how the stream is divided; nil: it is not
	left      int64         // bytes of them until the limit
	source    io.Closer     // of the stream
	torn      error         // why the compressed file is truncated
	dir       string        // folder of the file; "" if it came from an io.Reader
	homes     *rolloutHomes
	uses      []string // see Recording.Uses
	used      map[string]bool
	another   func(path string, f func(*input)) error // reads another file of the same format
	maxLine   int
	counter   furl.Counter
	bodies    bool
	usageOnly bool
	reuse     bool          // the memory of the file, once the recording is not used any more
	buffer    *bytes.Buffer // nil: it is not used again
	rec       *Recording

	bounds
	lines, messages int
	memory          int64
	refused         error // why the recording is refused

	dropped int // skips beyond maxSkips
	// Counts of repairs: placeholder results added, results moved, messages
	// moved behind an answer of the provider, first messages added, replies separated, unused reasoning removed.
	made, moved, behind, begun, parted, unused int
}

// maxSkips bounds the list of skipped records of one file.
const maxSkips = 10_000

// skip reports a record that cannot be used. Line 0 means that the line is
// unknown.
func (in *input) skip(line int, format string, args ...any) {
	if len(in.rec.Skipped) >= maxSkips {
		in.dropped++
		return
	}
	in.rec.Skipped = append(in.rec.Skipped, Skip{line, fmt.Sprintf(format, args...)})
}

// note adds a remark for people.
func (in *input) note(format string, args ...any) {
	if len(in.rec.Notes) < maxSkips {
		in.rec.Notes = append(in.rec.Notes, fmt.Sprintf(format, args...))
	}
}

// summarize sorts the skipped records by line and reports the repairs.
func (in *input) summarize() {
	if in.made > 0 {
		in.note("added a placeholder for the missing result of %s", plural(in.made, "call"))
	}
	if in.moved > 0 {
		in.note("moved %s to the call, because it was recorded late", plural(in.moved, "result"))
	}
	if in.behind > 0 {
		in.note("moved %s behind the answer of a tool that the provider runs", plural(in.behind, "message"))
	}
	if in.begun > 0 {
		in.note("added a first message to %s that started with the model", plural(in.begun, "conversation"))
	}
	if in.parted > 0 {
		in.note("separated consecutive replies with a placeholder message %s", times(in.parted))
	}
	if in.unused > 0 {
		in.note("skipped %s without any output", plural(in.unused, "reasoning item"))
	}
	slices.SortStableFunc(in.rec.Skipped, func(a, b Skip) int { return a.Line - b.Line })
	in.rec.unlisted = in.dropped
}

// beside reads another file in the folder of this one; nil if it does not
// exist, is not a regular file, or is too large.
func (in *input) beside(name string) []byte {
	if in.dir == "" {
		return nil
	}
	path := filepath.Join(in.dir, name)
	in.use(path)
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	data, _, err := unpack(name, f, defaultMaxBytes)
	if err != nil {
		return nil
	}
	return data
}

// startOf reads the first bytes of another file in the folder of this one; nil if it does not
// exist or is not a regular file.
func (in *input) startOf(name string) []byte {
	if in.dir == "" {
		return nil
	}
	path := filepath.Join(in.dir, name)
	in.use(path)
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil {
		return nil
	}
	return data
}

// exists reports whether the folder of this file contains another file.
func (in *input) exists(name string) bool {
	if in.dir == "" {
		return false
	}
	path := filepath.Join(in.dir, name)
	in.use(path)
	_, err := os.Stat(path)
	return err == nil
}
