package sqlite

import (
	"context"
	"os"
)

// SetMaxPages limits the size of a store's file, as a full disk does.
func (o *Options) SetMaxPages(n int) { o.maxPages = n }

// SetDisk has SQLite reach its files through the layer named vfs, and the store
// flush its log by sync.
func (o *Options) SetDisk(vfs string, sync func(*os.File) error) { o.vfs, o.syncFile = vfs, sync }

// Exec runs a statement on the writing connection.
func (s *Store) Exec(query string) error {
	return s.do(context.Background(), &job{do: func(w *writer) error { return w.exec(query) }})
}

// Hold keeps the writer busy until release is closed, so that what is written
// meanwhile shares a transaction. It returns when the writer is held.
func (s *Store) Hold(release <-chan struct{}) {
	held := make(chan struct{})
	go s.do(context.Background(), &job{
		do:   func(*writer) error { return nil },
		then: func(*writer) { close(held); <-release },
	})
	<-held
}

// Waiting is how many jobs the writer has before it.
func (s *Store) Waiting() int { return len(s.write.jobs) }

// IdleReaders is how many connections are open that nobody reads with.
func (s *Store) IdleReaders() int { return s.read.Stats().Idle }

// LoseDisk has every wait for the disk fail from now on.
func (s *Store) LoseDisk() { s.write.disk.log.Close() }

// OpenFrozen opens a file for reading as if no file could be made beside it.
func OpenFrozen(path string) (*Store, error) {
	s, err := Open(path, &Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return s, s.openFrozen()
}
