package search

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/procstat"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

var (
	scaleMessages = flag.Int("messages", 20_000, "messages in the store of BenchmarkRecallScale")
	scaleSession  = flag.Int("session-messages", 1000, "messages in one of its sessions")
	scaleSearches = flag.Int("searches", 200, "searches of each kind")
	scaleStore    = flag.String("store", "", "file of the store, made if it is not there; \"\": a new one each time")
)

// talk makes up messages of about a kilobyte: prose by Zipf's law, identifiers
// and paths that belong to the session, and some that all sessions share.
type talk struct {
	*rand.Rand
	words *rand.Zipf
}

func newTalk(seed uint64) *talk {
	r := rand.New(rand.NewPCG(seed, 11))
	return &talk{r, rand.NewZipf(r, 1.07, 8, 60_000)}
}

// word spells a number.
func word(n uint64) string {
	var b strings.Builder
	for n += 20; n > 0; n /= 80 {
		b.WriteByte("bcdfghklmnprstvz"[n%16])
		b.WriteByte("aeiou"[n/16%5])
	}
	return b.String()
}

func (t *talk) path(session int) string {
	return fmt.Sprintf("internal/%s/%s_%s.go", word(uint64(session%97)), word(uint64(session)), word(t.Uint64N(60)))
}

func (t *talk) ident(session int) string {
	w := word(uint64(session*31) + t.Uint64N(400))
	return word(t.Uint64N(300)) + strings.ToUpper(w[:1]) + w[1:]
}

func (t *talk) message(session int) string {
	var b strings.Builder
	for b.Len() < 1000 {
		switch t.IntN(14) {
		case 0:
			b.WriteString(t.path(session))
		case 1:
			b.WriteString(t.ident(session))
		case 2:
			b.WriteString("error")
		default:
			b.WriteString(word(t.words.Uint64()))
		}
		b.WriteByte(" \n"[t.IntN(15)/14])
	}
	return b.String()
}

func (t *talk) session(n, messages int) storage.Batch {
	at := time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)
	batch := storage.Batch{Records: make([]furl.Record, messages)}
	for i := range batch.Records {
		m := furl.TextMessage([]furl.Role{furl.RoleUser, furl.RoleAssistant}[i%2], t.message(n))
		batch.Records[i] = furl.Record{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), At: at.Add(time.Duration(i) * time.Second), Body: m}
	}
	return batch
}

func scaleKey(n int) furl.SessionKey {
	return furl.SessionKey{Session: furl.SessionID(fmt.Sprintf("session-%06d", n))}
}

// fill makes the store, and says how fast the index is made and how large.
func fill(b *testing.B, store interface {
	storage.Store
	storage.Checker
}, sessions int) {
	t := newTalk(1)
	indexer := recall.NewIndexer(store, nil)
	var text int64
	var indexing time.Duration
	for n := range sessions {
		batch := t.session(n, *scaleSession)
		for i := range batch.Records {
			text += int64(len(batch.Records[i].Body.(*furl.Message).Blocks[0].Text))
		}
		if err := store.Append(b.Context(), scaleKey(n), batch); err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		if err := indexer.Catchup(b.Context(), scaleKey(n)); err != nil {
			b.Fatal(err)
		}
		indexing += time.Since(begun)
	}
	stats, err := store.Stats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d messages, %.0f MB of text in %d sessions: indexed at %.1f MB/s; pages %.2f, bodies %.2f, all %.2f of the text",
		sessions**scaleSession, float64(text)/1e6, sessions, float64(text)/1e6/indexing.Seconds(),
		float64(stats.Index)/float64(text), float64(stats.Bodies)/float64(text), float64(stats.Total)/float64(text))
}

// kind is a kind of searches.
type kind struct {
	name string
	text func(session int) string
}

func newKinds(t *talk) []kind {
	return []kind{
		{"frequent", func(int) string { return "error" }},
		{"rare", func(s int) string { return word(50_000 + t.Uint64N(10_000)) }},
		{"identifier", func(s int) string { return t.ident(s) }},
		{"path", func(s int) string { return t.path(s) }},
		{"question", func(s int) string {
			return "why did " + word(t.Uint64N(40)) + " " + word(t.Uint64N(4000)) + " give an error in " + t.ident(s)
		}},
		{"piece", func(s int) string { return t.ident(s)[1:] }},
	}
}

// BenchmarkRecallScale searches a large store, in one session and in all. Its
// flags say how large: go test -bench RecallScale -messages 1000000.
func BenchmarkRecallScale(b *testing.B) {
	path := *scaleStore
	if path == "" {
		path = filepath.Join(b.TempDir(), "furl.db")
	}
	_, missing := os.Stat(path)
	store, err := sqlite.Open(path, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	sessions := max(*scaleMessages / *scaleSession, 1)
	if missing != nil {
		fill(b, store, sessions)
	}
	t := newTalk(2)
	kinds := newKinds(t)
	s := recall.NewSearcher(store, nil)
	for _, scope := range []string{"session", "all"} {
		for _, k := range kinds {
			b.Run(scope+"/"+k.name, func(b *testing.B) {
				var times []time.Duration
				cpu := procstat.Read().CPU
				for b.Loop() {
					for range *scaleSearches {
						n := t.IntN(sessions)
						req := recall.Request{Text: k.text(n), Limit: 10}
						if scope == "session" {
							req.Session = scaleKey(n).Session
						}
						begun := time.Now()
						if _, err := s.Search(b.Context(), req); err != nil {
							b.Fatal(err)
						}
						times = append(times, time.Since(begun))
					}
				}
				cpu = procstat.Read().CPU - cpu
				report(b, times)
				b.ReportMetric(float64(cpu.Microseconds())/1000/float64(len(times)), "cpu-ms")
			})
		}
	}
}
