package sqlite

import (
	"context"
	"os"
	"sync"

	lib "modernc.org/sqlite/lib"
)

// SQLite's own way to wait for the disk (synchronous=FULL) waits within the
// transaction: nobody sees what is committed before that, and the next
// transaction waits too. So the connection that writes has synchronous=NORMAL,
// by which the log is only written, in order and with checksums, and the disk
// is waited for behind it. What is lost with the power is then what was
// committed last, and nobody was told that it is safe.

// syncer waits for the disk behind the writer: once for all that was committed
// before it began, while the writer goes on.
type syncer struct {
	log  *os.File // SQLite's
	sync func(*os.File) error
	done chan struct{}

	mu     sync.Mutex
	wake   sync.Cond
	jobs   []*job // committed, and perhaps not on the disk
	closed bool
}

// newSyncer opens the log of a store's file that a connection has open, so that
// the log is there and stays the same. SQLite holds no locks on it, so that it may
// be opened and closed.
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

// add has jobs done as soon as what they have committed is on the disk.
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

// close ends the syncer after what was handed to it.
func (y *syncer) close() error {
	y.mu.Lock()
	y.closed = true
	y.wake.Signal()
	y.mu.Unlock()
	<-y.done
	return y.log.Close()
}

// doEarly is do that calls committed as soon as the job is.
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
	default: // it has failed
	}
	return j.err
}
