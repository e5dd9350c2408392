package transcript

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite" // also the driver "sqlite"
)

// Some agents store all sessions in one SQLite database, which they write while furl reads it. This
// file opens it without writing, and combines each session into the text that the agent exports.

// databaseKind is the layout of one agent's database.
type databaseKind struct {
	tables []string // which identify it
	agent  func(path string) string
	open   func(db *sql.DB) sessionDatabase
}

// sessionDatabase reads sessions from a database.
type sessionDatabase interface {
	// list returns all sessions, oldest first.
	list(ctx context.Context) ([]storedSession, error)
	// size returns the bytes of a session's texts.
	size(ctx context.Context, id string) (int64, error)
	// text returns a session in a form that one of the formats reads.
	text(ctx context.Context, id string) ([]byte, error)
}

// storedSession is a session of a database, the one that started it, and the one whose messages it begins with.
type storedSession struct{ id, parent, forkOf string }

var databaseKinds = []databaseKind{opencodeDatabase, openclawDatabase, crushDatabase}

// isDatabase reports whether a file is a SQLite database.
func isDatabase(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(sqliteMagic))
	_, err = io.ReadFull(f, head)
	return err == nil && bytes.Equal(head, sqliteMagic)
}

// walkDatabase reads a database: each session with its sub-agents is one recording. It reports whether
// to continue.
func (rd *Reader) walkDatabase(path string, yield func(*Recording, error) bool) bool {
	ctx := context.Background()
	db, kind, err := openDatabase(ctx, path)
	if err != nil {
		return yield(nil, err)
	}
	defer db.Close()
	sessions := kind.open(db)
	list, err := sessions.list(ctx)
	if err != nil {
		return yield(nil, databaseError(path, err))
	}
	said := ""
	for _, tree := range treesOf(list) {
		rec := &Recording{File: path, Agent: kind.agent(path)}
		for _, stored := range tree {
			if err = rd.addStored(ctx, rec, sessions, stored); err != nil {
				break
			}
		}
		if err != nil {
			if rec = nil; err.Error() == said { // a table that is missing, for one, is so for each session
				continue
			}
			said = err.Error()
		}
		if !yield(rec, err) {
			return false
		}
	}
	return true
}

// readDatabase reads all sessions of a database as one recording.
func (rd *Reader) readDatabase(path string) (*Recording, error) {
	var all *Recording
	var failed error
	rd.walkDatabase(path, func(rec *Recording, err error) bool {
		switch {
		case err != nil:
			failed = err
		case all == nil:
			all = rec
		default:
			all.merge(rec)
		}
		return failed == nil
	})
	if failed == nil && all == nil {
		failed = &UnknownFormatError{Name: path, Empty: true}
	}
	return all, failed
}

// addStored reads a session of a database into a recording.
func (rd *Reader) addStored(ctx context.Context, rec *Recording, sessions sessionDatabase, stored storedSession) error {
	size, err := sessions.size(ctx, stored.id)
	if err == nil && size > rd.limit() {
		err = &TooLargeError{rec.File + ", session " + stored.id, rd.limit()}
	}
	var text []byte
	if err == nil {
		text, err = sessions.text(ctx, stored.id)
	}
	if err != nil {
		return databaseError(rec.File, err)
	}
	one, err := rd.read(rec.File, "", nil, bytes.NewReader(text))
	if err != nil {
		return err
	}
	for _, s := range one.Sessions {
		s.Parent, s.ForkOf = cmp.Or(s.Parent, stored.parent), cmp.Or(s.ForkOf, stored.forkOf)
	}
	rec.Format = one.Format
	rec.merge(one)
	return nil
}

// merge adds the sessions of another recording.
func (rec *Recording) merge(other *Recording) {
	rec.Sessions = append(rec.Sessions, other.Sessions...)
	rec.Skipped = append(rec.Skipped, other.Skipped...)
	rec.Notes = append(rec.Notes, other.Notes...)
}

// openDatabase opens an agent's database for reading. Unknown databases are an
// *UnknownFormatError.
func openDatabase(ctx context.Context, path string) (*sql.DB, *databaseKind, error) {
	var first error
	// Without the right to write its folder, SQLite can read a database only as one that nothing changes.
	for _, option := range []string{"", "&immutable=1"} {
		db, err := sql.Open("sqlite", databaseURI(path)+option)
		if err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(1)
		kind, err := kindOf(ctx, db, path)
		if err == nil {
			return db, kind, nil
		}
		_ = db.Close()
		if _, unknown := errors.AsType[*UnknownFormatError](err); unknown {
			return nil, nil, err
		}
		if first = cmp.Or(first, err); sqliteCode(err) == sqliteBusy {
			break // what is in the file is not complete
		}
	}
	return nil, nil, databaseError(path, first)
}

// databaseURI returns the URI of a file that is only read. Texts of a hostile schema are not run.
func databaseURI(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	u := url.URL{Scheme: "file", Path: path}
	return u.String() + "?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)&_pragma=trusted_schema(0)"
}

// kindOf returns the layout of a database.
func kindOf(ctx context.Context, db *sql.DB, path string) (*databaseKind, error) {
	tables, err := texts(ctx, db, `select name from sqlite_master where type = 'table' and name not like 'sqlite%' limit 1000`)
	if err != nil {
		return nil, err
	}
	for i := range databaseKinds {
		k := &databaseKinds[i]
		if !slices.ContainsFunc(k.tables, func(name string) bool { return !slices.Contains(tables, name) }) {
			return k, nil
		}
	}
	return nil, &UnknownFormatError{Name: path, Database: true}
}

// Result codes of SQLite, see https://sqlite.org/rescode.html.
const (
	sqliteError       = 1
	sqliteBusy        = 5
	sqliteCorrupt     = 11
	sqliteCannotOpen  = 14
	sqliteNotDatabase = 26
)

// sqliteCode returns the result code of an error of SQLite, 0 for others.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff // without what an extended code adds
	}
	return 0
}

// databaseError says which database cannot be read, and why.
func databaseError(path string, err error) error {
	why := ""
	switch sqliteCode(err) {
	case sqliteError:
		why = "its tables are not those that furl knows; perhaps the agent is newer: "
	case sqliteBusy:
		why = "another program locks it; try again later: "
	case sqliteCorrupt, sqliteNotDatabase:
		why = "the file is damaged: "
	case sqliteCannotOpen:
		why = "it cannot be opened; check its permissions: "
	}
	return fmt.Errorf("read database %s: %s%w", path, why, err)
}

// texts returns the texts that a query selects.
func texts(ctx context.Context, db *sql.DB, query string, args ...any) (list []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s sql.NullString
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		list = append(list, s.String)
	}
	return list, rows.Err()
}

// treesOf groups sessions: each one without a stored parent, with all below it.
func treesOf(list []storedSession) (trees [][]storedSession) {
	known := make(map[string]bool)
	below := make(map[string][]storedSession)
	for _, s := range list {
		known[s.id] = true
		below[s.parent] = append(below[s.parent], s)
	}
	placed := make(map[string]bool)
	place := func(root storedSession) {
		var tree []storedSession
		for todo := []storedSession{root}; len(todo) > 0; todo = todo[1:] {
			if s := todo[0]; !placed[s.id] {
				placed[s.id] = true
				tree = append(tree, s)
				todo = append(todo, below[s.id]...)
			}
		}
		if len(tree) > 0 {
			trees = append(trees, tree)
		}
	}
	for _, s := range list {
		if s.parent == "" || !known[s.parent] {
			place(s)
		}
	}
	for _, s := range list {
		place(s) // of a cycle
	}
	return trees
}
