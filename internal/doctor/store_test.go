package doctor

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/storage"
)

// brokenStore fails in the middle of a check.
type brokenStore struct{ *inmem.Store }

func (brokenStore) Check(context.Context, bool) iter.Seq2[storage.Problem, error] {
	return func(yield func(storage.Problem, error) bool) {
		if yield(storage.Problem{Text: "first"}, nil) {
			yield(storage.Problem{}, fmt.Errorf("page 7: %w", furl.ErrDamaged))
		}
	}
}

// Damage that ends the check of the database is a problem, and the check of sessions
// continues.
func TestDoctorGoesOnPastDamage(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("FURL_CONFIG", "")
	var got []string
	for p, err := range Store(t.Context(), &workspace.Workspace{}, brokenStore{inmem.New()}, false, make(map[string]int), func(string) {}) {
		if err != nil {
			t.Fatalf("examine ended with %v", err)
		}
		got = append(got, p.Problem)
	}
	if len(got) != 2 || got[0] != "first" {
		t.Errorf("doctor found %q, want the first problem and the damage", got)
	}
}
