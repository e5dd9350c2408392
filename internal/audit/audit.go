// Package audit writes a log of who read, changed, exported or deleted what. Each line
// has the hash of the line before it, so that a removed or changed line is noticed.
//
// The log is a file of JSON lines that only grows. When it reaches a size it is renamed,
// and a new file continues the chain. A line is on disk when Append returns. Several
// processes may write to one log. The log has no contents of messages and no
// credentials.
package audit

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl/internal/filelock"
	"github.com/furlhq/furl/internal/fileowner"
)

// Entry is what is written down about one access.
type Entry struct {
	Time time.Time `json:"time"`
	// Action is what was done or tried: read, search, restore, change, export, delete,
	// hold, release, operate, login, proxy.
	Action string `json:"action"`
	// Outcome is refused, or allowed before an access. A second line after the access has
	// its result: done, not_found, refused or failed. An access without a second line was
	// interrupted.
	Outcome string `json:"outcome"`
	// ID is the same in the line before an access and the line with its result.
	ID string `json:"id,omitempty"`
	// Status is the HTTP status of the response, if there is one.
	Status int `json:"status,omitempty"`
	// Via is where the request came in: api, page, mcp, cli or proxy. For a session that
	// furl serve deletes because it has expired, it is retention.
	Via string `json:"via"`
	// Who names the client, and By says how it was identified.
	Who string `json:"who,omitempty"`
	By  string `json:"by,omitempty"`
	// Tenant and Session are what was accessed, as far as they are known.
	Tenant  string `json:"tenant,omitempty"`
	Session string `json:"session,omitempty"`
	// Target is the path of a request without its query, or the command.
	Target string `json:"target,omitempty"`
	// From is the address of the client.
	From string `json:"from,omitempty"`
	// Reason is why the access was refused, or what a person gave as the reason.
	Reason string `json:"reason,omitempty"`
	// Others counts refused accesses before this one that have no line.
	Others int `json:"others,omitempty"`
}

// Outcomes of an Entry.
const (
	Allowed  = "allowed"
	Refused  = "refused"
	Done     = "done"
	NotFound = "not_found"
	Failed   = "failed"
)

// Allow returns the entry before an access, with a new ID.
func (e Entry) Allow() Entry {
	e.Outcome, e.ID = Allowed, strings.ToLower(rand.Text()[:10])
	return e
}

// Result returns the entry after an access.
func (e Entry) Result(outcome string) Entry {
	e.Outcome, e.Time = outcome, time.Time{}
	return e
}

// line is an Entry in the file, without its hash.
type line struct {
	Seq  uint64 `json:"seq"` // from 1, without gaps
	Prev string `json:"prev"`
	Entry
}

// Limits of one line, in bytes.
const (
	maxField = 500
	maxLine  = 16 << 10
)

// DefaultMaxSize is the size in bytes at which a file is renamed.
const DefaultMaxSize = 100 << 20

// Options are the settings of a Log.
type Options struct {
	// MaxSize is the size in bytes at which a file is renamed. If zero, DefaultMaxSize.
	MaxSize int64
	// Now is the clock. If nil, time.Now.
	Now func() time.Time
}

// Log is an audit log. It is safe for concurrent use.
type Log struct {
	name string
	o    Options

	mu   sync.Mutex
	file *os.File
	size int64
	seq  uint64
	hash string // of the last line; "" before the first
}

// Open opens a log, or creates it with mode 0600.
func Open(name string, o *Options) (*Log, error) {
	l := &Log{name: name}
	if o != nil {
		l.o = *o
	}
	l.o.MaxSize = cmp.Or(l.o.MaxSize, DefaultMaxSize)
	if l.o.Now == nil {
		l.o.Now = time.Now
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if err := l.locked(func() error { return nil }); err != nil {
		return nil, err
	}
	return l, nil
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// Append writes an entry. When it returns nil, the entry is on disk. Time is set if it is
// zero.
func (l *Log) Append(e Entry) error {
	if e.Time.IsZero() {
		e.Time = l.o.Now()
	}
	e.Time = e.Time.UTC()
	for _, s := range []*string{&e.Action, &e.Who, &e.Tenant, &e.Session, &e.Target, &e.From, &e.Reason} {
		*s = short(*s)
	}
	return l.locked(func() error {
		if l.size >= l.o.MaxSize {
			if err := l.rotate(); err != nil {
				return err
			}
		}
		return l.write(e)
	})
}

// short cuts a text off at maxField bytes. Control characters are escaped by JSON.
func short(s string) string {
	if len(s) <= maxField {
		return s
	}
	return strings.ToValidUTF8(s[:maxField], "") + "…"
}

// locked calls f with the lock of the log and with the state of its last line.
func (l *Log) locked(f func() error) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	unlock, err := filelock.Lock(l.name + ".lock")
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err = l.catchUp(); err == nil {
		err = f()
	}
	if err != nil {
		if l.file != nil {
			_ = l.file.Close() // the next call reads the state again
			l.file = nil
		}
		return fmt.Errorf("audit log %s: %w", l.name, err)
	}
	return nil
}

// catchUp opens the file and reads its last line, unless no other process has written
// since.
func (l *Log) catchUp() error {
	if l.file != nil {
		at, err := os.Stat(l.name)
		own, ownErr := l.file.Stat()
		if err == nil && ownErr == nil && os.SameFile(at, own) && own.Size() == l.size {
			return nil
		}
		_ = l.file.Close() // it is only read from now on
		l.file = nil
	}
	f, err := fileowner.Open(l.name, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return err
	}
	l.file = f
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return err
		}
	}
	l.size = info.Size()
	if l.size == 0 {
		return l.continueChain()
	}
	return l.readLast()
}

