package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// writer does all writing, on one connection and one goroutine. Jobs that
// wait during a commit share the next transaction.
type writer struct {
	s     *Store
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	disk  *syncer // nil: commits are not flushed

	renamed []storage.Renamed // when the store was opened

	jobs chan *job
	done chan struct{} // closed when the goroutine has ended
	poll atomic.Bool   // whether there are watchers

	// sessions caches session rows, as of version.
	sessions map[furl.SessionKey]*session
	dirty    []*session // those with unwritten changes
	version  int64      // PRAGMA data_version: changes when another process writes
	last     int64      // the time of the newest record
	// leftover means that the log contains bytes of a deleted session.
	leftover bool
}

// job is one write.
type job struct {
	ctx context.Context
	// do writes. It may run again after a rollback.
	do func(w *writer) error
	// then, if set, runs after the commit. The job gets its own transaction.
	then func(w *writer)
	// derived means that the data can be rebuilt, so that the job need not
	// wait for the disk.
	derived bool
	err     error
	// committed, if set, is closed when the job is committed. done is closed
	// when the job has finished: on disk, or failed.
	committed, done chan struct{}
}

// session is a row of the sessions table, as of the current transaction.
type session struct {
	id, tenant               int64
	records, messages, bytes int64
	created, updated         int64
	indexed                  int64
	hint                     []byte // nil: none
	dirty                    bool   // written at the end of the transaction
}

const (
	maxGroup    = 128 // jobs in a transaction
	maxSessions = 10_000
)

// newWriter opens the connection that writes to a store. file is the path of
// its file without links.
func (s *Store) newWriter(file string) (_ *writer, err error) {
	w := &writer{
		s: s, db: s.connect(false), stmts: make(map[string]*sql.Stmt), jobs: make(chan *job, maxGroup),
		done: make(chan struct{}), sessions: make(map[furl.SessionKey]*session),
	}
	defer func() {
		if err != nil {
			if w.conn != nil {
				w.conn.Close()
			}
			w.db.Close()
		}
	}()
	ctx := context.Background()
	if w.conn, err = w.db.Conn(ctx); err != nil {
		return nil, err
	}
	if err := w.layOut(ctx); err != nil {
		return nil, err
	}
	if err := w.useLog(); err != nil {
		return nil, err
	}
	if w.renamed, err = migrate(ctx, w.conn); err != nil {
		return nil, err
	}
	if err := w.refresh(); err != nil {
		return nil, err
	}
	// The clock may have been set back since.
	if err := w.row("SELECT coalesce(max(updated), 0) FROM sessions").Scan(&w.last); err != nil {
		return nil, err
	}
	if s.o.Sync == SyncFull {
		if w.disk, err = newSyncer(file, s.o.syncFile); err != nil {
			return nil, err
		}
	}
	go w.run()
	return w, nil
}

// newPageSize is the page size of new files, in bytes. A step changes a few bytes in most of the
// pages that it writes, so small pages write less: 30 kB for a step of 6 kB, where pages of 4096
// write 47 kB. Existing files keep their size.
const newPageSize = 2048

// logBytes is how long the log grows before SQLite moves it into the file.
const logBytes = 4000 * 4096

// layOut sets how a new file is laid out, and the length of the log. The page size must be first:
// it is fixed once anything is written, and the driver sorts the settings of a DSN by name.
func (w *writer) layOut(ctx context.Context) error {
	if _, err := w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA page_size = %d; PRAGMA auto_vacuum = INCREMENTAL", newPageSize)); err != nil {
		return err
	}
	var size int
	if err := w.conn.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size); err != nil {
		return err
	}
	_, err := w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", logBytes/size))
	return err
}

