package storage_test

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// An id means a session wherever it is given, and nothing else.
func TestSessionIDs(t *testing.T) {
	for _, id := range []furl.SessionID{"a", "latest-1", "my.latest", ".hidden", "a-h", "_", "1", furl.SessionID(strings.Repeat("x", 128))} {
		if !storage.ValidID(id) || storage.ReservedID(id) {
			t.Errorf("%s cannot be used", id)
		}
	}
	for _, id := range []furl.SessionID{"latest", "Latest", "LATEST", ".", "..", "...", "-", "-h", "--yes", "--", "-latest", furl.SessionID("-" + strings.Repeat(".", 127))} {
		if storage.ValidID(id) || !storage.ReservedID(id) {
			t.Errorf("%s is not reserved", id)
		}
		b := storage.Batch{Records: []furl.Record{{Seq: 1, Body: &furl.Head{}}}}
		if err := storage.CheckBatch(furl.SessionKey{Session: id}, &b); err == nil || !strings.Contains(err.Error(), "reserved") {
			t.Errorf("a batch for %s: %v", id, err)
		}
		first, second := storage.UnreservedID(id, 0), storage.UnreservedID(id, 1)
		if !storage.ValidID(first) || !storage.ValidID(second) || first == second || first != storage.UnreservedID(id, 0) {
			t.Errorf("%s becomes %s, then %s", id, first, second)
		}
	}
	for _, id := range []furl.SessionID{"", "a b", "a/b", "é", furl.SessionID(strings.Repeat("x", 129)), "-a/b"} {
		if storage.ValidID(id) || storage.ReservedID(id) {
			t.Errorf("%q is not refused for its characters", id)
		}
	}
}
