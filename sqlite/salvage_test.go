package sqlite_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// encodedRecord is a record as it is stored.
func encodedRecord(t *testing.T, r furl.Record) string {
	t.Helper()
	head, body, err := record.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(head) + "\x00" + string(body)
}

// sessionsIn reads all sessions of a store.
func sessionsIn(t *testing.T, s *sqlite.Store, tenants ...furl.Tenant) map[furl.SessionKey][]furl.Record {
	t.Helper()
	all := make(map[furl.SessionKey][]furl.Record)
	for _, tenant := range tenants {
		for info, err := range s.Sessions(t.Context(), tenant, storage.SessionQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range s.Read(t.Context(), info.SessionKey, 0) {
				if err != nil {
					t.Fatal(err)
				}
				all[info.SessionKey] = append(all[info.SessionKey], r)
			}
		}
	}
	return all
}

// damagedStore creates a store with sessions of several tenants, including
// large bodies, and returns its file and its content.
func damagedStore(t *testing.T) ([]byte, map[furl.SessionKey][]furl.Record) {
	t.Helper()
	return storeAt(t, filepath.Join(t.TempDir(), "furl.db"))
}

func storeAt(t *testing.T, path string) ([]byte, map[furl.SessionKey][]furl.Record) {
	t.Helper()
	s := openAt(t, path, nil)
	for i := range 12 {
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprintf("session-%d", i))}
		if i%4 == 3 {
			key.Tenant = "other"
		}
		records := furltest.Session(furltest.SessionOptions{Seed: uint64(i + 1), Messages: 60, MessageBytes: 500 << (i % 5), Exchanges: true, Reductions: true})
		if err := s.Append(t.Context(), key, storage.Batch{Records: records, Meta: &storage.Meta{Title: string(key.Session), Format: furl.FormatAnthropic}}); err != nil {
			t.Fatal(err)
		}
	}
	want := sessionsIn(t, s, "", "other")
	closeStore(t, s)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data, want
}

// salvaged salvages a file, compares the result with what was written, and
// returns the number of saved records. With changed, single bytes were
// changed: a session's id and count may differ, because they have no
// checksum.
func salvaged(t *testing.T, data []byte, want map[furl.SessionKey][]furl.Record, changed bool) int {
	t.Helper()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "damaged.db"), filepath.Join(dir, "saved.db")
	if err := os.WriteFile(from, data, 0o400); err != nil {
		t.Fatal(err)
	}
	done, err := sqlite.Salvage(t.Context(), from, to, nil)
	if after, e := os.ReadFile(from); e != nil || !bytes.Equal(after, data) {
		t.Fatalf("the damaged file was changed (%v)", e)
	}
	if err != nil {
		if _, e := os.Stat(to); e == nil {
			t.Error("an error leaves a file")
		}
		return 0
	}
	s := openAt(t, to, nil)
	defer closeStore(t, s)
	sound(t, s)
	total := 0
	for _, told := range done.Sessions {
		total += told.Saved
		if told.Saved == 0 {
			continue
		}
		var got []furl.Record
		for r, err := range s.Read(t.Context(), told.SessionKey, 0) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		lost := make(map[furl.Seq]bool)
		n := 0
		for _, r := range told.Lost {
			for seq := r.First; seq <= r.Last; seq++ {
				lost[seq] = true
				n++
			}
		}
		original := want[told.SessionKey]
		if told.NameLost || told.TenantLost || changed && original == nil {
			original = originalOf(t, want, got, lost)
		} else if !changed && told.Saved+n > len(original) { // less, if the row with their number is lost
			t.Errorf("%s: %d saved and %d lost of %d", told.Session, told.Saved, n, len(original))
		}
		if len(original) < len(got) {
			t.Fatalf("%s: %d records of %d", told.Session, len(got), len(original))
		}
		moved := make(map[furl.Seq]bool)
		for i, r := range got {
			was := original[i]
			if lost[r.Seq] {
				if _, ok := r.Body.(*furl.Head); !ok {
					t.Errorf("%s: in place of record %d is a %T", told.Session, r.Seq, r.Body)
				}
				continue
			}
			if lost[was.Parent] || moved[was.Parent] {
				moved[r.Seq] = true
				r.Parent, r.Chain = was.Parent, was.Chain
			}
			if encodedRecord(t, r) != encodedRecord(t, was) {
				t.Errorf("%s: record %d differs", told.Session, r.Seq)
			}
		}
	}
	// The new store works like any other.
	for _, tenant := range []furl.Tenant{"", "other"} {
		all, err := session.New(s, &session.Options{Tenant: tenant})
		if err != nil {
			t.Fatal(err)
		}
		for info, err := range s.Sessions(t.Context(), tenant, storage.SessionQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			ses, err := all.Open(t.Context(), info.Session)
			if err != nil {
				t.Fatal(err)
			}
			problems, err := ses.Check(t.Context())
			if err != nil || len(problems) > 0 {
				t.Errorf("%s: %+v, %v", info.Session, problems, err)
			}
		}
	}
	return total
}

