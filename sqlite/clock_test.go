package sqlite_test

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// The newest session is the one with the last append, even if the clock
// changes between two processes. The clock of a synctest bubble starts at the
// year 2000: inside the bubble the clock is set back, after it forward.
func TestClockIsSetBetweenProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	var order []furl.SessionID // newest first
	appendAndList := func(t *testing.T, id furl.SessionID) {
		t.Helper()
		s := openAt(t, path, &sqlite.Options{Poll: time.Hour})
		defer closeStore(t, s)
		put(t, s, string(id), some(2))
		order = slices.Insert(order, 0, id)
		var got []furl.SessionID
		var last time.Time
		for info, err := range s.Sessions(t.Context(), "", storage.SessionQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > 0 && !info.Updated.Before(last) {
				t.Errorf("%s was updated at %s, the one before it in the list at %s", info.Session, info.Updated, last)
			}
			got, last = append(got, info.Session), info.Updated
		}
		if !slices.Equal(got, order) {
			t.Errorf("sessions %q, want %q", got, order)
		}
		sound(t, s)
	}
	back := func(id furl.SessionID) {
		synctest.Test(t, func(t *testing.T) { appendAndList(t, id) })
	}
	back("in-2000")
	appendAndList(t, "today")
	back("in-2000-again")
	appendAndList(t, "today-again")
}
