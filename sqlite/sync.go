package sqlite

import (
	"context"
	"os"
	"sync"

	lib "modernc.org/sqlite/lib"
)

// With synchronous=FULL, SQLite waits for the disk within the transaction:
// other connections do not see the commit until then, and the next
// transaction waits too. So the writing connection uses synchronous=NORMAL,
// which only writes the log, in order and with checksums, and a separate
// goroutine flushes it to disk. A power loss can then remove only the newest
// commits, and none of those was acknowledged.

// syncer flushes the log to disk for the writer: once for all commits before
// the flush, while the writer continues.
type syncer struct {
	log  *os.File // SQLite's
	sync func(*os.File) error
	done chan struct{}

	mu     sync.Mutex
	wake   sync.Cond
	jobs   []*job // committed, possibly not on disk
	closed bool
}

// newSyncer opens the log of a store's file. A connection must have the file
// open, so that the log exists and is not replaced. SQLite holds no locks on
// the log, so opening and closing it is safe.
func newSyncer(file string, sync func(*os.File) error) (*syncer, error) {
	log, err := os.OpenFile(file+"-wal", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	y := &syncer{log: log, sync: sync, done: make(chan struct{})}
	y.wake.L = &y.mu
	go y.run()
	return y, nil
}

// add completes jobs as soon as their commits are on disk.
func (y *syncer) add(jobs []*job) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.jobs = append(y.jobs, jobs...)
	y.wake.Signal()
}

func (y *syncer) run() {
	defer close(y.done)
	for {
		y.mu.Lock()
		for len(y.jobs) == 0 && !y.closed {
			y.wake.Wait()
		}
		jobs := y.jobs
		y.jobs = nil
		y.mu.Unlock()
		if len(jobs) == 0 {
			return
		}
		err := y.sync(y.log)
		if err != nil {
			err = &explained{cures[lib.SQLITE_IOERR], err}
		}
		for _, j := range jobs {
			if j.err == nil {
				j.err = err
			}
			close(j.done)
		}
	}
}

// close stops the syncer after the jobs that were added.
func (y *syncer) close() error {
	y.mu.Lock()
	y.closed = true
	y.wake.Signal()
	y.mu.Unlock()
	<-y.done
	return y.log.Close()
}

// doEarly is like do, and calls committed as soon as the job is committed.
func (s *Store) doEarly(ctx context.Context, j *job, committed func()) error {
	j.committed = make(chan struct{})
	if err := s.hand(ctx, j); err != nil {
		return err
	}
	select {
	case <-j.committed:
	case <-j.done:
	case <-ctx.Done():
		return ctx.Err() // it may be committed nevertheless
	}
	select {
	case <-j.committed:
		committed()
		<-j.done
	default: // it failed
	}
	return j.err
}
