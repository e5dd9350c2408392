package postgres

import (
	"flag"
	"testing"

	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/storage"
)

// TestConformance checks the guarantees of the interfaces, with plain and
// with partitioned tables.
func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name       string
		partitions int
		checks     string
	}{{"plain", 0, "8"}, {"partitioned", 3, "3"}} {
		t.Run(tt.name, func(t *testing.T) {
			fewerChecks(t, tt.checks)
			furltest.TestStore(t, func(t testing.TB) storage.Store {
				return open(t, &Options{Partitions: tt.partitions})
			}, &furltest.Options{Reopen: func(t testing.TB, s storage.Store) storage.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return reopen(t, s.(*Store).pool.Config().ConnString(), nil)
			}})
		})
	}
}

// fewerChecks reduces rapid's random runs, each of which is several hundred
// statements to a server, unless the command line sets a number.
func fewerChecks(t *testing.T, n string) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	asked := false
	flag.Visit(func(set *flag.Flag) { asked = asked || set.Name == f.Name })
	if asked {
		return
	}
	if err := flag.Set(f.Name, n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(f.Name, f.DefValue) })
}
