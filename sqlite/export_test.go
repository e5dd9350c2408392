package sqlite

import (
	"context"
	"os"
)

// SetMaxPages limits the size of a store's file, to simulate a full disk.
func (o *Options) SetMaxPages(n int) { o.maxPages = n }

// SetDisk makes SQLite access its files through the layer named vfs, and the
// store flush its log with sync.
func (o *Options) SetDisk(vfs string, sync func(*os.File) error) { o.vfs, o.syncFile = vfs, sync }

// Exec runs a statement on the writing connection.
func (s *Store) Exec(query string) error {
	return s.do(context.Background(), &job{do: func(w *writer) error { return w.exec(query) }})
}

// Hold blocks the writer until release is closed, so that all writes
// meanwhile share a transaction. It returns when the writer is blocked.
func (s *Store) Hold(release <-chan struct{}) {
	held := make(chan struct{})
	go s.do(context.Background(), &job{
		do:   func(*writer) error { return nil },
		then: func(*writer) { close(held); <-release },
	})
	<-held
}

// Waiting returns the number of jobs waiting for the writer.
func (s *Store) Waiting() int { return len(s.write.jobs) }

// IdleReaders returns the number of open connections that are not in use.
func (s *Store) IdleReaders() int { return s.read.Stats().Idle }

// LoseDisk makes every flush fail from now on.
func (s *Store) LoseDisk() { s.write.disk.log.Close() }

// OpenFrozen opens a file for reading as if no file could be created next to
// it.
func OpenFrozen(path string) (*Store, error) {
	s, err := Open(path, &Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return s, s.openFrozen()
}
