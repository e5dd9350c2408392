package recall_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/fidelity"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// alike holds the same sessions in every kind of store.
type alike []*onStore

type onStore struct {
	name     string
	store    storage.Store
	sessions *session.Sessions
	indexer  *recall.Indexer
}

func openAlike(t *testing.T) alike {
	var all alike
	add := func(name string, store storage.Store, err error) {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
		s, err := session.New(store, &session.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &onStore{name, store, s, recall.NewIndexer(store, nil)})
	}
	add("inmem", inmem.New(), nil)
	lite, err := sqlite.Open(filepath.Join(t.TempDir(), "furl.db"), nil)
	add("sqlite", lite, err)
	server, err := postgres.Open(t.Context(), pgtest.URL(t), nil)
	add("postgres", server, err)
	divided, err := postgres.Open(t.Context(), pgtest.URL(t), &postgres.Options{Partitions: 3})
	add("postgres, divided", divided, err)
	return all
}

func (all alike) each(t *testing.T, what string, do func(s *onStore) error) {
	t.Helper()
	for _, s := range all {
		if err := do(s); err != nil {
			t.Fatalf("%s on %s: %v", what, s.name, err)
		}
	}
}

func (all alike) append(t *testing.T, key furl.SessionKey, records []furl.Record) {
	t.Helper()
	all.each(t, "append", func(s *onStore) error { return s.store.Append(t.Context(), key, storage.Batch{Records: records}) })
}

// search returns what every store finds. The hits must be equal, scores and
// excerpts included.
func (all alike) search(t *testing.T, id furl.SessionID, query string, o session.SearchOptions) []session.Hit {
	t.Helper()
	var want []session.Hit
	all.each(t, "search", func(s *onStore) error {
		var got []session.Hit
		var err error
		if id == "" {
			got, err = s.sessions.Search(t.Context(), query, o)
		} else {
			var one *session.Session
			if one, err = s.sessions.Open(t.Context(), id); err == nil {
				got, err = one.Search(t.Context(), query, o)
			}
		}
		if s == all[0] {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q in session %q, %+v: %s differs from %s:\n%s", query, id, o, s.name, all[0].name, diff)
		}
		return err
	})
	return want
}

// queryFrom makes a query from a text: a name, words, or part of a word.
func queryFrom(r *rand.Rand, text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return "nothing"
	}
	from := r.IntN(len(words))
	switch r.IntN(4) {
	case 0:
		return strings.Join(words[from:min(from+1+r.IntN(6), len(words))], " ")
	case 1: // part of a word
		w := []rune(words[from])
		at := r.IntN(len(w))
		return string(w[at:min(at+3+r.IntN(6), len(w))])
	case 2:
		return "why is " + words[from] + " about " + words[r.IntN(len(words))]
	}
	return words[from]
}

func textOf(r *furl.Record) string {
	var texts []string
	if m, ok := r.Body.(*furl.Message); ok {
		for i := range m.Blocks {
			texts = slices.AppendSeq(texts, m.Blocks[i].Texts())
		}
	}
	return strings.Join(texts, " ")
}

