package sqlite

import "context"

// idleReaders is how many idle connections for reading are kept open. The
// number of open connections is not limited: with a limit, readers could wait
// for each other for ever.
const idleReaders = 8

// GiveBack frees the page caches: up to 4 MB for each reading connection and
// 8 MB for the writing one. Call it when the store is idle; the next reads
// use the file again.
func (s *Store) GiveBack(ctx context.Context) error {
	s.read.SetMaxIdleConns(0) // closes the connections that are not in use
	s.read.SetMaxIdleConns(idleReaders)
	if s.write == nil {
		return nil
	}
	return s.do(ctx, &job{
		do: func(*writer) error { return nil },
		then: func(w *writer) {
			// A failure does no harm.
			_, _ = w.conn.ExecContext(ctx, "PRAGMA shrink_memory")
		},
	})
}
