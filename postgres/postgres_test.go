package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// open opens a store in a new database.
func open(t testing.TB, o *Options) *Store {
	t.Helper()
	return reopen(t, pgtest.URL(t), o)
}

func reopen(t testing.TB, url string, o *Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// talk makes n records of a conversation, with texts of about size bytes.
func talk(t testing.TB, name string, n, size int) []furl.Record {
	t.Helper()
	log, at := furl.NewLog(), time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)
	for i := range n {
		role := furl.RoleUser
		if i%2 == 1 {
			role = furl.RoleAssistant
		}
		d := furl.DigestOf(fmt.Appendf(nil, "%s %d", name, i))
		noise := make([]byte, max(0, size-20)/2) // half of the size in hex
		_, _ = rand.NewChaCha8(d).Read(noise)
		text := fmt.Sprintf("%s %d %x", name, i, noise)
		m := furl.TextMessage(role, text)
		raw, err := json.Marshal(map[string]any{"role": role, "content": text})
		if err != nil {
			t.Fatal(err)
		}
		m.Raw, m.Format = raw, furl.FormatAnthropic
		m.Blocks[0].End = len(raw)
		m.Seal()
		if _, err := log.Append(log.Head(), at.Add(time.Duration(i)*time.Second), furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	return log.Records(0)
}

func read(t testing.TB, s storage.Store, key furl.SessionKey, after furl.Seq) []furl.Record {
	t.Helper()
	var records []furl.Record
	for r, err := range s.Read(t.Context(), key, after) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

// encoded is a record as a store keeps it.
func encoded(t testing.TB, r furl.Record) string {
	t.Helper()
	head, body, err := record.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(head) + string(body)
}

// healthy fails the test for every problem that a check finds.
func healthy(t testing.TB, s *Store) {
	t.Helper()
	for p, err := range s.Check(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("check: %s %d: %s", p.Session.Session, p.Seq, p.Text)
	}
}

func appendAll(t testing.TB, s storage.Store, key furl.SessionKey, records []furl.Record) {
	t.Helper()
	if err := s.Append(t.Context(), key, storage.Batch{Records: records}); err != nil {
		t.Fatal(err)
	}
}

// If several processes open an empty database at once, its tables are created
// once.
func TestOpenAtOnce(t *testing.T) {
	url := pgtest.URL(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s, err := Open(t.Context(), url, nil)
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", i))}
			if err := s.Append(t.Context(), key, storage.Batch{Records: talk(t, "x", 1, 10)}); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s := reopen(t, url, nil)
	n := 0
	for range s.Sessions(t.Context(), "", storage.SessionQuery{}) {
		n++
	}
	if n != 8 {
		t.Errorf("%d sessions, want 8", n)
	}
}

// Tables of a newer version are refused and not changed.
func TestNewerFormat(t *testing.T) {
	url := pgtest.URL(t)
	s := reopen(t, url, nil)
	if _, err := s.pool.Exec(t.Context(), `update furl.format set version = $1`, version+1); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), url, nil)
	if !errors.Is(err, record.ErrNewerFormat) {
		t.Fatalf("open of a newer store: %v", err)
	}
	if !strings.Contains(err.Error(), fmt.Sprint(version+1)) {
		t.Errorf("the error does not name the version: %v", err)
	}
	var have int
	if err := s.pool.QueryRow(t.Context(), `select version from furl.format`).Scan(&have); err != nil || have != version+1 {
		t.Errorf("the version became %d, %v", have, err)
	}
}

// A role without the right to create tables can use an existing store.
func TestOpenWithoutRights(t *testing.T) {
	url := pgtest.URL(t)
	s := reopen(t, url, nil)
	role := strings.ToLower("r" + strings.TrimPrefix(s.pool.Config().ConnConfig.Database, "furl_"))
	for _, statement := range []string{
		"create role " + role,
		"grant usage on schema furl to " + role,
		"grant select, insert, update, delete on all tables in schema furl to " + role,
	} {
		if _, err := s.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, statement := range []string{"drop owned by " + role, "drop role " + role} {
			if _, err := s.pool.Exec(ctx, statement); err != nil {
				t.Error(err)
			}
		}
	})
	low := reopen(t, url+"&options="+"-c%20role%3D"+role, nil)
	key := furl.SessionKey{Tenant: "t", Session: "s"}
	records := talk(t, "x", 3, 10)
	appendAll(t, low, key, records)
	if diff := cmp.Diff(records, read(t, low, key, 0)); diff != "" {
		t.Error(diff)
	}
	if err := low.Delete(t.Context(), key); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func TestOpenNowhere(t *testing.T) {
	dir := t.TempDir()
	begun := time.Now()
	_, err := Open(t.Context(), "postgres://nobody@/x?host="+dir, nil)
	if err == nil {
		t.Fatal("a store without a server was opened")
	}
	if time.Since(begun) > 10*time.Second {
		t.Error("a wrong address is waited for")
	}
}

// Reading a session of any size does not use a connection while the caller's
// loop runs, so that the loop may use the store.
func TestReadInPages(t *testing.T) {
	s := open(t, &Options{MaxConns: 1})
	key := furl.SessionKey{Tenant: "t", Session: "big"}
	records := talk(t, "big", 40, 700_000)
	for i := range records { // a single statement with all of them would be large
		appendAll(t, s, key, records[i:i+1])
	}
	var got []furl.Record
	for r, err := range s.Read(t.Context(), key, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
		if r.Seq%10 == 0 {
			if n := len(read(t, s, key, 39)); n != 2 {
				t.Fatalf("%d records above 39, want 2", n)
			}
		}
		if r.Seq == 5 { // not part of the read, which has already started
			more := talk(t, "big", 41, 700_000)[40:]
			more[0].At = time.Time{}
			appendAll(t, s, key, more)
		}
	}
	if len(got) != len(records) {
		t.Fatalf("%d records, want %d", len(got), len(records))
	}
	for i := range got {
		if encoded(t, records[i]) != encoded(t, got[i]) {
			t.Errorf("record %d is not the one that was appended", i+1)
		}
	}
}

// A session that is deleted and created again during a read is not mixed up.
func TestDeletedWhileRead(t *testing.T) {
	s := open(t, nil)
	key := furl.SessionKey{Session: "s"}
	appendAll(t, s, key, talk(t, "old", 30, 700_000))
	var last error
	for r, err := range s.Read(t.Context(), key, 0) {
		last = err
		if err == nil && r.Seq == 1 {
			if err := s.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			appendAll(t, s, key, talk(t, "new", 30, 700_000))
		}
	}
	if !errors.Is(last, storage.ErrNoSession) {
		t.Errorf("it ended with %v", last)
	}
	healthy(t, s)
}

// A body is stored once per session, compressed.
func TestBodiesOnce(t *testing.T) {
	s := open(t, nil)
	key := furl.SessionKey{Session: "s"}
	records := talk(t, "x", 2, 20_000)
	again := func(from furl.Record, seq furl.Seq) furl.Record {
		from.Seq, from.Parent = seq, seq-1
		return from
	}
	appendAll(t, s, key, records)
	// In another batch, twice in that batch, and new ones twice in a batch.
	fresh := talk(t, "y", 1, 20_000)[0]
	batch := []furl.Record{again(records[0], 3), again(records[0], 4), again(fresh, 5), again(fresh, 6)}
	appendAll(t, s, key, batch)
	if diff := cmp.Diff(append(records, batch...), read(t, s, key, 0)); diff != "" {
		t.Error(diff)
	}
	appendAll(t, s, key, batch) // a repetition
	var kept int
	if err := s.pool.QueryRow(t.Context(), `select count(body) from furl.records`).Scan(&kept); err != nil || kept != 3 {
		t.Errorf("%d bodies are stored, want 3 (%v)", kept, err)
	}
	stats, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if stats.Bodies > 3*20_000*3/4 || stats.MessageBytes < 6*20_000 || stats.Records != 6 || stats.Messages != 6 {
		t.Errorf("stats are %+v", stats)
	}
	healthy(t, s)
}

// If writers race for one session, one of them gets each place, the others
// get a conflict, and no record is lost or duplicated.
func TestRace(t *testing.T) {
	s := open(t, nil)
	other := reopen(t, s.pool.Config().ConnString(), nil)
	key := furl.SessionKey{Session: "s"}
	const writers, each = 8, 20
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			store := []*Store{s, other}[w%2]
			for done, seq := 0, furl.Seq(1); done < each; {
				r := talk(t, fmt.Sprintf("writer %d", w), 1, 20)[0]
				r.Seq, r.Parent, r.At = seq, seq-1, time.Unix(int64(w), int64(done))
				switch err := store.Append(t.Context(), key, storage.Batch{Records: []furl.Record{r}}); {
				case err == nil:
					done++
					seq++
				case errors.Is(err, furl.ErrConflict):
					seq++
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := len(read(t, s, key, 0)); n != writers*each {
		t.Errorf("%d records, want %d", n, writers*each)
	}
	healthy(t, s)
}
