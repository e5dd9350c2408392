package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// A check finds problems, rebuilds derived data, and does not change records.
func TestCheckFinds(t *testing.T) {
	key := furl.SessionKey{Tenant: "t", Session: "s"}
	for name, tt := range map[string]struct {
		damage  string
		says    string
		seq     furl.Seq
		derived bool
		read    error // result of reading the session
	}{
		"a head":              {damage: `update furl.records set head = set_byte(head, 5, get_byte(head, 5) # 1) where seq = 3`, says: "checksum mismatch", seq: 3, read: furl.ErrDamaged},
		"a body":              {damage: `update furl.records set body = set_byte(body, 40, get_byte(body, 40) # 1) where seq = 4`, says: "record 4", seq: 4, read: furl.ErrDamaged},
		"a body cut off":      {damage: `update furl.records set body = substring(body for 20) where seq = 4`, says: "record 4", seq: 4, read: furl.ErrDamaged},
		"a body not there":    {damage: `update furl.records set body = null where seq = 4`, says: "record 4", seq: 4, read: furl.ErrDamaged},
		"a record not there":  {damage: `delete from furl.records where seq = 5`, says: "found 7", read: furl.ErrDamaged},
		"the last not there":  {damage: `delete from furl.records where seq = 8`, says: "found 7", read: furl.ErrDamaged},
		"a way of packing":    {damage: `update furl.records set body = set_byte(body, 0, 9) where seq = 2`, says: "unknown body encoding", seq: 2, read: furl.ErrDamaged},
		"no session":          {damage: `delete from furl.sessions`, says: "missing from table sessions", read: storage.ErrNoSession},
		"a chain":             {damage: `update furl.records set chain = set_byte(chain, 0, get_byte(chain, 0) # 1) where seq = 2`, says: "chain", seq: 2, derived: true},
		"the counts":          {damage: `update furl.sessions set messages = messages + 1, bytes = 7`, says: "the counts of messages", derived: true},
		"the cursor":          {damage: `update furl.sessions set indexed = 99`, says: "cursor 99: the session has 8", derived: true},
		"pages of nothing":    {damage: `insert into furl.pages values ('t', 'gone', 1, 1, 'x')`, says: "pages of a session that does not exist", derived: true},
		"contents of nothing": {damage: `insert into furl.contents values ('t', 'gone', 'd', 1, 'x')`, says: "contents of a session that does not exist", derived: true},
		"vectors of nothing":  {damage: `insert into furl.vectors values ('t', 'gone', 'm', 'c', 'x')`, says: "vectors of a session that does not exist", derived: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, nil)
			records := talk(t, "x", 8, 2000)
			appendAll(t, s, key, records)
			healthy(t, s)
			if _, err := s.pool.Exec(t.Context(), tt.damage); err != nil {
				t.Fatal(err)
			}
			found := problems(t, s, false)
			if !slices.ContainsFunc(found, func(p storage.Problem) bool {
				return strings.Contains(p.Text, tt.says) && p.Seq == tt.seq && p.Derived == tt.derived && !p.Mended && p.Session.Tenant == "t"
			}) {
				t.Errorf("found %+v, want one that says %q of record %d", found, tt.says, tt.seq)
			}
			var last error
			for _, last = range s.Read(t.Context(), key, 0) {
				if last != nil {
					break
				}
			}
			if !errors.Is(last, tt.read) || tt.read == nil && last != nil {
				t.Errorf("read: %v, want %v", last, tt.read)
			}
			for _, p := range problems(t, s, true) {
				if p.Mended != tt.derived {
					t.Errorf("after mending: %+v", p)
				}
			}
			if left := problems(t, s, false); tt.derived && len(left) > 0 {
				t.Errorf("problems after repair: %+v", left)
			} else if !tt.derived && len(left) == 0 {
				t.Error("a check has mended what cannot be rebuilt")
			}
		})
	}
}

func problems(t *testing.T, s *Store, mend bool) (found []storage.Problem) {
	t.Helper()
	for p, err := range s.Check(t.Context(), mend) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, p)
	}
	return found
}
