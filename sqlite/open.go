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

// prepareFile creates the file and its folder with permissions for the owner
// only. It does not open a file that may be in use: when a process closes any
// handle of a file, the system drops the locks that SQLite holds on it
// through another handle.
func prepareFile(path string, o *Options) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !o.ReadOnly:
		return createFile(path, o.syncFile)
	case err != nil:
		return err
	case info.IsDir():
		return errFolder
	case !info.Mode().IsRegular():
		return errForeign
	}
	return nil
}

// protectFile removes the permissions of group and others from a store's file
// and from the files that SQLite created for it. The caller has checked that
// it is a furl store: a wrong path must not change another program's file.
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

func createFile(path string, flush func(*os.File) error) error {
	if err := makeFolder(filepath.Dir(path), flush); err != nil {
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

// makeFolder creates a folder and its parents. It flushes the name of each
// new folder to disk: otherwise a power loss can remove the folder with all
// its contents. SQLite flushes the names of the files in the folder.
func makeFolder(dir string, flush func(*os.File) error) error {
	parent := filepath.Dir(dir)
	if _, err := os.Stat(dir); err == nil || parent == dir {
		return os.MkdirAll(dir, 0o700) // an error if it is a file
	}
	if err := makeFolder(parent, flush); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.Open(parent)
	if err != nil {
		return nil // the folder is searchable, but not readable
	}
	defer f.Close()
	_ = flush(f) // not supported by every file system
	return nil
}

// connect returns a pool of connections: for reading, or one for writing.
func (s *Store) connect(reading bool) *sql.DB { return s.connectTo(reading, reading) }

// connectTo is connect for connections that read the file and, unless only is set,
// may write other files.
func (s *Store) connectTo(reading, only bool) *sql.DB {
	q := make(url.Values)
	pragma := func(format string, args ...any) { q.Add("_pragma", fmt.Sprintf(format, args...)) }
	pragma("busy_timeout(%d)", s.o.LockTimeout.Milliseconds())
	switch {
	case reading:
		q.Set("mode", "ro")
		if s.frozen {
			q.Set("immutable", "1")
		}
		if only {
			pragma("query_only(1)")
		}
		pragma("cache_size(-4000)")
	default:
		q.Set("mode", "rw")
		pragma("secure_delete(ON)")
		pragma("synchronous(NORMAL)") // see sync.go
		pragma("cache_size(-8000)")
		pragma("journal_size_limit(67108864)")
		if s.o.maxPages > 0 {
			pragma("max_page_count(%d)", s.o.maxPages)
		}
	}
	if s.o.vfs != "" {
		q.Set("vfs", s.o.vfs)
	}
	name := filepath.ToSlash(s.path)
	if !strings.HasPrefix(name, "/") { // a drive letter
		name = "/" + name
	}
	// Escaped, because a path may contain the characters that end the path of
	// a URL.
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

// connector opens SQLite connections without registering a driver name.
type connector struct{ dsn string }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	return (&sqlite.Driver{}).Open(c.dsn)
}

func (c connector) Driver() driver.Driver { return &sqlite.Driver{} }
