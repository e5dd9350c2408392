package recall

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

// pageReads counts the reads of index pages other than heads.
type pageReads struct {
	*inmem.Store
	n int
}

func (s *pageReads) Pages(ctx context.Context, key furl.SessionKey, bucket uint32) iter.Seq2[storage.IndexPage, error] {
	if bucket != bucketHead {
		s.n++
	}
	return s.Store.Pages(ctx, key, bucket)
}

// allPages returns the pages of a session in order.
func allPages(t *testing.T, s storage.Searchable, key furl.SessionKey) (pages []string) {
	t.Helper()
	for bucket := range firstTermBucket(maxLevel + 1) {
		for p, err := range s.Pages(t.Context(), key, bucket) {
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, fmt.Sprintf("%d %d %x", p.Bucket, p.Segment, p.Data))
		}
	}
	return pages
}

// An Indexer that follows sessions does not read again what it has written, and writes the same
// pages as one that knows nothing. Memory that it uses again does not change them either.
func TestIndexerKeepsItsSegments(t *testing.T) {
	follow := func(store storage.Store, index func(key furl.SessionKey, last furl.Seq)) (keys []furl.SessionKey) {
		for i, size := range []int{2000, 300, 4000} {
			key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", i))}
			records := furltest.Session(furltest.SessionOptions{Seed: uint64(i), Messages: 60, MessageBytes: size})
			for chunk := range slices.Chunk(records, 3) {
				put(t, store, key, chunk)
				index(key, chunk[len(chunk)-1].Seq)
			}
			keys = append(keys, key)
		}
		return keys
	}
	plain := inmem.New()
	follow(plain, func(key furl.SessionKey, _ furl.Seq) {
		memorySegments, gramSets = sync.Pool{}, sync.Pool{}
		if err := NewIndexer(plain, nil).Catchup(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	})
	store := &pageReads{Store: inmem.New()}
	x := NewIndexer(store, nil)
	keys := follow(store, func(key furl.SessionKey, last furl.Seq) {
		x.Touch(key, last, gatherBytes)
		list, _ := x.takeTouched(time.Now())
		x.indexTouched(t.Context(), list)
	})
	if store.n > 0 {
		t.Errorf("%d reads of what it has written", store.n)
	}
	split := 0
	for _, key := range keys {
		want, got := allPages(t, plain, key), allPages(t, store, key)
		if !slices.Equal(want, got) {
			t.Errorf("%v has %d other pages than the %d of an indexer that knows nothing", key, len(got), len(want))
		}
		split += len(got)
	}
	if split < 40 {
		t.Errorf("%d pages: all segments are small", split)
	}

	// What was redacted must not come back from memory.
	from := origin{created: time.Now()}
	x.kept.put(keys[0], from, []*segment{{to: 3, isRead: true, head: []byte("h"), vocabulary: []byte("a secret")}})
	for _, other := range []origin{{}, {created: from.created, redactions: 1}, {created: from.created.Add(1)}} {
		list := []*segment{{to: 3, head: []byte("h")}}
		if x.kept.fill(keys[0], other, list); list[0].isRead {
			t.Errorf("segments of %+v are used for %+v", from, other)
		}
	}
	list := []*segment{{to: 3, head: []byte("g")}}
	if x.kept.fill(keys[0], from, list); list[0].isRead {
		t.Error("a segment is used for another one")
	}
}

// What an Indexer keeps is bounded.
func TestKeptSegmentsAreBounded(t *testing.T) {
	var k keptParts
	for i := range 100 {
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint(i))}
		k.put(key, origin{redactions: 1}, []*segment{
			{to: 1, isRead: true, terms: make([]byte, maxKeptSegment+1)}, {to: 2, isRead: true, terms: make([]byte, maxKeptSegment/2)}, {to: 3, isRead: true, packed: true}, {to: 4},
		})
	}
	if want := maxKept / (maxKeptSegment / 2); len(k.sessions) != want || k.size != maxKept {
		t.Errorf("%d sessions of %d bytes, want %d", len(k.sessions), k.size, want)
	}
	newest := furl.SessionKey{Session: "99"}
	if s := k.sessions[newest]; len(s.segments) != 1 || s.segments[0].to != 2 {
		t.Errorf("the newest session has %d segments", len(s.segments))
	}
	if k.put(newest, origin{}, nil); k.size != maxKept-maxKeptSegment/2 {
		t.Errorf("%d bytes after one was dropped", k.size)
	}
}

// The filters have a bit for each gram of the vocabulary and no other.
func TestGramFilters(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	v := wordMaker{rnd}
	for range 30 {
		all := make(map[term]bool)
		for range 1 + rnd.IntN(3000) {
			text := v.name() + []string{"", "é", "Ärger", "\x00\x00\x00\x00\x00", "x"}[rnd.IntN(5)] + fmt.Sprint(rnd.IntN(50))
			all[term{text, rnd.IntN(2) == 0}] = true
		}
		var w vocabularyWriter
		grams := make(map[uint32]bool)
		for _, t := range slices.SortedFunc(maps.Keys(all), term.compare) {
			w.add(t)
			low := t.text
			if isASCII := !strings.ContainsFunc(low, func(r rune) bool { return r > 127 }); t.name || isASCII {
				low = lower(low)
			}
			for i := 0; i+4 <= len(low); i++ {
				grams[binary.LittleEndian.Uint32([]byte(low[i:]))] = true
			}
		}
		got, err := newGramFilters(w.buf)
		if err != nil {
			t.Fatal(err)
		}
		size := 1 << bits.Len(uint(len(grams)/gramFilters))
		var want [gramFilters][]byte
		for i := range want {
			want[i] = make([]byte, size)
		}
		for gram := range grams {
			i, bit := gramBit(gram, size)
			want[i][bit>>3] |= 1 << (bit & 7)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("wrong filters for %d grams of %d terms", len(grams), len(all))
		}
	}
}

// A session with little new text waits longer than one with much, but not forever.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := inmem.New()
		x := NewIndexer(store, &IndexerOptions{Gather: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- x.Run(ctx) }()
		synctest.Wait()
		for name, tt := range map[furl.SessionID]struct {
			bytes int
			after time.Duration
		}{"much": {gatherBytes, time.Second}, "little": {gatherBytes - 1, gatherTimes * time.Second}} {
			key := furl.SessionKey{Session: name}
			put(t, store, key, randomSession(wordMaker{rand.New(rand.NewPCG(1, 3))}, 5))
			x.Touch(key, lastOf(t, store, key), tt.bytes)
			for _, wait := range []struct {
				time.Duration
				indexed bool
			}{{tt.after - time.Millisecond, false}, {2 * time.Millisecond, true}} {
				time.Sleep(wait.Duration)
				synctest.Wait()
				if n, _ := store.Indexed(t.Context(), key); (n > 0) != wait.indexed {
					t.Errorf("a session with %s new is indexed: %v", name, n > 0)
				}
			}
		}
		cancel()
		<-done
	})
}
