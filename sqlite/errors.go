package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

var (
	errReplaced = errors.New("the file was deleted or replaced while it was open: put it back, or restart the processes that have it open")
	errFolder   = errors.New("is a folder: name a file, such as furl.db in it")
	errForeign  = errors.New("not a furl store, or its first page is damaged: the file was not changed")
)

// explained adds to an error of SQLite what the user can do.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return fmt.Sprintf("%s (%v)", e.text, e.err) }

// Bare returns the error without the advice, for callers that already act on
// it.
func (e *explained) Bare() string  { return e.err.Error() }
func (e *explained) Unwrap() error { return e.err }

// cures says what to do, by SQLite's primary result code.
var cures = map[int]string{
	lib.SQLITE_FULL:     "the disk is full, or the file has reached a limit: free some space and try again, nothing was lost",
	lib.SQLITE_READONLY: "the file or its folder is not writable: change the permissions, or open the store read-only",
	lib.SQLITE_PERM:     "permission denied: change the permissions of the file",
	lib.SQLITE_CANTOPEN: "the file cannot be opened: check that its folder exists and is writable",
	lib.SQLITE_BUSY:     "another process has locked the file: stop it or wait for it, and try again",
	lib.SQLITE_LOCKED:   "another process has locked the file: stop it or wait for it, and try again",
	lib.SQLITE_IOERR:    "the disk reported an error: check the system log and the disk",
	lib.SQLITE_NOMEM:    "out of memory",
	lib.SQLITE_TOOBIG:   "a message is larger than SQLite's limit",
}

// damage says what to do about damaged data.
const damage = "part of the file is damaged, and the data there is lost unless you have a backup: " +
	"furl doctor lists the damage, furl doctor --mend rebuilds derived data, furl doctor --mend --to FILE saves all readable data to a new file"

// explain adds to an error of SQLite what it means for a user. Errors about
// damage wrap furl.ErrDamaged.
func explain(err error) error {
	var e *sqlite.Error
	var done *explained
	switch {
	case errors.As(err, &done):
		return err
	case errors.Is(err, furl.ErrDamaged):
		return &explained{damage, err}
	case !errors.As(err, &e):
		return err
	}
	switch code := e.Code() & 0xff; code {
	case lib.SQLITE_CORRUPT:
		return &explained{damage, fmt.Errorf("%w: %w", furl.ErrDamaged, err)}
	case lib.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", errForeign, err)
	default:
		if isInterrupted(err) {
			return &explained{"creating the file was interrupted: open the store once for writing", err}
		}
		if text, ok := cures[code]; ok {
			return &explained{text, err}
		}
	}
	return err
}

// isInterrupted reports whether a write without the write-ahead log was
// interrupted by the end of the process or the machine.
func isInterrupted(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code() == lib.SQLITE_READONLY_ROLLBACK
}

// isBusy reports whether another connection holds a lock.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == lib.SQLITE_BUSY
}

// refusal is the error of a job that has written nothing: the job's
// transaction continues without it.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

func isRefusal(err error) bool {
	var r refusal
	return errors.As(err, &r)
}

func noSession(id furl.SessionID) error {
	return refuse("session %.140q: %w", id, storage.ErrNoSession)
}
