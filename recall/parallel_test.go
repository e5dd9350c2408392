package recall

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

func TestParallel(t *testing.T) {
	for _, goroutines := range []int{0, 1, 3, 50} {
		var did [20]atomic.Int32
		parallel(len(did), goroutines, func(i int) { did[i].Add(1) })
		for i := range did {
			if n := did[i].Load(); n != 1 {
				t.Errorf("%d goroutines: %d was done %d times", goroutines, i, n)
			}
		}
	}
	parallel(0, 4, func(int) { t.Error("called for n = 0") })
}

// failing is a store that cannot read one bucket.
type failing struct {
	*inmem.Store
	bucket uint32
}

var errBucket = errors.New("no bucket")

func (s failing) Pages(ctx context.Context, key furl.SessionKey, bucket uint32) iter.Seq2[storage.IndexPage, error] {
	if bucket == s.bucket {
		return func(yield func(storage.IndexPage, error) bool) { yield(storage.IndexPage{}, errBucket) }
	}
	return s.Store.Pages(ctx, key, bucket)
}

// An error in one of the buckets that are read concurrently is an error of the
// search, and a filter is not called concurrently.
func TestSearchParallel(t *testing.T) {
	v := wordMaker{rand.New(rand.NewPCG(3, 51))}
	store := inmem.New()
	for n := range 3 * minParallelLeaves {
		put(t, store, furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", n))}, randomSession(v, 40))
	}
	if err := NewIndexer(store, nil).CatchupTenant(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	const query = "store session log record append read write open"
	var asked atomic.Int32
	busy := atomic.Bool{}
	req := Request{Text: query, Only: func(furl.SessionID, furl.Pos) bool {
		if !busy.CompareAndSwap(false, true) {
			t.Error("two blocks at a time")
		}
		asked.Add(1)
		busy.Store(false)
		return true
	}}
	if hits := search(t, NewSearcher(store, nil), req); len(hits) != defaultLimit || asked.Load() == 0 {
		t.Errorf("%d hits, asked about %d", len(hits), asked.Load())
	}
	failed := 0
	for level := range uint8(maxLevel + 1) {
		for _, term := range parseQuery(query).terms {
			bucket := termBucket(level, hashTerm(term.text, false))
			_, err := NewSearcher(failing{store, bucket}, nil).Search(t.Context(), Request{Text: query})
			if err != nil {
				failed++
			}
			if err != nil && !errors.Is(err, errBucket) {
				t.Errorf("bucket %d: %v", bucket, err)
			}
		}
	}
	if failed == 0 {
		t.Error("no bucket was read")
	}
}
