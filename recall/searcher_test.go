package recall

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

var begun = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// randomSession returns records with values for all filters.
func randomSession(v wordMaker, messages int) []furl.Record {
	log := furl.NewLog()
	at := begun.Add(time.Duration(v.IntN(1e6)) * time.Second)
	add := func(by furl.Actor, m *furl.Message) {
		at = at.Add(time.Duration(v.IntN(1e5)) * time.Millisecond)
		m.Seal()
		if _, err := log.Append(log.Head(), at, by, m); err != nil {
			panic(err)
		}
	}
	words := func() string { return v.text(1 + v.IntN(60)) }
	add(furl.Client, &furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindText, Text: words()}}})
	for log.Len() < messages {
		for v.IntN(2) == 0 && log.Len() < messages { // questions and answers
			role := []furl.Role{furl.RoleUser, furl.RoleAssistant}[log.Len()%2]
			add(furl.Client, &furl.Message{Role: role, Blocks: []furl.Block{{Kind: furl.KindText, Text: words() + []string{"", "?", "? Yes."}[v.IntN(3)]}}})
		}
		tool := []string{"Read", "Bash", "Edit"}[v.IntN(3)]
		id := fmt.Sprintf("call_%d", log.Len())
		add(furl.Upstream, &furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{
			{Kind: furl.KindText, Text: words()},
			{Kind: furl.KindCall, ID: id, Name: tool, Args: fmt.Appendf(nil, `{"path":%q,"text":%q}`, v.name(), v.text(5))},
		}})
		add(furl.Client, &furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{
			{Kind: furl.KindResult, ID: id, Text: words(), Error: v.IntN(5) == 0}, {Kind: furl.KindImage},
		}})
	}
	return log.Records(0)
}

func put(t testing.TB, s storage.Store, key furl.SessionKey, records []furl.Record) {
	t.Helper()
	if err := s.Append(t.Context(), key, storage.Batch{Records: records}); err != nil {
		t.Fatal(err)
	}
}

// bareStore is a store without a search index.
type bareStore struct{ storage.Store }

func queries(v wordMaker) []string {
	name := v.name()
	return []string{v.part(), v.part() + " " + v.part(), name, name[1:], strings.ToUpper(name), "tor", "essio", "ain.g", v.part() + " " + v.name() + " ser", "the zebra of " + v.part(), "zzz", ""}
}

func search(t testing.TB, s *Searcher, req Request) []Hit {
	t.Helper()
	res, err := s.Search(t.Context(), req)
	if err != nil {
		t.Fatalf("search %+v: %v", req, err)
	}
	if len(res.Warnings) > 0 {
		t.Fatalf("search %+v: %v", req, res.Warnings)
	}
	return res.Hits
}

