package open

import (
	"context"

	"github.com/furlhq/furl/storage"
)

// stagedAppend is the append of a change, which the store prepares on another goroutine.
type stagedAppend struct {
	batch *storage.Batch
	meta  storage.Meta // of the session at that time
	done  chan struct{}
	ready storage.Staged // set before done is closed; nil: the store could not prepare it
}

// maxStaged is the largest batch that is prepared, by the bytes of its messages: the memory of
// what waits for providers is not reserved. Only first requests of long histories are larger.
const maxStaged = 4 << 20

// Stage has the store encode and compress the records of the request, while the caller waits
// for the provider. The store holds nothing and writes nothing until Commit.
func (d *Prepared) Stage(ctx context.Context) {
	s := d.s
	store, ok := s.all.store.(storage.Stager)
	if !ok || len(d.records) == 0 || d.staged != nil || sizeOf(d.records) > maxStaged {
		return
	}
	s.mu.Lock()
	a := &stagedAppend{batch: s.batchOf(d.Change), meta: s.meta.Clone(), done: make(chan struct{})}
	s.mu.Unlock()
	d.staged = a
	go func() {
		defer close(a.done)
		defer func() {
			if recover() != nil { // the append panics, too, and says so
				a.ready = nil
			}
		}()
		ready, err := store.Stage(ctx, s.key, *a.batch)
		if err == nil { // otherwise the append has the same error
			a.ready = ready
		}
	}()
}

// wait returns what the store has prepared, nil if there is none.
func (a *stagedAppend) wait() storage.Staged {
	if a == nil {
		return nil
	}
	<-a.done
	return a.ready
}
