package transcript

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// stored reads a session's log from a store.
func stored(t *testing.T, store storage.Store, key furl.SessionKey) *furl.Log {
	t.Helper()
	var records []furl.Record
	for r, err := range store.Read(context.Background(), key, 0) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	log := furl.NewLog()
	if err := log.Load(records); err != nil {
		t.Fatal(err)
	}
	return log
}

// A session that is exported from one store and imported into another is the
// same there, for each pair of stores: rewinds, restorations and reads give
// the same bytes, for reductions of every stage.
func TestMoveBetweenStoresX2(t *testing.T) {
	stages := make(map[string]bool)
	open := map[string]func(t *testing.T) storage.Store{
		"inmem": func(*testing.T) storage.Store { return inmem.New() },
		"sqlite": func(t *testing.T) storage.Store {
			s, err := sqlite.Open(filepath.Join(t.TempDir(), "furl.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		"postgres": func(t *testing.T) storage.Store {
			s, err := postgres.Open(t.Context(), pgtest.URL(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
	for _, from := range []string{"inmem", "sqlite", "postgres"} {
		for _, to := range []string{"inmem", "sqlite", "postgres"} {
			t.Run(from+" to "+to, func(t *testing.T) {
				a, b := open[from](t), open[to](t)
				defer a.Close()
				defer b.Close()
				checkMoves(t, a, b, stages)
			})
		}
	}
	for _, stage := range []string{"clip", "compact", "evict", "extract", "forget", "mask", "shorten", "truncate"} {
		if !stages[stage] {
			t.Errorf("no reduction of stage %s was moved", stage)
		}
	}
}

// checkMoves moves sessions from one store to the other and records the
// stages of their reductions.
func checkMoves(t *testing.T, from, to storage.Store, stages map[string]bool) {
	t.Helper()
	ctx := context.Background()
	for seed := range uint64(6) {
		wire := []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}[seed%3]
		s := randomSession(t, wire, 100+seed, 50)
		hide(t, s.Log, []policy.Stage{&policy.Clip{MaxTokens: 20, Newest: true}, &policy.Evict{Target: 0.5, KeepMessages: 3}}[seed%2])
		for _, r := range s.Log.Records(0) {
			if red, ok := r.Body.(*furl.Reduction); ok {
				stages[red.Stage] = true
			}
		}
		key := furl.SessionKey{Tenant: "a", Session: furl.SessionID(rand.Text())}
		if err := from.Append(ctx, key, storage.Batch{Records: s.Log.Records(0), Meta: &s.Meta}); err != nil {
			t.Fatal(err)
		}
		data, _ := export(t, "furl", &Session{ID: s.ID, Meta: s.Meta, Wire: wire, Log: stored(t, from, key)}, nil)
		rec, err := Read("moved", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		moved := rec.Sessions[0]
		there := furl.SessionKey{Tenant: "b", Session: key.Session}
		if err := to.Append(ctx, there, storage.Batch{Records: moved.Log.Records(0), Meta: &moved.Meta}); err != nil {
			t.Fatal(err)
		}
		checkSameReads(t, from, key, to, there)
		checkSameLife(t, seed, stored(t, from, key), stored(t, to, there))
	}
}

// hide applies a stage that the presets rarely use in random sessions.
func hide(t *testing.T, log *furl.Log, stage policy.Stage) {
	t.Helper()
	v := log.State().View(furl.Model{})
	p := policy.Pipeline{NoBackstop: true, Stages: []policy.Stage{stage}}
	plan, err := p.Plan(t.Context(), log.State(), furl.Budget{Counter: byteCounter{}, Size: v.Tokens, Window: max(1, v.Tokens)})
	if err != nil {
		t.Fatal(err)
	}
	for _, red := range plan.Reductions {
		if _, err := log.Append(log.Head(), time.Unix(1_800_000_000, 0).UTC(), furl.Furl, red); err != nil {
			t.Fatal(err)
		}
	}
}

// checkSameReads compares the messages of two sessions, block by block.
func checkSameReads(t *testing.T, from storage.Store, key furl.SessionKey, to storage.Store, there furl.SessionKey) {
	t.Helper()
	copied := stored(t, to, there)
	for _, r := range stored(t, from, key).Records(0) {
		want, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		got, ok := copied.At(r.Seq).Body.(*furl.Message)
		if !ok || !bytes.Equal(got.Raw, want.Raw) || len(got.Blocks) != len(want.Blocks) {
			t.Fatalf("message %d differs:\n%s\n%s", r.Seq, got.Raw, want.Raw)
		}
		for i := range want.Blocks {
			if got.Blocks[i].Text != want.Blocks[i].Text || !bytes.Equal(got.Blocks[i].Args, want.Blocks[i].Args) {
				t.Fatalf("block %d of message %d differs:\n%+v\n%+v", i, r.Seq, got.Blocks[i], want.Blocks[i])
			}
		}
	}
}

// checkSameLife applies the same operations to two logs and checks that they
// stay equal.
func checkSameLife(t *testing.T, seed uint64, a, b *furl.Log) {
	t.Helper()
	rng := mathrand.New(mathrand.NewPCG(5, seed))
	for i := range 30 {
		if !slices.Equal(encoded(t, a), encoded(t, b)) {
			t.Fatalf("seed %d: the logs differ after %d steps", seed, i)
		}
		if x, y := shownBytes(t, a), shownBytes(t, b); x != y {
			t.Fatalf("seed %d: the views differ after %d steps:\n%s\n%s", seed, i, x, y)
		}
		at, n := time.Unix(int64(i), 0).UTC(), rng.IntN(a.Len())
		for _, log := range []*furl.Log{a, b} {
			if i%2 == 0 {
				if _, err := log.Rewind(furl.Seq(n+1), at, furl.Person); err != nil {
					t.Fatal(err)
				}
				continue
			}
			for red := range log.State().Reductions() {
				if !red.Undone {
					_, _ = log.Append(log.Head(), at, furl.Person, &furl.Restoration{Of: red.Seq, Hold: furl.Keep})
					break
				}
			}
		}
	}
}

// shownBytes is the view of a log as each message is sent.
func shownBytes(t *testing.T, log *furl.Log) string {
	t.Helper()
	var out bytes.Buffer
	v := log.State().View(furl.Model{Thinking: furl.Thinking{Binds: true}})
	for i := range v.Messages {
		raws, err := codecOf(v.Messages[i].Msg.Format).EncodeMessage(v.Messages[i])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%d %d %s\n", v.Messages[i].Seq, v.Messages[i].By, raws)
	}
	return out.String()
}
