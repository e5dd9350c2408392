package furl_test

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// An id means a session wherever it is given, and nothing else.
func TestSessionIDs(t *testing.T) {
	for _, id := range []furl.SessionID{"a", "latest-1", "my.latest", ".hidden", "a-h", "_", "1", furl.SessionID(strings.Repeat("x", 128))} {
		if !furl.ValidSessionID(id) || furl.ReservedSessionID(id) {
			t.Errorf("%s cannot be used", id)
		}
	}
	for _, id := range []furl.SessionID{"latest", "Latest", "LATEST", ".", "..", "...", "-", "-h", "--yes", "--", "-latest", furl.SessionID("-" + strings.Repeat(".", 127))} {
		if furl.ValidSessionID(id) || !furl.ReservedSessionID(id) {
			t.Errorf("%s is not reserved", id)
		}
		b := furl.Batch{Records: []furl.Record{{Seq: 1, Body: &furl.Head{}}}}
		if err := b.Check(furl.SessionKey{Session: id}); err == nil || !strings.Contains(err.Error(), "reserved") {
			t.Errorf("a batch for %s: %v", id, err)
		}
		first, second := furl.UnreservedSessionID(id, 0), furl.UnreservedSessionID(id, 1)
		if !furl.ValidSessionID(first) || !furl.ValidSessionID(second) || first == second || first != furl.UnreservedSessionID(id, 0) {
			t.Errorf("%s becomes %s, then %s", id, first, second)
		}
	}
	for _, id := range []furl.SessionID{"", "a b", "a/b", "é", furl.SessionID(strings.Repeat("x", 129)), "-a/b"} {
		if furl.ValidSessionID(id) || furl.ReservedSessionID(id) {
			t.Errorf("%q is not refused for its characters", id)
		}
	}
}
