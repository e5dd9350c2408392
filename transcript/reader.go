package transcript

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// Reader reads recordings. The zero value is ready to use; a Reader is safe
// for concurrent use.
type Reader struct {
	// MaxBytes bounds the size of one file after unpacking; larger ones are
	// a TooLargeError. If zero, 1 GiB.
	MaxBytes int64
	// MaxRecords bounds the records of one file: lines of JSON Lines, elements
	// of lists, and messages. More are a TooManyRecordsError. If zero, 150,000.
	MaxRecords int
	// MaxMemory bounds the memory that one recording takes, in bytes, as
	// estimated while it is read: about three times the bytes of its messages,
	// and 1 KiB for each. More is a TooMuchMemoryError. JSON Lines are read
	// line by line; files of other forms are held whole beside that. If zero,
	// 320 MiB.
	MaxMemory int64
	// MaxLine bounds one line of JSON Lines, in bytes; longer ones are
	// skipped and reported. If zero, 256 MiB. A file is refused if such a line
	// takes more memory than MaxMemory.
	MaxLine int
	// Counter measures every block on the way into the log. If nil, nothing
	// is measured and all sizes in the log are zero. Furl's own sessions
	// keep the sizes they were recorded with.
	Counter furl.Counter
}

const (
	defaultMaxBytes   = 1 << 30
	defaultMaxLine    = 256 << 20
	defaultMaxRecords = 150_000
	defaultMaxMemory  = 320 << 20
)

// UnknownFormatError says that a file's content is of no known format.
type UnknownFormatError struct {
	Name  string
	Tried []string // the formats it was held against
	Empty bool     // nothing but white space to hold against them
	// Database is set for one of SQLite, as opencode keeps its sessions since
	// 2026 and exports them from.
	Database bool
}

func (e *UnknownFormatError) Error() string {
	if e.Empty {
		return e.Name + " is empty"
	}
	if e.Database {
		return e.Name + " is a database of SQLite; sessions of opencode are read as opencode export writes them"
	}
	return fmt.Sprintf("%s is no recording of a known format (tried %s)", e.Name, strings.Join(e.Tried, ", "))
}

// limit is MaxBytes or its default.
func (rd *Reader) limit() int64 {
	if rd.MaxBytes > 0 {
		return rd.MaxBytes
	}
	return defaultMaxBytes
}

// TooLargeError says that a file is larger than Reader.MaxBytes, unpacked.
type TooLargeError struct {
	Name  string
	Limit int64 // in bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes, unpacked; split it into parts", e.Name, e.Limit)
}

// Read reads one recording with a zero Reader.
func Read(name string, r io.Reader) (*Recording, error) { return new(Reader).Read(name, r) }

// ReadFile reads one recording from a file with a zero Reader.
func ReadFile(path string) (*Recording, error) { return new(Reader).ReadFile(path) }

// Read reads one recording. The name is only used to speak of it. Content of
// no known format is an *UnknownFormatError, too much of it a *TooLargeError, a
// *TooManyRecordsError or a *TooMuchMemoryError.
// Broken records are no error; they are listed in Recording.Skipped.
func (rd *Reader) Read(name string, r io.Reader) (*Recording, error) {
	return rd.read(name, "", r)
}

// ReadFile reads one recording from a file. Formats that keep a second file
// beside it read that too.
func (rd *Reader) ReadFile(path string) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rd.read(path, filepath.Dir(path), f)
}

