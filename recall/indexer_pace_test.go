package recall

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

// slowList is a store with so many sessions that a list of them takes a second.
type slowList struct {
	*inmem.Store
	lists int
}

func (s *slowList) Unindexed(ctx context.Context, tenant furl.Tenant) iter.Seq2[storage.SessionInfo, error] {
	time.Sleep(time.Second)
	s.lists++
	return s.Store.Unindexed(ctx, tenant)
}

// However large the store, an Indexer that is touched all the time lists its sessions
// for at most a tenth of the time.
func TestListsOfALargeStoreAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowList{Store: inmem.New()}
		defer store.Close()
		x := NewIndexer(store, &IndexerOptions{Interval: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = x.Run(ctx)
		}()
		for ctx.Err() == nil {
			x.Touch(furl.SessionKey{Session: "s"}, 1, 1<<20)
			time.Sleep(100 * time.Millisecond)
		}
		<-done
		if store.lists < 10 || store.lists > 60 {
			t.Errorf("%d lists of a second in ten minutes", store.lists)
		}
	})
}
