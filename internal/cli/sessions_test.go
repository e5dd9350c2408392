package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Output to a pipe has complete ids of any length.
func TestSessionsKeepIDs(t *testing.T) {
	id := strings.Repeat("long-id.", 10)
	var b strings.Builder
	printSessions(&b, []storage.SessionInfo{{SessionKey: furl.SessionKey{Session: furl.SessionID(id)}}}, time.Time{})
	if !strings.Contains(b.String(), id+" ") {
		t.Errorf("printed\n%s", b.String())
	}
}