// originalOf finds the session to which the saved records belong.
func originalOf(t *testing.T, want map[furl.SessionKey][]furl.Record, got []furl.Record, lost map[furl.Seq]bool) []furl.Record {
	t.Helper()
	for i, r := range got {
		m, ok := r.Body.(*furl.Message)
		if !ok || lost[r.Seq] {
			continue
		}
		for _, records := range want {
			if i < len(records) {
				if was, ok := records[i].Body.(*furl.Message); ok && was.Digest == m.Digest && bytes.Equal(was.Raw, m.Raw) && records[i].At.Equal(r.At) {
					return records
				}
			}
		}
	}
	t.Fatal("a session that was never written")
	return nil
}

func countOf(all map[furl.SessionKey][]furl.Record) (n int) {
	for _, records := range all {
		n += len(records)
	}
	return n
}

// All records of an undamaged file are saved.
func TestSalvageWhole(t *testing.T) {
	data, want := damagedStore(t)
	if n := salvaged(t, data, want, false); n != countOf(want) {
		t.Errorf("%d records were saved of %d", n, countOf(want))
	}
}

// Of a truncated file, everything before its end is saved.
func TestSalvageTruncated(t *testing.T) {
	data, want := damagedStore(t)
	total := countOf(want)
	for i := range 12 {
		if raceDetector && i%4 != 3 {
			continue
		}
		size := len(data) * (i + 1) / 13
		if i%3 == 1 {
			size = size / 4096 * 4096
		}
		n := salvaged(t, data[:size], want, false)
		if n > total || i > 6 && n < total*i/30 {
			t.Errorf("of the first %d of %d bytes %d of %d records were saved", size, len(data), n, total)
		}
	}
}

// Overwritten pages lose only their own content.
func TestSalvageDamagedPages(t *testing.T) {
	data, want := damagedStore(t)
	total := countOf(want)
	seeds := uint64(12)
	if raceDetector {
		seeds = 4
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 7))
		broken := bytes.Clone(data)
		pages := len(data) / 4096
		changed := seed%2 == 1
		for range 1 + rnd.IntN(pages/12) {
			page := broken[rnd.IntN(pages)*4096:][:4096]
			switch kind := rnd.IntN(3); {
			case kind == 0:
				clear(page)
			case kind == 1 || !changed:
				for i := range page {
					page[i] = byte(rnd.Uint32())
				}
			default:
				for range 20 {
					page[rnd.IntN(len(page))] = byte(rnd.Uint32())
				}
			}
		}
		if n := salvaged(t, broken, want, changed); n < total/3 || n > total {
			t.Errorf("seed %d: %d of %d records were saved", seed, n, total)
		}
	}
}

// All rows are found without the first page, which says where the tables are.
func TestSalvageWithoutSchema(t *testing.T) {
	data, want := damagedStore(t)
	clear(data[:4096])
	if n := salvaged(t, data, want, false); n != countOf(want) {
		t.Errorf("%d records were saved of %d", n, countOf(want))
	}
}

