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

// SQLite reads a file in write-ahead mode with the help of an index beside it
// (-shm), which it makes if it is not there. Where it cannot, it reads the file
// only if it is told that the file does not change.

// needsFiles reports whether an error may say that SQLite could not make a file
// beside the store's.
func needsFiles(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) || isInterrupted(err) {
		return false // a journal must be rolled back first
	}
	code := e.Code() & 0xff
	return code == lib.SQLITE_CANTOPEN || code == lib.SQLITE_READONLY || code == lib.SQLITE_IOERR || code == lib.SQLITE_PERM
}

// openFrozen opens a file that nothing can be made beside, as one that does not
// change. That is wrong if there is something in its log, which would be missing.
func (s *Store) openFrozen() error {
	if s.hasLog() {
		return fmt.Errorf("its newest changes are in %s-wal, and reading them needs a folder that can be written: copy both files to one, or open the store once where it can be written", s.path)
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

// hasLog reports whether there is anything in the write-ahead log.
func (s *Store) hasLog() bool {
	path := s.path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the log stands beside the file, not beside a link to it
	}
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}
