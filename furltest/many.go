package furltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// If writers race for one session, one of them gets each place, the others
// get a conflict, and every acknowledged record exists.
func (s *suite) testOneSession(t *testing.T) {
	st, reopen := s.lasting(t)
	ctx := context.Background()
	const writers, each = 8, 12
	var mu sync.Mutex
	won := make(map[furl.Seq]furl.Record)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			next := furl.Seq(1)
			for done := 0; done < each; {
				r := say(next, 1, fmt.Sprint("writer ", w))
				err := st.Append(ctx, key("s"), storage.Batch{Records: r})
				switch {
				case err == nil:
					mu.Lock()
					if _, twice := won[next]; twice {
						t.Errorf("record %d was acknowledged to two writers", next)
					}
					won[next] = r[0]
					mu.Unlock()
					done++
					next++
				case errors.Is(err, furl.ErrConflict):
					next++ // another writer got it
				default:
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	st = reopen()
	want := make([]furl.Record, 0, len(won))
	for seq := furl.Seq(1); int(seq) <= len(won); seq++ {
		want = append(want, won[seq])
	}
	if len(want) != writers*each {
		t.Errorf("%d appends were acknowledged, want %d", len(want), writers*each)
	}
	holds(t, st, key("s"), want)
}

// Writers of different sessions do not disturb each other, nor do failing
// writers, readers and index writers.
func (s *suite) testManySessions(t *testing.T) {
	st, reopen := s.lasting(t)
	ctx, cancel := context.WithCancel(context.Background())
	const writers, each = 10, 30
	index, _ := st.(storage.Searchable)
	var readers, wg sync.WaitGroup
	readers.Go(func() {
		for ctx.Err() == nil {
			for i, err := range st.Sessions(ctx, "", storage.SessionQuery{Limit: 3}) {
				if err != nil {
					break
				}
				got, err := gather(st.Read(ctx, i.SessionKey, 0))
				if ctx.Err() == nil && (err != nil || len(got) < int(i.Records)) {
					t.Errorf("session %s: read %d records, %v; want %d or more", i.Session, len(got), err, i.Records)
				}
			}
		}
	})
	for w := range writers {
		wg.Go(func() {
			k := key(fmt.Sprint("session-", w))
			for i := range furl.Seq(each) {
				must(failing{t}, st.Append(ctx, k, storage.Batch{Records: say(2*i+1, 2, "mine")}))
				if err := st.Append(ctx, k, storage.Batch{Records: say(2*i+1, 1, "not mine")}); !errors.Is(err, furl.ErrConflict) {
					t.Errorf("a conflict among others: %v", err)
				}
				if index != nil {
					w := storage.IndexWrite{After: 2 * i, To: 2*i + 2, Put: []storage.IndexPage{{Bucket: uint32(i % 3), Segment: uint64(i), Data: []byte("page")}}}
					must(failing{t}, index.WriteIndex(ctx, k, w))
				}
			}
		})
	}
	wg.Wait()
	cancel()
	readers.Wait()
	st = reopen()
	for w := range writers {
		holds(t, st, key(fmt.Sprint("session-", w)), say(1, 2*each, "mine"))
	}
}

// failing is a test used from another goroutine, which must not call FailNow.
type failing struct{ *testing.T }

func (f failing) Fatalf(format string, args ...any) { f.T.Helper(); f.Errorf(format, args...) }