// readLast reads the last line. An incomplete one was never acknowledged: the process or
// the machine stopped while it was written. It is removed, and an entry says so.
func (l *Log) readLast() error {
	from := max(0, l.size-2*maxLine)
	tail := make([]byte, l.size-from)
	if _, err := l.file.ReadAt(tail, from); err != nil {
		return err
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	torn := len(tail) - end
	if end == 0 && from > 0 {
		return errors.New("the last line is too long: the file was changed; see furl audit verify")
	}
	if torn > 0 {
		l.size -= int64(torn)
		if err := l.file.Truncate(l.size); err != nil {
			return err
		}
	}
	if end == 0 {
		if err := l.continueChain(); err != nil {
			return err
		}
	} else {
		last := tail[:end-1]
		last = last[bytes.LastIndexByte(last, '\n')+1:]
		seq, _, hash, err := parse(last)
		if err != nil {
			return fmt.Errorf("the last line: %w; see furl audit verify", err)
		}
		l.seq, l.hash = seq.Seq, hash
	}
	if torn > 0 {
		return l.write(Entry{Time: l.o.Now().UTC(), Action: "recover", Outcome: Done, Via: "log", Reason: fmt.Sprintf("removed an incomplete line of %d bytes", torn)})
	}
	return nil
}

// continueChain reads the last line of the newest renamed file, for a new file.
func (l *Log) continueChain() error {
	l.seq, l.hash = 0, ""
	names, err := files(l.name)
	if err != nil || len(names) < 2 {
		return err
	}
	data, err := os.ReadFile(names[len(names)-2])
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	last, _, hash, err := parse(lines[len(lines)-1])
	if err != nil {
		return err
	}
	l.seq, l.hash = last.Seq, hash
	return nil
}

// write appends a line and flushes it to disk.
func (l *Log) write(e Entry) error {
	data, err := json.Marshal(line{l.seq + 1, l.hash, e})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	out := append(data[:len(data)-1], `,"hash":"`+hash+"\"}\n"...)
	if _, err := l.file.Write(out); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.size += int64(len(out))
	l.seq, l.hash = l.seq+1, hash
	return nil
}

// rotate renames the file to one with the number of its last line, and starts another.
func (l *Log) rotate() error {
	if err := os.Rename(l.name, fmt.Sprintf("%s.%012d", l.name, l.seq)); err != nil {
		return err
	}
	_ = l.file.Close() // flushed by write
	f, err := fileowner.Open(l.name, os.O_RDWR|os.O_EXCL|os.O_APPEND)
	if err != nil {
		l.file = nil
		return err
	}
	l.file, l.size = f, 0
	return nil
}

// files returns the files of a log in their order; the current one is the last.
func files(name string) ([]string, error) {
	old, err := filepath.Glob(escape(name) + ".[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]") // sorted
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(name); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return append(old, name), err
	}
	return old, nil
}

// escape makes a path match itself as a pattern.
func escape(name string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(name)
}

var hashField = []byte(`,"hash":"`)

// parse decodes a line and returns what its hash covers, and its hash.
func parse(text []byte) (l line, covered []byte, hash string, err error) {
	const end = len(`"}`) + 2*sha256.Size
	at := len(text) - end - len(hashField)
	if at < 0 || !bytes.Equal(text[at:at+len(hashField)], hashField) || !bytes.HasSuffix(text, []byte(`"}`)) {
		return l, nil, "", errors.New("not a line of an audit log")
	}
	hash = string(text[at+len(hashField) : len(text)-2])
	covered = append(bytes.Clone(text[:at]), '}')
	dec := json.NewDecoder(bytes.NewReader(covered))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return l, nil, "", fmt.Errorf("not a line of an audit log: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return l, nil, "", errors.New("not a line of an audit log: data after the object")
	}
	return l, covered, hash, nil
}
