// Package sqlite keeps sessions in one SQLite file, without a server: the
// store furl uses unless told otherwise.
//
// The file and what SQLite puts beside it (-wal, -shm) can be read and written
// by their owner only. The text of the sessions stands in them compressed but
// not encrypted: encryption at rest is the disk's business. What was deleted
// is overwritten. Several processes may use one file at once, on a local disk.
//
// An acknowledged append is on the disk, unless Options say otherwise. Writes
// pass through one connection, and those that come at the same time share a
// transaction. docs/stores.md has the measurements, docs/format.md the format.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/furlhq/furl"
)

// Options for Open. The zero value is good for everyday use.
type Options struct {
	// Sync says how much is waited for before an append is acknowledged.
	Sync Sync
	// LockTimeout is how long a write waits for another process to finish
	// its own. If zero, defaults to 5s.
	LockTimeout time.Duration
	// Poll is how often a watched store looks for appends of other
	// processes. If zero, defaults to 200ms.
	Poll time.Duration
	// ReadOnly opens a file that is there without changing it, also on a
	// read-only file system. Whatever would write is refused.
	ReadOnly bool

	// For tests: maxPages is the most pages the file may have, which makes a
	// full disk. vfs names the layer through which SQLite reaches its files,
	// and syncFile flushes a file to the disk in place of (*os.File).Sync.
	maxPages int
	vfs      string
	syncFile func(*os.File) error
}

// Sync says how much an acknowledged append survives.
type Sync int

const (
	// SyncFull: an acknowledged append survives the loss of power.
	SyncFull Sync = iota
	// SyncNormal: an acknowledged append survives the end of the process,
	// and may be lost with the power. The file stays sound.
	SyncNormal
)

// Store is a store in a SQLite file. It is safe for concurrent use.
type Store struct {
	path string
	o    Options
	file os.FileInfo // of the file that was opened
	// frozen says that the file is read without locks and without a log: on a
	// read-only file system SQLite can make neither.
	frozen bool

	read     *sql.DB
	prepared prepared // on read
	write    *writer  // nil: read-only

	mu       sync.RWMutex // held while a job is handed to the writer
	closed   bool
	watchers watchers
}

var (
	_ furl.Store         = (*Store)(nil)
	_ furl.EarlyAppender = (*Store)(nil)
	_ furl.Searchable    = (*Store)(nil)
	_ furl.VectorStore   = (*Store)(nil)
	_ furl.Watcher       = (*Store)(nil)
	_ furl.ManyDeleter   = (*Store)(nil)
	_ furl.Checker       = (*Store)(nil)
	_ furl.Renamer       = (*Store)(nil)
	_ furl.TenantLister  = (*Store)(nil)
)

var (
	errClosed   = errors.New("the store is closed")
	errReadOnly = errors.New("the store is open for reading only: to change it, open it where its file and folder can be written")
	errChanged  = errors.New("the file was changed by another process while it was open for reading only; open it again")
)

// Open opens the store in the file at path, and makes the file and its folder
// where there are none. Nil options mean defaults. A file of an older format
// is brought to this one; one of a newer is an error wrapping
// furl.ErrNewerFormat, and one that is no store of furl's is refused, both
// without changing it.
func Open(path string, o *Options) (*Store, error) {
	s := &Store{}
	if o != nil {
		s.o = *o
	}
	if s.o.LockTimeout == 0 {
		s.o.LockTimeout = 5 * time.Second
	}
	if s.o.Poll == 0 {
		s.o.Poll = 200 * time.Millisecond
	}
	if s.o.syncFile == nil {
		s.o.syncFile = (*os.File).Sync
	}
	var err error
	if s.path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open store %s: %w", s.path, explain(err))
	}
	return s, nil
}

func (s *Store) open() (err error) {
	if err := prepareFile(s.path, &s.o); err != nil {
		return err
	}
	if s.file, err = os.Stat(s.path); err != nil {
		return err
	}
	s.read = s.connect(true)
	defer func() {
		if err != nil {
			s.read.Close()
		}
	}()
	// Before anything could be changed in what may be somebody else's file.
	err = checkFormat(context.Background(), s.read, s.o.ReadOnly)
	if isInterrupted(err) && !s.o.ReadOnly {
		if err = s.rollBack(); err == nil {
			err = checkFormat(context.Background(), s.read, false)
		}
	}
	if err != nil && s.o.ReadOnly && needsFiles(err) {
		err = s.openFrozen()
	}
	if err != nil || s.o.ReadOnly {
		return err
	}
	// SQLite's other files stand beside the file itself, not beside a link to it.
	real, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		return err
	}
	if err := protectFile(real); err != nil {
		return err
	}
	s.write, err = s.newWriter(real)
	return err
}

// rollBack undoes a transaction that was interrupted: with SQLite's rollback
// journal, which is in use while a file is made. Connections for reading cannot.
// Whatever the file is, it is then as its last transaction has left it.
func (s *Store) rollBack() error {
	db := s.connect(false)
	defer db.Close()
	var tables int
	return db.QueryRowContext(context.Background(), "SELECT count(*) FROM sqlite_schema").Scan(&tables)
}

// Path is the file the store is in.
func (s *Store) Path() string { return s.path }

// Close implements furl.Store. Appends that were handed over are finished.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.watchers.end()
	s.prepared.close()
	err := s.read.Close()
	if s.write != nil { // last, for it moves the log into the file
		err = errors.Join(err, s.write.close())
	}
	if err != nil {
		return fmt.Errorf("close store %s: %w", s.path, explain(err))
	}
	return nil
}

// ready says why nothing can be done: the context's end, the store's, or that
// the file is another than the one that was opened.
func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return errClosed
	}
	return s.inPlace()
}

// inPlace says if the file was deleted or replaced. What is written to it then
// would be acknowledged, and gone with the last process that has it open.
func (s *Store) inPlace() error {
	now, err := os.Stat(s.path)
	if err != nil || !os.SameFile(now, s.file) {
		return errReplaced
	}
	if s.frozen && (now.Size() != s.file.Size() || !now.ModTime().Equal(s.file.ModTime()) || s.hasLog()) {
		return errChanged
	}
	return nil
}

// failed wraps an error with what was being done and where.
func (s *Store) failed(what string, err error) error {
	return fmt.Errorf("%s in store %s: %w", what, s.path, explain(err))
}
