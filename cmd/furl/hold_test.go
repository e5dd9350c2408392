package main

import (
	"bytes"
	"strings"
	"testing"
)

// furl delete refuses a session under legal hold and says why. After the release it
// deletes it and reports what it has deleted.
func TestHoldAndDelete(t *testing.T) {
	home := t.TempDir()
	file, store, id := recorded(t, home, "")
	hold, _, _ := strings.Cut(run(t, home, file, "", "hold", id[:6], "--reason", "case 17", "--store", store), " ")
	out, err := furlCommand(home, "delete", id, "--yes", "--store", store, "--config", file).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("under legal hold "+hold+" (case 17)")) {
		t.Errorf("furl delete of a held session says %s", out)
	}
	if out := run(t, home, file, "", "delete", "--older-than", "0h", "--yes", "--store", store); !strings.Contains(out, "kept "+id) {
		t.Errorf("furl delete --older-than says %s", out)
	}
	out, err = furlCommand(home, "redact", id, "--pattern", "hello", "--yes", "--store", store, "--config", file).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("under legal hold "+hold)) {
		t.Errorf("furl redact of a held session says %s", out)
	}
	if out := run(t, home, file, "", "tenants", "--store", store); strings.Contains(out, ".furl") {
		t.Errorf("furl tenants shows the holds: %s", out)
	}
	if out := run(t, home, file, "", "doctor", "--store", store); !strings.Contains(out, "No problems found") {
		t.Errorf("furl doctor says %s", out)
	}
	run(t, home, file, "", "hold", "release", hold, "--store", store)
	if out := run(t, home, file, "", "delete", id, "--yes", "--json", "--store", store); !strings.Contains(strings.Join(strings.Fields(out), ""), `"report":{"sessions":1,"records":`) {
		t.Errorf("furl delete --json says %s", out)
	}
	if out := run(t, home, file, "", "sessions", "--store", store); strings.Contains(out, id) {
		t.Errorf("after the deletion there is %s", out)
	}
}
