package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/storage"
)

// A check finds wrong derived data and rebuilds it; it finds missing records
// and does not invent them.
func TestCheckMends(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name, damage string
		derived      bool
	}{
		{"chains gone", "DELETE FROM chains WHERE record & 7 = 3", true},
		{"a wrong chain", "UPDATE chains SET chain = chain + 1 WHERE record & 31 = 5", true},
		{"counts", "UPDATE sessions SET messages = messages + 1, bytes = 3", true},
		{"a cursor beyond the end", "UPDATE sessions SET indexed = 100000", true},
		{"bodies without a record", "INSERT INTO bodies (tenant, digest, codec, size, data) VALUES (1, x'00', 0, 1, x'00')", true},
		{"pages without a session", "UPDATE pages SET session = 99 WHERE session = 1", true},
		{"vectors without a session", "DELETE FROM session_vectors", true},
		{"a tenant without sessions", "INSERT INTO tenants (name) VALUES (x'99')", true},
		{"a record gone", "DELETE FROM records WHERE id & 4294967295 = 7", false},
		{"the last records gone", "DELETE FROM records WHERE id & 4294967295 > 30", false},
		{"a head cut off", "UPDATE records SET head = substr(head, 1, 9) WHERE id & 4294967295 = 9", false},
		{"a body gone", "DELETE FROM bodies WHERE id = 3", false},
		{"a session gone", "DELETE FROM sessions WHERE name = 'b'", false},
		{"another body", "UPDATE bodies SET digest = x'0102' WHERE id = 2", false},
		{"a codec of no kind", "UPDATE bodies SET codec = 77 WHERE id = 2", false},
		{"a size of no body", "UPDATE bodies SET size = 1 << 60 WHERE id = 2", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openAt(t, filepath.Join(t.TempDir(), "furl.db"), nil)
			defer closeStore(t, s)
			for _, id := range []string{"a", "b"} {
				put(t, s, id, furltest.Session(furltest.SessionOptions{Messages: 40, MessageBytes: 9000, Exchanges: true}))
				w := storage.IndexWrite{To: 3, Put: []storage.IndexPage{{Bucket: 1, Segment: 1, Data: []byte("page")}}}
				if err := s.WriteIndex(ctx, key(id), w); err != nil {
					t.Fatal(err)
				}
				if err := s.PutVectors(ctx, key(id), "m", []storage.Vector{{Content: furl.Digest{1}, Data: []byte("v")}}); err != nil {
					t.Fatal(err)
				}
			}
			sound(t, s)
			if err := s.Exec(tt.damage); err != nil {
				t.Fatal(err)
			}
			found := problemsOf(t, s, false)
			if len(found) == 0 {
				t.Fatal("the check found nothing")
			}
			for _, p := range found {
				if p.Mended || p.Text == "" {
					t.Errorf("without repair the check reported %+v", p)
				}
			}
			for _, p := range problemsOf(t, s, true) {
				if p.Derived != p.Mended {
					t.Errorf("with repair the check reported %+v", p)
				}
			}
			left := problemsOf(t, s, false)
			if tt.derived && len(left) > 0 {
				t.Errorf("after mending a check finds %+v", left)
			}
			if !tt.derived && len(left) == 0 {
				t.Error("after the repair the check found nothing, but a record is missing")
			}
		})
	}
}

// A SQLite index that differs from its table is rebuilt.
func TestCheckRebuildsIndexes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	put(t, s, "a", some(3))
	w := storage.IndexWrite{To: 3, Put: []storage.IndexPage{{Bucket: 1, Segment: 1, Data: []byte("page")}}}
	if err := s.WriteIndex(context.Background(), key("a"), w); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`DROP INDEX pages_segment;
		CREATE INDEX pages_segment ON pages (session, segment) WHERE segment > 5;
		PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = 'CREATE INDEX pages_segment ON pages (session, segment)' WHERE name = 'pages_segment'`)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path, nil)
	defer closeStore(t, s)
	if found := problemsOf(t, s, false); len(found) == 0 || !found[0].Derived {
		t.Errorf("the check found %+v, want an index with a missing row", found)
	}
	if found := problemsOf(t, s, true); len(found) != 1 || !found[0].Mended {
		t.Errorf("with repair the check reported %+v", found)
	}
	sound(t, s)
}
