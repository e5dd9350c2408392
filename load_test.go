package furl_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// Load gives back the log that was recorded, and refuses what does not fit.
func TestLogLoad(t *testing.T) {
	log := furl.NewLog()
	at := time.Unix(1, 0)
	for i := range 6 {
		role := furl.RoleUser
		if i%2 == 1 {
			role = furl.RoleAssistant
		}
		if _, err := log.Append(log.Head(), at, furl.Client, furl.TextMessage(role, fmt.Sprint("message ", i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Rewind(2, at, furl.Person); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(2, at, furl.Client, furl.TextMessage(furl.RoleUser, "another way")); err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut <= log.Len(); cut++ {
		loaded := furl.NewLog()
		if err := loaded.Load(log.Records(0)[:cut]); err != nil {
			t.Fatal(err)
		}
		if err := loaded.Load(log.Records(furl.Seq(cut))); err != nil {
			t.Fatal(err)
		}
		if loaded.Head() != log.Head() || loaded.State().Len() != log.State().Len() {
			t.Errorf("cut at %d: head %d with %d messages, want %d with %d", cut,
				loaded.Head(), loaded.State().Len(), log.Head(), log.State().Len())
		}
		if got, want := loaded.State().Chain(loaded.State().Len()), log.State().Chain(log.State().Len()); got != want {
			t.Errorf("cut at %d: chain %v, want %v", cut, got, want)
		}
	}
	broken := log.Records(0)
	for name, records := range map[string][]furl.Record{
		"a gap":            {broken[0], broken[2]},
		"another's parent": {broken[0], broken[1], {Seq: 3, Parent: 1, Body: broken[2].Body}},
		"a lost reduction": {broken[0], {Seq: 2, Parent: 1, Body: &furl.Restoration{Of: 9}}},
	} {
		l := furl.NewLog()
		if err := l.Load(records); !errors.Is(err, furl.ErrDamaged) || l.Len() != 0 || l.State().Len() != 0 {
			t.Errorf("%s: %v and %d records, want ErrDamaged and none", name, err, l.Len())
		}
	}
}