// useLog switches the file to write-ahead mode. If another process does this
// at the same time, SQLite returns "busy" immediately.
func (w *writer) useLog() error {
	deadline := time.Now().Add(w.s.o.LockTimeout)
	for {
		_, err := w.conn.ExecContext(context.Background(), "PRAGMA journal_mode = WAL")
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// do passes a job to the writer and waits until it has finished.
func (s *Store) do(ctx context.Context, j *job) error {
	if err := s.hand(ctx, j); err != nil {
		return err
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return ctx.Err() // it may be committed nevertheless
	}
}

// hand passes a job to the writer.
func (s *Store) hand(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.write == nil {
		return errReadOnly
	}
	j.ctx, j.done = ctx, make(chan struct{})
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return errClosed
	}
	defer s.mu.RUnlock()
	select {
	case s.write.jobs <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close stops the writer after the submitted jobs.
func (w *writer) close() error {
	close(w.jobs)
	<-w.done
	var err error
	if w.disk != nil {
		err = w.disk.close()
	}
	for _, stmt := range w.stmts {
		stmt.Close()
	}
	return errors.Join(err, w.conn.Close(), w.db.Close())
}

func (w *writer) run() {
	defer close(w.done)
	tick := time.NewTicker(w.s.o.Poll)
	defer tick.Stop()
	for {
		select {
		case j, ok := <-w.jobs:
			if !ok {
				return
			}
			w.group(w.gather(j))
		case <-tick.C:
			if w.leftover {
				w.truncate()
			}
			if w.poll.Load() && w.refresh() != nil {
				// The next write will fail with the error and return it.
				continue
			}
		}
	}
}

// gather collects the waiting jobs that can share a transaction with first.
func (w *writer) gather(first *job) []*job {
	jobs := []*job{first}
	for len(jobs) < maxGroup && jobs[len(jobs)-1].then == nil {
		select {
		case j, ok := <-w.jobs:
			if !ok {
				return jobs
			}
			jobs = append(jobs, j)
		default:
			return jobs
		}
	}
	return jobs
}

// group runs jobs in one transaction. If one of them fails, each job is run
// in its own transaction, so that one failure does not affect the others.
func (w *writer) group(jobs []*job) {
	if last := jobs[len(jobs)-1]; last.then != nil && len(jobs) > 1 {
		w.group(jobs[:len(jobs)-1])
		jobs = jobs[len(jobs)-1:]
	}
	broken, err := w.transaction(jobs)
	if broken && len(jobs) > 1 {
		for _, j := range jobs {
			w.group([]*job{j})
		}
		return
	}
	for _, j := range jobs {
		switch {
		case err != nil:
			j.err = err
		case j.err != nil:
		case j.then != nil:
			j.then(w)
		case j.committed != nil:
			close(j.committed)
		}
	}
	w.end(jobs)
}

// end finishes jobs when they are on disk.
func (w *writer) end(jobs []*job) {
	wait := jobs[:0]
	for _, j := range jobs {
		if w.disk == nil || j.err != nil || j.derived {
			close(j.done)
		} else {
			wait = append(wait, j)
		}
	}
	if len(wait) > 0 {
		w.disk.add(wait)
	}
}

// transaction runs jobs and commits them. broken reports that the error came
// from one of the jobs; otherwise it affects all.
func (w *writer) transaction(jobs []*job) (broken bool, err error) {
	if err := w.begin(); err != nil {
		return false, err
	}
	for _, j := range jobs {
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		j.err = j.do(w)
		if j.err != nil && !isRefusal(j.err) {
			w.rollback()
			return true, j.err
		}
	}
	if err := w.flush(); err != nil {
		w.rollback()
		return false, err
	}
	if err := w.exec("COMMIT"); err != nil {
		w.rollback()
		return false, err
	}
	if len(w.sessions) > maxSessions {
		clear(w.sessions)
	}
	return false, nil
}

func (w *writer) begin() error {
	if err := w.s.inPlace(); err != nil {
		return err
	}
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := w.refresh(); err != nil {
		w.rollback()
		return err
	}
	return nil
}

func (w *writer) rollback() {
	clear(w.sessions)
	w.dirty = w.dirty[:0]
	_ = w.exec("ROLLBACK") // SQLite may have rolled back already
}

// refresh detects writes of other processes: it then drops the cached
// sessions and notifies the watchers.
func (w *writer) refresh() error {
	var version int64
	if err := w.row("PRAGMA data_version").Scan(&version); err != nil {
		return err
	}
	if version == w.version {
		return nil
	}
	clear(w.sessions)
	if w.version != 0 {
		w.s.watchers.notifyAll()
	}
	w.version = version
	return nil
}

// tick returns the time for a record: now, and later than all times before.
func (w *writer) tick() int64 {
	w.last = max(w.last+1, time.Now().UnixNano())
	return w.last
}

// stmt returns the statement of a query, prepared once.
func (w *writer) stmt(query string) (*sql.Stmt, error) {
	if stmt, ok := w.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(context.Background(), query)
	if err == nil {
		w.stmts[query] = stmt
	}
	return stmt, err
}

func (w *writer) exec(query string, args ...any) error {
	_, err := w.result(query, args...)
	return err
}

func (w *writer) result(query string, args ...any) (driver.Result, error) {
	stmt, err := w.stmt(query)
	if err != nil {
		return nil, err
	}
	return stmt.Exec(args...)
}

// row queries one row.
func (w *writer) row(query string, args ...any) scanner {
	stmt, err := w.stmt(query)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRow(args...)
}

type scanner interface{ Scan(dest ...any) error }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// session finds a session, nil if it does not exist.
func (w *writer) session(key furl.SessionKey) (*session, error) {
	if ses, ok := w.sessions[key]; ok {
		return ses, nil
	}
	ses := &session{}
	err := w.row(`SELECT s.id, s.tenant, s.records, s.messages, s.bytes, s.created, s.updated, s.indexed, s.hint
		FROM tenants t JOIN sessions s ON s.tenant = t.id WHERE t.name = ? AND s.name = ?`, []byte(key.Tenant), string(key.Session)).
		Scan(&ses.id, &ses.tenant, &ses.records, &ses.messages, &ses.bytes, &ses.created, &ses.updated, &ses.indexed, &ses.hint)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.sessions[key] = ses
	return ses, nil
}

// existing finds a session that must exist.
func (w *writer) existing(key furl.SessionKey) (*session, error) {
	ses, err := w.session(key)
	if err == nil && ses == nil {
		return nil, noSession(key.Session)
	}
	return ses, err
}

// create creates a session, and its tenant if it is the first session.
func (w *writer) create(key furl.SessionKey, at int64) (*session, error) {
	ses := &session{created: at, updated: at}
	err := w.row("SELECT id FROM tenants WHERE name = ?", []byte(key.Tenant)).Scan(&ses.tenant)
	if errors.Is(err, sql.ErrNoRows) {
		var res driver.Result
		if res, err = w.result("INSERT INTO tenants (name) VALUES (?)", []byte(key.Tenant)); err == nil {
			ses.tenant, err = res.LastInsertId()
		}
	}
	if err != nil {
		return nil, err
	}
	res, err := w.result("INSERT INTO sessions (tenant, name, records, messages, bytes, created, updated) VALUES (?, ?, 0, 0, 0, ?, ?)",
		ses.tenant, string(key.Session), at, at)
	if err != nil {
		return nil, err
	}
	if ses.id, err = res.LastInsertId(); err != nil {
		return nil, err
	}
	w.sessions[key] = ses
	return ses, nil
}

// flush writes the rows of changed sessions, once for all appends of the
// transaction.
func (w *writer) flush() error {
	for _, ses := range w.dirty {
		ses.dirty = false
		err := w.exec("UPDATE sessions SET records = ?, messages = ?, bytes = ?, updated = ?, indexed = ? WHERE id = ?",
			ses.records, ses.messages, ses.bytes, ses.updated, ses.indexed, ses.id)
		if err != nil {
			return err
		}
	}
	w.dirty = w.dirty[:0]
	return nil
}

func (w *writer) touch(ses *session) {
	if !ses.dirty {
		ses.dirty = true
		w.dirty = append(w.dirty, ses)
	}
}
