package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// prepareFile makes the file and its folder for their owner alone. It opens no
// file that may be in use: when a process closes any handle of a file, the
// system drops the locks that SQLite holds on it by another.
func prepareFile(path string, readOnly bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !readOnly:
		return createFile(path)
	case err != nil:
		return err
	case info.IsDir():
		return errFolder
	case !info.Mode().IsRegular():
		return errForeign
	}
	return nil
}

// protectFile takes from a store's file what others may do with it, and from
// those that SQLite has made beside it. The file must be known to be furl's: who
// names somebody else's by mistake must find it as it was.
func protectFile(path string) error {
	for _, end := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + end)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(path+end, info.Mode().Perm()&^0o077)
		}
		if err != nil && (end == "" || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // another process was first
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// connect gives a pool of connections: for reading, or one for writing.
func (s *Store) connect(reading bool) *sql.DB {
	q := make(url.Values)
	pragma := func(format string, args ...any) { q.Add("_pragma", fmt.Sprintf(format, args...)) }
	pragma("busy_timeout(%d)", s.o.LockTimeout.Milliseconds())
	switch {
	case reading:
		q.Set("mode", "ro")
		pragma("query_only(1)")
		pragma("cache_size(-4000)")
	default:
		q.Set("mode", "rw")
		pragma("auto_vacuum(INCREMENTAL)")
		pragma("secure_delete(ON)")
		pragma("synchronous(NORMAL)") // see sync.go
		pragma("cache_size(-8000)")
		pragma("wal_autocheckpoint(4000)")
		pragma("journal_size_limit(67108864)")
		if s.o.maxPages > 0 {
			pragma("max_page_count(%d)", s.o.maxPages)
		}
	}
	name := filepath.ToSlash(s.path)
	if !strings.HasPrefix(name, "/") { // a drive letter
		name = "/" + name
	}
	// Escaped whole: a path may hold the characters that end one in a URL.
	dsn := "file://" + (&url.URL{Path: name}).EscapedPath() + "?" + strings.ReplaceAll(q.Encode(), "+", "%20")
	db := sql.OpenDB(connector{dsn})
	if reading {
		db.SetMaxIdleConns(idleReaders)
	} else {
		db.SetMaxOpenConns(1)
	}
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db
}

// connector opens connections of SQLite's without a name in the program's
// table of drivers.
type connector struct{ dsn string }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	return (&sqlite.Driver{}).Open(c.dsn)
}

func (c connector) Driver() driver.Driver { return &sqlite.Driver{} }
