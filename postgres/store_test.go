package postgres

import (
	"testing"

	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/storage"
)

// TestConformance checks the guarantees of the interfaces, with plain and
// with partitioned tables.
func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name       string
		partitions int
		checks     int
		huge       int // bytes; 0: the default
	}{{"plain", 0, 5, 0}, {"partitioned", 3, 2, 2 << 20}} {
		t.Run(tt.name, func(t *testing.T) {
			racetest.Checks(t, tt.checks) // each run is several hundred statements to a server
			furltest.TestStore(t, func(t testing.TB) storage.Store {
				return open(t, &Options{Partitions: tt.partitions})
			}, &furltest.Options{HugeBytes: tt.huge, Reopen: func(t testing.TB, s storage.Store) storage.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return reopen(t, s.(*Store).pool.Config().ConnString(), nil)
			}})
		})
	}
}