// The hits, their order and their scores do not depend on how much of a session
// is indexed, in how many segments, and how often these were merged.
func TestStoreRanksAsIndex(t *testing.T) {
	seeds := uint64(12)
	if RaceDetector {
		seeds = 4
	}
	for seed := range seeds {
		v := wordMaker{rand.New(rand.NewPCG(seed, 3))}
		store := inmem.New()
		key := furl.SessionKey{Session: "one"}
		records := randomSession(v, 20+v.IntN(200))
		var all memorySegment
		for i := range records {
			all.add(&records[i])
		}
		index := &all.index
		x := NewIndexer(store, nil)
		x.maxRecords = furl.Seq(1 + v.IntN(20))
		for rest := records; len(rest) > 0; {
			n := min(1+v.IntN(30), len(rest))
			put(t, store, key, rest[:n])
			rest = rest[n:]
			if len(rest) > 0 || v.IntN(2) == 0 { // with and without a tail
				if err := x.Catchup(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
		}
		checkSegments(t, store, key)
		s := NewSearcher(store, nil)
		for range 10 {
			for _, q := range queries(v) {
				share := 1 + v.IntN(10)
				only := func(p furl.Pos) bool { return (int(p.Msg)*7919+p.Block)%share == 0 }
				want := index.Search(q, 20, only)
				var got []Hit
				for _, f := range search(t, s, Request{Session: "one", Text: q, Limit: 20, Only: func(_ furl.SessionID, p furl.Pos) bool { return only(p) }}) {
					got = append(got, Hit{Pos: f.Pos, Score: f.Score, Exact: f.Exact, Matched: f.Matched})
				}
				if d := cmp.Diff(append([]Hit{}, want...), append([]Hit{}, got...)); d != "" {
					t.Fatalf("seed %d: %q: index and store differ:\n%s", seed, q, d)
				}
			}
		}
	}
}

// checkSegments checks the pages of a session by the rules of merging.
func checkSegments(t *testing.T, s storage.Searchable, key furl.SessionKey) {
	t.Helper()
	all, err := readHeads(t.Context(), s, key, nil)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d sessions, %v", len(all), err)
	}
	for i, seg := range all[0].segments {
		if i > 0 && all[0].segments[i-1].length <= seg.length {
			t.Errorf("segment %d has %d terms, the one before it %d", i, seg.length, all[0].segments[i-1].length)
		}
	}
	if err := readSegments(t.Context(), s, key, all[0].segments); err != nil {
		t.Error(err)
	}
}

// The same for all sessions, compared with a store without an index.
func TestAllSessionsRankAlike(t *testing.T) {
	seeds := uint64(3)
	if RaceDetector {
		seeds = 1
	}
	for seed := range seeds {
		v := wordMaker{rand.New(rand.NewPCG(seed, 4))}
		bare, lazy, eager := inmem.New(), inmem.New(), inmem.New()
		x := NewIndexer(lazy, nil)
		x.maxRecords = 7
		for i := range 12 {
			key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", v.IntN(1e6)))}
			records := randomSession(v, 1+v.IntN(100))
			for _, store := range []storage.Store{bare, lazy, eager} {
				put(t, store, key, records)
			}
			other := furl.SessionKey{Tenant: "other", Session: key.Session}
			put(t, lazy, other, records)
			if i%3 > 0 {
				if err := x.Catchup(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := NewIndexer(eager, nil).CatchupTenant(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			for _, q := range queries(v) {
				req := Request{Text: q, Limit: 15, Offset: v.IntN(3) * 10}
				switch v.IntN(6) {
				case 0:
					req.Tools = []string{"Bash"}
				case 1:
					req.Kinds, req.Roles = []furl.Kind{furl.KindText}, []furl.Role{furl.RoleAssistant}
				case 2:
					req.Since = begun.Add(5e5 * time.Second)
				case 3:
					req.Before, req.Errors = begun.Add(5e5*time.Second), true
				}
				want := search(t, NewSearcher(bareStore{bare}, nil), req)
				for name, store := range map[string]storage.Store{"lazy": lazy, "eager": eager} {
					if d := cmp.Diff(want, search(t, NewSearcher(store, nil), req)); d != "" {
						t.Fatalf("seed %d: %+v: %s differs:\n%s", seed, req, name, d)
					}
				}
				for _, h := range want {
					if req.Tools != nil && h.Tool != "Bash" || req.Errors && !h.Error || h.At.Before(req.Since) ||
						!req.Before.IsZero() && !h.At.Before(req.Before) || req.Kinds != nil && h.Kind != furl.KindText || req.Roles != nil && h.Role != furl.RoleAssistant {
						t.Errorf("%+v found %+v", req, h)
					}
				}
			}
		}
	}
}

func TestSearchUnknownSession(t *testing.T) {
	s := NewSearcher(inmem.New(), nil)
	if _, err := s.Search(t.Context(), Request{Session: "none", Text: "x"}); !errors.Is(err, storage.ErrNoSession) {
		t.Errorf("error %v", err)
	}
	if hits := search(t, s, Request{Text: "x"}); len(hits) != 0 {
		t.Errorf("found %v", hits)
	}
	if _, err := s.Search(canceled(t), Request{Text: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
