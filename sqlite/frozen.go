package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// SQLite reads a file in write-ahead mode with the help of an index file next
// to it (-shm), which it creates if needed. If it cannot create one, it reads
// the file only in immutable mode.

// needsFiles reports whether an error may mean that SQLite could not create a
// file next to the store's file.
func needsFiles(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) || isInterrupted(err) {
		return false // a journal must be rolled back first
	}
	code := e.Code() & 0xff
	return code == lib.SQLITE_CANTOPEN || code == lib.SQLITE_READONLY || code == lib.SQLITE_IOERR || code == lib.SQLITE_PERM
}

// openFrozen opens a file as immutable, because no files can be created next
// to it. That would be wrong if the write-ahead log has content, which would
// be missing.
func (s *Store) openFrozen() error {
	if s.hasLog() {
		return fmt.Errorf("the newest changes are in %s-wal, and reading them needs a writable folder: copy both files to one, or open the store once for writing", s.path)
	}
	frozen := &Store{path: s.path, o: s.o, frozen: true}
	db := frozen.connect(true)
	if err := checkFormat(context.Background(), db, true); err != nil {
		return errors.Join(err, db.Close())
	}
	s.read.Close()
	s.read, s.frozen = db, true
	return nil
}

// hasLog reports whether the write-ahead log has content.
func (s *Store) hasLog() bool {
	path := s.path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the log is next to the file, not next to a link to it
	}
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}