// After any sequence of appends, indexing, restorations and deletions, a search
// finds the same in every store: the same hits in the same order, with the same
// scores and excerpts. (R4)
func TestStoresFindAlike(t *testing.T) {
	all := openAlike(t)
	r := rand.New(rand.NewPCG(1, 41))
	rest := make(map[furl.SessionID][]furl.Record)
	var ids []furl.SessionID
	var texts []string
	for n := range 14 {
		id := furl.SessionID(fmt.Sprint("s", n*7919%100))
		ids = append(ids, id)
		rest[id] = furltest.Session(furltest.SessionOptions{
			Seed: uint64(n % 12), Messages: 10 + r.IntN(50), MessageBytes: 300, Reductions: true, Exchanges: n%2 == 0,
			Start: time.Date(2026, 1, 1+r.IntN(5), 0, 0, 0, 0, time.UTC),
		})
		for i := range rest[id] {
			texts = append(texts, textOf(&rest[id][i]))
		}
	}
	found, hidden, deleted := 0, 0, 0
	steps := 110
	if recall.RaceDetector {
		steps = 70
	}
	for step := range steps {
		id := ids[r.IntN(len(ids))]
		key := furl.SessionKey{Session: id}
		_, err := all[0].store.(storage.Searchable).Indexed(t.Context(), key)
		switch exists := err == nil; {
		case len(rest[id]) > 0 && r.IntN(3) > 0:
			some := rest[id][:min(len(rest[id]), 1+r.IntN(30))]
			rest[id] = rest[id][len(some):]
			all.append(t, key, some)
		case !exists:
		case r.IntN(3) == 0: // other sessions are not indexed yet
			all.each(t, "index", func(s *onStore) error { return s.indexer.Catchup(t.Context(), key) })
		case r.IntN(40) == 0:
			deleted++
			all.each(t, "delete", func(s *onStore) error { return s.sessions.Delete(t.Context(), id) })
			rest[id] = nil
		case len(rest[id]) == 0 && r.IntN(2) == 0:
			all.each(t, "restore", func(s *onStore) error {
				one, err := s.sessions.Open(t.Context(), id)
				if err != nil {
					return err
				}
				for _, red := range one.Reductions() {
					if _, err := one.Restore(t.Context(), session.RestoreOptions{Reduction: red.Seq}); err == nil {
						break
					}
				}
				return nil
			})
		}
		query := queryFrom(r, texts[r.IntN(len(texts))])
		o := session.SearchOptions{Limit: 1 + r.IntN(12)}
		if r.IntN(4) == 0 {
			o.Tools = []string{"Bash", "Read"}
		}
		if step%2 == 0 {
			found += len(all.search(t, "", query, o))
			continue
		}
		if _, err := all[0].store.(storage.Searchable).Indexed(t.Context(), key); err == nil {
			o.Scope = session.Scope(r.IntN(6))
			n := len(all.search(t, id, query, o))
			if o.Scope == session.Hidden || o.Scope == 0 {
				hidden += n
			}
		}
	}
	if found < steps/2 || hidden < 5 || deleted == 0 {
		t.Errorf("%d hits in all sessions, %d hidden ones, %d sessions deleted: too few for a test", found, hidden, deleted)
	}
}

// usedAgain lists the lines and the names of earlier messages that the replies
// of a session repeat.
func usedAgain(log *furl.Log) (texts []string) {
	var tracker fidelity.Tracker
	for _, r := range log.Path(log.Head()) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		if m.Role == furl.RoleAssistant {
			reply := tracker.Reply(m)
			for _, line := range reply.Lines {
				texts = append(texts, line.Text)
			}
			for _, ref := range reply.Refs {
				texts = append(texts, ref.Name)
			}
		}
		tracker.Add(m)
	}
	return texts
}

// The same holds for recorded sessions, when searching for what their agents
// used again.
func TestStoresFindAlikeInRecordings(t *testing.T) {
	all := openAlike(t)
	var questions []string
	r := rand.New(rand.NewPCG(2, 41))
	files := recordings.Files(t, "entire-cli/*.jsonl.gz")
	if recall.RaceDetector {
		files = files[:len(files)/2]
	}
	for i, file := range files {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for j, s := range rec.Sessions {
			if records := s.Log.Records(0); len(records) < 400 { // longer ones only take longer
				key := furl.SessionKey{Session: furl.SessionID(fmt.Sprintf("r%d-%d", i, j))}
				all.append(t, key, records)
				if i%3 > 0 {
					all.each(t, "index", func(s *onStore) error { return s.indexer.Catchup(t.Context(), key) })
				}
				questions = append(questions, usedAgain(s.Log)...)
			}
		}
	}
	if len(questions) < 20 {
		t.Fatalf("%d questions", len(questions))
	}
	found, searches := 0, 30
	if recall.RaceDetector {
		searches = 8
	}
	for range searches {
		found += len(all.search(t, "", questions[r.IntN(len(questions))], session.SearchOptions{Limit: 10}))
	}
	if found < 2*searches {
		t.Errorf("%d hits", found)
	}
}
