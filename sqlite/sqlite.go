// Package sqlite stores sessions in one SQLite file, without a server. It is
// furl's default store.
//
// The file and the files next to it (-wal and -shm of SQLite, -open by which processes notice
// each other) are readable and writable by their owner only. The text of the sessions is
// compressed but not encrypted: package encrypted does that.
// Deleted data is overwritten. Several processes may use one file at the same
// time, on a local disk.
//
// An acknowledged append is on disk, unless Options say otherwise. All writes
// use one connection, and concurrent writes share a transaction.
// docs/operate/stores.md has the measurements, docs/internals/format.md the format.
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

	"github.com/furlhq/furl/internal/filelock"
	"github.com/furlhq/furl/storage"
)

// Options for Open. The zero value suits everyday use.
type Options struct {
	// Sync sets what an append waits for before it is acknowledged.
	Sync Sync
	// LockTimeout is how long a write waits for the lock of another process.
	// If zero, 5s.
	LockTimeout time.Duration
	// Poll is how often a watched store checks for appends of other
	// processes. If zero, 200ms.
	Poll time.Duration
	// ReadOnly opens an existing file without changing it, also on a
	// read-only file system. All writes are refused.
	ReadOnly bool

	// For tests: maxPages is the largest number of pages of the file, which
	// simulates a full disk. vfs names the layer through which SQLite
	// accesses its files. syncFile flushes a file to disk instead of
	// (*os.File).Sync.
	maxPages int
	vfs      string
	syncFile func(*os.File) error
}

// Sync says which failures an acknowledged append survives.
type Sync int

const (
	// SyncFull: an acknowledged append survives a power loss.
	SyncFull Sync = iota
	// SyncNormal: an acknowledged append survives the end of the process, but
	// a power loss may remove it. The file stays valid.
	SyncNormal
)

// Store is a store in a SQLite file. It is safe for concurrent use.
type Store struct {
	path string
	o    Options
	file os.FileInfo // of the file that was opened
	// frozen means that the file is read without locks and without a log,
	// neither of which SQLite can create on a read-only file system.
	frozen bool

	read     *sql.DB
	prepared prepared // on read
	versions versions
	write    *writer // nil: read-only
	// aloneAt is when the store was opened, if no other process had it open; unshare ends the
	// lock that tells others.
	aloneAt time.Time
	unshare func() error

	mu       sync.RWMutex // held while a job is passed to the writer
	closed   bool
	watchers watchers
}

var (
	_ storage.Store         = (*Store)(nil)
	_ storage.EarlyAppender = (*Store)(nil)
	_ storage.Stager        = (*Store)(nil)
	_ storage.InfoReader    = (*Store)(nil)
	_ storage.Searchable    = (*Store)(nil)
	_ storage.Versioned     = (*Store)(nil)
	_ storage.VectorStore   = (*Store)(nil)
	_ storage.Watcher       = (*Store)(nil)
	_ storage.ManyDeleter   = (*Store)(nil)
	_ storage.Checker       = (*Store)(nil)
	_ storage.Renamer       = (*Store)(nil)
	_ storage.Exclusive     = (*Store)(nil)
	_ storage.TenantLister  = (*Store)(nil)
	_ storage.ContentStore  = (*Store)(nil)
)

var (
	errClosed   = errors.New("the store is closed")
	errReadOnly = errors.New("the store is read-only: to change it, open it where its file and folder are writable")
	errChanged  = errors.New("the file was changed by another process while it was open read-only: open it again")
)

// Open opens the store in the file at path, and creates the file and its
// folder if needed. Nil options mean defaults. A file in an older format is
// migrated. For a newer format Open returns an error wrapping
// record.ErrNewerFormat, and it refuses files that are not furl stores; neither
// is changed.
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
	// Check before anything changes: it may be another program's file.
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
	// SQLite's other files are next to the file itself, not next to a link to
	// it.
	real, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		return err
	}
	if err := protectFile(real); err != nil {
		return err
	}
	if s.write, err = s.newWriter(real); err == nil {
		s.share(real)
	}
	return err
}

// share takes a lock that all processes share which have the store open for writing. It is on a
// file of its own, because closing a handle of the store's file drops SQLite's locks. Without it
// only AloneAt is unknown, so that errors do not matter.
func (s *Store) share(path string) {
	alone, unshare, err := filelock.Share(path + "-open")
	if err != nil {
		return
	}
	if s.unshare = unshare; alone {
		s.aloneAt = time.Now()
	}
}

// AloneAt implements storage.Exclusive.
func (s *Store) AloneAt() time.Time { return s.aloneAt }

// rollBack rolls back an interrupted transaction with SQLite's rollback
// journal, which is in use while a file is created. Reading connections
// cannot do this. Afterwards the file is in the state after its last
// transaction.
func (s *Store) rollBack() error {
	db := s.connect(false)
	defer db.Close()
	var tables int
	return db.QueryRowContext(context.Background(), "SELECT count(*) FROM sqlite_schema").Scan(&tables)
}

// Path returns the path of the store's file.
func (s *Store) Path() string { return s.path }

// Close implements storage.Store. It waits for appends that were already
// submitted.
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
	s.versions.close()
	err := s.read.Close()
	if s.write != nil { // last, because it moves the log into the file
		err = errors.Join(err, s.write.close())
	}
	if s.unshare != nil {
		err = errors.Join(err, s.unshare())
	}
	if err != nil {
		return fmt.Errorf("close store %s: %w", s.path, explain(err))
	}
	return nil
}

// ready returns why the store cannot be used: the context ended, the store is
// closed, or the file was replaced.
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

// inPlace returns an error if the file was deleted or replaced. Writes would
// be acknowledged and then disappear with the last process that has the file
// open.
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

// failed wraps an error with the operation and the path of the store.
func (s *Store) failed(what string, err error) error {
	return fmt.Errorf("%s in store %s: %w", what, s.path, explain(err))
}
