package encrypted_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// salvage salvages a file, and returns the new store and what was saved.
func salvage(t *testing.T, data []byte, m encrypted.Master) (encrypted.Layer, *sqlite.Salvaged, error) {
	t.Helper()
	from, to := filepath.Join(t.TempDir(), "damaged.db"), filepath.Join(t.TempDir(), "saved.db")
	if err := os.WriteFile(from, data, 0o400); err != nil {
		t.Fatal(err)
	}
	done, err := sqlite.Salvage(t.Context(), from, to, &sqlite.SalvageOptions{
		Encryption: func(s *sqlite.Store, keys map[furl.Tenant][]byte) (sqlite.Opener, error) {
			l := encrypted.New(s, m)
			return l, encrypted.RestoreKeys(t.Context(), l, keys)
		},
	})
	if err != nil {
		if _, e := os.Stat(to); e == nil {
			t.Error("an error leaves a file")
		}
		return nil, nil, err
	}
	l := openSQLite(t, to, m)
	t.Cleanup(func() { l.Close() })
	return l, done, nil
}

// content is what a session has, in a comparable form.
func contentOf(t *testing.T, s storage.Store, key furl.SessionKey) (list []string) {
	t.Helper()
	for r, err := range s.Read(t.Context(), key, 0) {
		if err != nil {
			t.Fatalf("%v: %v", key, err)
		}
		head, body, err := record.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(head)+"\x00"+string(body))
	}
	return list
}

// All of an encrypted store is saved if it is whole, also under several data keys. Of a
// damaged one, each record that is readable is saved, as one that follows a lost record
// is encrypted for another place. Nothing is saved without the master key.
func TestSalvage(t *testing.T) {
	m := master(t)
	path := filepath.Join(t.TempDir(), "furl.db")
	l := openSQLite(t, path, m)
	want := make(map[furl.SessionKey][]string)
	for i := range 6 {
		key := furl.SessionKey{Tenant: []furl.Tenant{"", "acme"}[i%2], Session: furl.SessionID(fmt.Sprint("session-", i))}
		records := furltest.Session(furltest.SessionOptions{Seed: uint64(i + 1), Messages: 60, MessageBytes: 300 << (i % 4), Exchanges: true, Reductions: true})
		if err := l.Append(t.Context(), key, storage.Batch{Records: records, Meta: &storage.Meta{Title: "title of " + string(key.Session), Hint: "hint"}}); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			if _, err := encrypted.RotateKey(t.Context(), l, ""); err != nil {
				t.Fatal(err)
			}
		}
		want[key] = contentOf(t, l, key)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if _, _, err := salvage(t, data, nil); err == nil || !errors.As(err, new(*encrypted.KeyError)) {
		t.Errorf("without the master key: %v", err)
	}
	clear(data[:4096]) // where the tables are
	saved, _, err := salvage(t, data, m)
	if err != nil {
		t.Fatal(err)
	}
	for key, records := range want {
		if got := contentOf(t, saved, key); !slices.Equal(got, records) {
			t.Errorf("%v: %d records differ from %d", key, len(got), len(records))
		}
	}
	for info, err := range saved.Sessions(t.Context(), "acme", storage.SessionQuery{Hint: "hint"}) {
		if err != nil || info.Title != "title of "+string(info.Session) {
			t.Errorf("the title is %q, %v", info.Title, err)
		}
	}
	for info, err := range saved.(interface{ Inner() storage.Store }).Inner().Sessions(t.Context(), "", storage.SessionQuery{}) {
		if err != nil || info.Sealed == nil {
			t.Errorf("the new store is not encrypted: %+v, %v", info, err)
		}
	}

	rnd := rand.New(rand.NewPCG(1, 3)) // with others the page with the keys is lost, and all with it
	for range 4 {
		broken := bytes.Clone(data)
		for range 8 {
			clear(broken[rnd.IntN(len(broken)/4096)*4096:][:4096])
		}
		saved, done, err := salvage(t, broken, m)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, s := range done.Sessions {
			n += s.Saved
			if s.Saved == 0 || s.NameLost || s.TenantLost {
				continue
			}
			lost := make(map[furl.Seq]bool)
			for _, r := range s.Lost {
				for seq := r.First; seq <= r.Last; seq++ {
					lost[seq] = true
				}
			}
			moved := false // the records from here on follow a lost one
			for i, got := range contentOf(t, saved, s.SessionKey) {
				if moved = moved || lost[furl.Seq(i+1)]; !moved && got != want[s.SessionKey][i] {
					t.Errorf("%v: record %d differs", s.SessionKey, i+1)
				}
			}
		}
		total := 0
		for records := range maps.Values(want) {
			total += len(records)
		}
		if n < total/3 || n > total {
			t.Errorf("%d of %d records were saved", n, total)
		}
		for p, err := range saved.Check(t.Context(), false) {
			t.Errorf("the new store has a problem: %+v, %v", p, err)
		}
	}
}