func (rd *Reader) read(name, dir string, r io.Reader) (*Recording, error) {
	in := &input{
		dir: dir, maxLine: cmp.Or(max(rd.MaxLine, 0), defaultMaxLine), counter: rd.Counter,
		bounds: bounds{cmp.Or(max(rd.MaxRecords, 0), defaultMaxRecords), cmp.Or(max(rd.MaxMemory, 0), defaultMaxMemory)},
		name:   name, limit: rd.limit(),
	}
	defer in.close()
	f, err := in.open(r, in.limit)
	if err != nil {
		return nil, err
	}
	in.rec = &Recording{File: name, Format: f.name, Agent: f.agent}
	if in.torn != nil && in.stream == nil {
		in.note("the compressed file ends early: %v", in.torn)
	}
	if f.read == nil {
		return nil, &companionError{name: name, of: f.agent}
	}
	in.rec.Sessions, err = f.read(in)
	if in.refused != nil {
		return nil, in.refused
	}
	if err != nil {
		return nil, fmt.Errorf("read %s as %s: %w", name, f.name, err)
	}
	if in.torn != nil && in.stream != nil {
		in.note("the compressed file ends early: %v", in.torn)
	}
	in.leaveOutEmpty()
	in.summarize()
	in.rec.name()
	return in.rec, nil
}

// leaveOutEmpty drops conversations of which nothing went over the wire, such
// as one whose only request failed. Furl's own files are as they are.
func (in *input) leaveOutEmpty() {
	if in.rec.Format == furlOwn.name {
		return
	}
	n := len(in.rec.Sessions)
	in.rec.Sessions = slices.DeleteFunc(in.rec.Sessions, func(s *Session) bool { return s.Log.Len() == 0 })
	if n -= len(in.rec.Sessions); n > 0 {
		in.note("conversations in which no message was sent, left out: %d", n)
	}
}

// name gives sessions without an id one made of the file's name.
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

// companionError says that a file belongs to a recording but is none.
type companionError struct{ name, of string }

func (e *companionError) Error() string {
	return fmt.Sprintf("%s is no recording: it stands beside one of %s", e.name, e.of)
}

// input is one file being read.
type input struct {
	data    []byte // unpacked; nil if it is read line by line
	name    string
	limit   int64     // of its size in bytes, unpacked
	stream  io.Reader // the lines, else
	left    int64     // bytes of them until the limit
	source  io.Closer // of the stream
	torn    error     // why the compressed file ends early
	dir     string    // where the file lies; "" when it came from an io.Reader
	maxLine int
	counter furl.Counter
	rec     *Recording

	bounds
	lines, messages int
	memory          int64
	refused         error // why the recording is not read

	dropped int // skips beyond maxSkips
	// What was mended: results made and moved, conversations begun, replies
	// parted, reasoning that nothing came of.
	made, moved, begun, parted, unused int
}

// maxSkips bounds the list of skipped records of one file. Those beyond are
// counted in one last entry.
const maxSkips = 10_000

// skip reports a record that cannot be used. Line 0 means no line is known.
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

// summarize orders the skipped records by line and says what was mended.
func (in *input) summarize() {
	if in.made > 0 {
		in.note("calls without a recorded result, given one that says so: %d", in.made)
	}
	if in.moved > 0 {
		in.note("results recorded late, moved up to their calls: %d", in.moved)
	}
	if in.begun > 0 {
		in.note("conversations that begin with the model's words, given a beginning: %d", in.begun)
	}
	if in.parted > 0 {
		in.note("replies that followed one another, parted by words that say so: %d", in.parted)
	}
	if in.unused > 0 {
		in.note("items of reasoning that nothing came of, left out: %d", in.unused)
	}
	slices.SortStableFunc(in.rec.Skipped, func(a, b Skip) int { return a.Line - b.Line })
	if in.dropped > 0 {
		in.rec.Skipped = append(in.rec.Skipped, Skip{0, fmt.Sprintf("and %d more", in.dropped)})
	}
}

// beside reads a file that lies next to this one; nil if there is none or it
// is no plain file of a size that will do.
func (in *input) beside(name string) []byte {
	if in.dir == "" {
		return nil
	}
	f, err := os.Open(filepath.Join(in.dir, name))
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

// exists reports whether a file lies beside this one.
func (in *input) exists(name string) bool {
	if in.dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(in.dir, name))
	return err == nil
}
