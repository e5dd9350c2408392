package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/furlhq/furl"
)

var (
	errReplaced = errors.New("the file was deleted or replaced while it was open; put it back, or start anew what has it open")
	errFolder   = errors.New("it is a folder; a store is a file, such as furl.db in it")
	errForeign  = errors.New("the file is not a store of furl's, or its first page is damaged; nothing was changed in it")
)

// explained is what SQLite says, in words that tell the cure.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return fmt.Sprintf("%s (%v)", e.text, e.err) }

// Bare is the error without the cure, for where that is already at work.
func (e *explained) Bare() string  { return e.err.Error() }
func (e *explained) Unwrap() error { return e.err }

// cures has what to do, by SQLite's primary result code.
var cures = map[int]string{
	lib.SQLITE_FULL:     "the disk is full, or the file has reached a limit: make room and try again, nothing was lost",
	lib.SQLITE_READONLY: "the file or its folder cannot be written: give its owner the right to, or open it for reading only",
	lib.SQLITE_PERM:     "the file cannot be opened: give its owner the right to",
	lib.SQLITE_CANTOPEN: "the file cannot be opened: look for its folder and who may write there",
	lib.SQLITE_BUSY:     "another process holds the file locked: end it or wait for it, and try again",
	lib.SQLITE_LOCKED:   "another process holds the file locked: end it or wait for it, and try again",
	lib.SQLITE_IOERR:    "the disk gives an error: look at the system's log, and at the disk",
	lib.SQLITE_NOMEM:    "out of memory",
	lib.SQLITE_TOOBIG:   "a message is larger than SQLite can hold",
}

// damage is what to do about bytes that are not what was written.
const damage = "part of the file is damaged, and what stood there is lost unless a copy of the file has it: " +
	"furl doctor lists what that is, furl doctor --mend builds anew what can be built from the rest, furl doctor --mend --to FILE saves what can be read to a new file"

// explain adds to an error of SQLite's what it means for a user. Damage wraps
// furl.ErrDamaged.
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
			return &explained{"the file was being made when the process or the machine stopped: open it once for writing", err}
		}
		if text, ok := cures[code]; ok {
			return &explained{text, err}
		}
	}
	return err
}

// isInterrupted reports whether the file was being written without the
// write-ahead log when the process or the machine stopped.
func isInterrupted(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code() == lib.SQLITE_READONLY_ROLLBACK
}

// isBusy reports whether somebody else holds a lock.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == lib.SQLITE_BUSY
}

// refusal is an error of a job that has written nothing: the transaction it is
// part of goes on without it.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

func isRefusal(err error) bool {
	var r refusal
	return errors.As(err, &r)
}

func noSession(id furl.SessionID) error {
	return refuse("session %.140q: %w", id, furl.ErrNoSession)
}
