package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// DeleteMany implements storage.ManyDeleter: like Delete, but the file is read
// once for all sessions. Each session is deleted in its own transaction, so
// that appends continue meanwhile. The bytes of deleted sessions are
// overwritten even if another session could not be deleted.
func (s *Store) DeleteMany(ctx context.Context, keys []furl.SessionKey) error {
	var failed error
	gone := 0
	for _, key := range keys {
		err := s.do(ctx, &job{do: func(w *writer) error { return w.delete(key) }})
		if errors.Is(err, storage.ErrNoSession) {
			continue
		}
		if err != nil {
			failed = s.failed(fmt.Sprintf("delete session %.140q", key.Session), err)
			break
		}
		gone++
		s.watchers.notify(key)
	}
	if gone == 0 {
		return failed
	}
	nothing := func(*writer) error { return nil }
	err := s.do(ctx, &job{do: nothing, then: (*writer).shrink})
	if err == nil {
		err = s.sweep(ctx)
	}
	if err == nil {
		err = s.do(ctx, &job{do: nothing, then: (*writer).truncate})
	}
	if err != nil {
		err = s.failed(fmt.Sprintf("%d sessions were deleted; overwrite their remaining bytes", gone), err)
	}
	return errors.Join(failed, err)
}
