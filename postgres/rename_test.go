package postgres

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/storage"
)

// Earlier versions accepted ids that are now reserved. Such sessions get
// another id when the store is opened; forks are updated, and nothing is
// lost.
func TestRenamesReserved(t *testing.T) {
	dump, err := os.ReadFile(filepath.Join("testdata", "v1.sql"))
	if err != nil {
		t.Fatal(err)
	}
	url := pgtest.URL(t)
	restore(t, url, string(dump)+`
		update furl.sessions set session = '--yes' where session = 'fixture';
		update furl.records set session = '--yes' where session = 'fixture';
		update furl.pages set session = '--yes' where session = 'fixture';
		update furl.vectors set session = '--yes' where session = 'fixture';
		insert into furl.sessions (tenant, session, life, records, messages, bytes, created, updated, meta) values
			('t', 'fork', 5, 0, 0, 0, now(), now(), '{"fork_of":"--yes","fork_at":2}');
		insert into furl.sessions (tenant, session, life, records, messages, bytes, created, updated, meta) values
			('u', 'Latest', 6, 0, 0, 0, now(), now(), '{}')`)
	s := reopen(t, url, nil)
	yes := storage.UnreservedID("--yes", 0)
	want := []storage.Renamed{{Tenant: "t", Was: "--yes", Is: yes}, {Tenant: "u", Was: "Latest", Is: storage.UnreservedID("Latest", 0)}}
	if diff := cmp.Diff(want, s.Renamed()); diff != "" {
		t.Errorf("renamed (-want +got):\n%s", diff)
	}
	if got := read(t, s, furl.SessionKey{Tenant: "t", Session: yes}, 0); len(got) != len(fixture(t, "v1.sql")) {
		t.Errorf("the session has %d records, want %d", len(got), len(fixture(t, "v1.sql")))
	}
	for info, err := range s.Sessions(t.Context(), "t", storage.SessionQuery{Prefix: "fork"}) {
		if err != nil || info.ForkOf != yes || info.ForkAt != 2 {
			t.Errorf("metadata of the fork: %+v, %v", info.Meta, err)
		}
	}
	healthy(t, s)
	if renamed := reopen(t, url, nil).Renamed(); len(renamed) != 0 {
		t.Errorf("opened again, it renamed %v", renamed)
	}
}