// Files of older versions have larger pages. They keep them, and are salvaged without the first
// page too, which says how large they are.
func TestSalvageOldPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; CREATE TABLE t (x); DROP TABLE t"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, want := storeAt(t, path)
	if size := binary.BigEndian.Uint16(data[16:]); size != 4096 {
		t.Fatalf("pages have %d bytes, want 4096", size)
	}
	clear(data[:4096])
	if n := salvaged(t, data, want, false); n != countOf(want) {
		t.Errorf("%d records were saved of %d", n, countOf(want))
	}
}

// A new file has small pages, of which those without data can be given back.
func TestNewPages(t *testing.T) {
	data, _ := damagedStore(t)
	if size := binary.BigEndian.Uint16(data[16:]); size != 2048 {
		t.Errorf("pages have %d bytes, want 2048", size)
	}
	if binary.BigEndian.Uint32(data[52:]) == 0 || binary.BigEndian.Uint32(data[64:]) == 0 {
		t.Error("the file does not use incremental vacuum")
	}
}

// Data committed only in the write-ahead log is saved too.
func TestSalvageReadsLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "furl.db")
	s := openAt(t, path, nil)
	defer closeStore(t, s)
	put(t, s, "in-log", some(20))
	for _, end := range []string{"", "-wal"} { // as a crash leaves them
		data, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "copy.db"+end), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done, err := sqlite.Salvage(t.Context(), filepath.Join(dir, "copy.db"), filepath.Join(dir, "saved.db"), nil)
	if err != nil || len(done.Sessions) != 1 || done.Sessions[0].Saved != 20 || len(done.Sessions[0].Lost) > 0 {
		t.Errorf("saved %+v, %v", done, err)
	}
}

// Contents that records refer to are saved with them.
func TestSalvageContents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	records := everyCodec(t)
	if err := s.Append(t.Context(), key("a"), storage.Batch{Records: records, Contents: keptContents}); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	to := filepath.Join(t.TempDir(), "saved.db")
	if _, err := sqlite.Salvage(t.Context(), path, to, nil); err != nil {
		t.Fatal(err)
	}
	saved := openAt(t, to, nil)
	defer closeStore(t, saved)
	for _, want := range keptContents {
		if got, err := saved.Content(t.Context(), key("a"), furl.DigestOf(want)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("a content of %d bytes: %d, %v", len(want), len(got), err)
		}
	}
	sound(t, saved)
}

// An existing file is not overwritten, and a file that is not a store is
// refused.
func TestSalvageRefuses(t *testing.T) {
	data, _ := damagedStore(t)
	dir := t.TempDir()
	from, there, other := filepath.Join(dir, "a.db"), filepath.Join(dir, "there.db"), filepath.Join(dir, "other")
	for name, text := range map[string]string{from: string(data), there: "mine", other: "dear diary"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, files := range [][2]string{{from, there}, {from, from}, {other, filepath.Join(dir, "new.db")}, {dir, filepath.Join(dir, "new.db")}, {filepath.Join(dir, "none"), filepath.Join(dir, "new.db")}} {
		if _, err := sqlite.Salvage(t.Context(), files[0], files[1], nil); err == nil {
			t.Errorf("%s was saved to %s", files[0], files[1])
		}
	}
	if text, _ := os.ReadFile(there); string(text) != "mine" {
		t.Errorf("the existing file now contains %q", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "new.db")); err == nil {
		t.Error("a refusal leaves a file")
	}
}

func FuzzSalvage(f *testing.F) {
	path := filepath.Join(f.TempDir(), "furl.db")
	s := openAt(f, path, nil)
	put(f, s, "a", some(6))
	closeStore(f, s)
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, 5000, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte, at int, change []byte) {
		if at >= 0 && at < len(data) {
			data = bytes.Clone(data)
			copy(data[at:], change)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.db"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Salvage(t.Context(), filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db"), nil); err != nil {
			return
		}
		s := openAt(t, filepath.Join(dir, "b.db"), nil)
		defer closeStore(t, s)
		sound(t, s)
	})
}
