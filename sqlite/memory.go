package sqlite

import "context"

// idleReaders is how many connections for reading are kept open. As many are
// opened as are read with at once: a limit could let readers wait for one
// another for ever.
const idleReaders = 8

// GiveBack returns what is kept of the file in memory, up to 4 MB for each
// connection that reads and 8 MB for the one that writes. It is for times when
// nothing happens; what is asked for next is read from the file again.
func (s *Store) GiveBack(ctx context.Context) error {
	s.read.SetMaxIdleConns(0) // which closes those that nobody reads with
	s.read.SetMaxIdleConns(idleReaders)
	if s.write == nil {
		return nil
	}
	return s.do(ctx, &job{
		do: func(*writer) error { return nil },
		then: func(w *writer) {
			// What is kept helps, and harms nobody.
			_, _ = w.conn.ExecContext(ctx, "PRAGMA shrink_memory")
		},
	})
}
