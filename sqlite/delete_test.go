package sqlite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
)

// planted occurs in the messages, the title, the index and the vectors of a
// deleted session. It is long enough not to occur by chance.
const planted = "xq-planted-7Kz"

// secret is a message of about n bytes that cannot be compressed.
func secret(t testing.TB, rnd *rand.Rand, n int) *furl.Message {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(' ' + 1 + rnd.IntN(94))
	}
	for i := 0; i+len(planted) < n; i += 200 {
		copy(text[i:], planted)
	}
	raw, err := json.Marshal(map[string]string{"role": "user", "content": planted + string(text)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := anthropic.Codec.DecodeMessage(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// holdsPlanted returns which of the store's files contain the planted text.
func holdsPlanted(t testing.TB, s *sqlite.Store) (names []string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(s.Path() + suffix)
		if err != nil && suffix == "" {
			t.Fatal(err)
		}
		if n := bytes.Count(data, []byte(planted)); n > 0 {
			names = append(names, fmt.Sprintf("furl.db%s %d times", suffix, n))
		}
	}
	return names
}

// After a delete, no bytes of the session remain in the file or its log,
// however its pages were interleaved with those of others.
func TestDeleteLeavesNoBytes(t *testing.T) {
	ctx := context.Background()
	for _, seed := range []uint64{1, 2, 33} { // 33 leaves text in the unused part of a page
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := openAt(t, filepath.Join(t.TempDir(), "furl.db"), nil)
		others := some(60)
		counts := make(map[string]furl.Seq)
		add := func(id string, r furl.Record) {
			t.Helper()
			counts[id]++
			r.Seq, r.Parent = counts[id], counts[id]-1
			put(t, s, id, []furl.Record{r})
		}
		// Small and large, interleaved with other sessions.
		for i := range 120 {
			for _, id := range []string{"a", "b", "c"} {
				add(id, others[rnd.IntN(len(others))])
			}
			add("secret", furl.Record{Body: secret(t, rnd, []int{60, 300, 900, 5000, 20000}[rnd.IntN(5)])})
			if i%20 == 7 {
				segment := uint64(i)
				w := storage.IndexWrite{To: counts["secret"], DropAll: rnd.IntN(2) == 0, Put: []storage.IndexPage{
					{Bucket: 1, Segment: segment, Data: bytes.Repeat([]byte(planted), 100)}, {Bucket: 2, Segment: segment, Data: []byte(planted)}}}
				var err error
				if w.After, err = s.Indexed(ctx, key("secret")); err != nil {
					t.Fatal(err)
				}
				if err := s.WriteIndex(ctx, key("secret"), w); err != nil {
					t.Fatal(err)
				}
				v := []storage.Vector{{Content: furl.Digest{byte(i)}, Data: bytes.Repeat([]byte(planted), 200)}}
				if err := s.PutVectors(ctx, key("secret"), "m", v); err != nil {
					t.Fatal(err)
				}
				meta := &storage.Meta{Title: planted, Hint: planted}
				if err := s.Append(ctx, key("secret"), storage.Batch{Meta: meta}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(holdsPlanted(t, s)) == 0 {
			t.Fatal("the planted text was not found before the delete")
		}
		size := func() int64 {
			st, err := s.Stats(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return st.Total
		}
		before := size()
		if err := s.Delete(ctx, key("secret")); err != nil {
			t.Fatal(err)
		}
		if names := holdsPlanted(t, s); len(names) > 0 {
			t.Errorf("seed %d: after the delete the text is in %v", seed, names)
		}
		if after := size(); after > before/2 {
			t.Errorf("seed %d: the store has %d bytes, %d before the delete of most of it", seed, after, before)
		}
		sound(t, s)
		closeStore(t, s)
	}
}

// A body that another session shares stays until the last of them is deleted.
func TestDeleteSharedBodies(t *testing.T) {
	ctx := context.Background()
	s := openAt(t, filepath.Join(t.TempDir(), "furl.db"), nil)
	defer closeStore(t, s)
	bodies := func() int64 {
		st, err := s.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return st.Bodies
	}
	m := secret(t, rand.New(rand.NewPCG(1, 2)), 50_000)
	put(t, s, "a", []furl.Record{{Seq: 1, Body: m}})
	once := bodies()
	put(t, s, "b", []furl.Record{{Seq: 1, Body: m}})
	put(t, s, "c", []furl.Record{{Seq: 1, Body: m}, {Seq: 2, Body: m}})
	if got := bodies(); got != once {
		t.Errorf("four messages with one body take up %d bytes, one %d", got, once)
	}
	other := furl.SessionKey{Tenant: "other", Session: "a"}
	if err := s.Append(ctx, other, storage.Batch{Records: []furl.Record{{Seq: 1, Body: m}}}); err != nil {
		t.Fatal(err)
	}
	if got := bodies(); got != 2*once {
		t.Errorf("with another tenant bodies take up %d bytes, want twice %d", got, once)
	}
	for i, k := range []furl.SessionKey{key("a"), key("c"), other, key("b")} {
		if err := s.Delete(ctx, k); err != nil {
			t.Fatal(err)
		}
		if want := []int64{2, 2, 1, 0}[i] * once; bodies() != want {
			t.Errorf("after deleting %d sessions bodies take up %d bytes, want %d", i+1, bodies(), want)
		}
	}
	if names := holdsPlanted(t, s); len(names) > 0 {
		t.Errorf("the text is in %v", names)
	}
	sound(t, s)
}
