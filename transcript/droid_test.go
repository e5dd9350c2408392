package transcript

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// The usage is a sum in the settings: a note gives it, and no request does. The
// settings also say which API was used.
func TestDroidFolder(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, map[string]string{"-home-mira-quay/fffecc83.jsonl": "droid.jsonl"}, map[string]string{
		"-home-mira-quay/fffecc83.settings.json": `{"assistantActiveTimeMs":705,"model":"custom:furl-0","interactionMode":"auto","tokenUsage":{"inputTokens":9848,"outputTokens":140,"cacheCreationTokens":0,"cacheReadTokens":28416},"providerLock":"anthropic"}`,
	})
	var recs []*Recording
	for rec, err := range Walk(dir) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	if len(recs) != 1 {
		t.Fatalf("read %d recordings", len(recs))
	}
	s := only(t, recs[0])
	if s.ID != "fffecc83-fa09-4ddf-ad8c-ee4857dad78a" || s.Title != "Look." || s.Project != "/home/mira/quay" || s.Wire != furl.FormatAnthropic || s.Messages != 10 || s.Calls != 4 || s.Results != 4 {
		t.Errorf("id %q, title %q, project %q, wire %q, %d messages, %d calls, %d results", s.ID, s.Title, s.Project, s.Wire, s.Messages, s.Calls, s.Results)
	}
	const want = "usage is recorded as a sum only: 9,848 fresh, 28,416 read and 0 written input tokens, 140 output tokens"
	if n, sum := sumUsage(s); n != 4 || sum != (furl.Usage{}) || len(recs[0].Notes) != 1 || recs[0].Notes[0] != want {
		t.Errorf("%d requests used %+v, notes %q", n, sum, recs[0].Notes)
	}
	checkRequests(t, s, true)
}

// A message that follows an earlier one starts a branch. A compaction hides
// everything up to its anchor. What only the user sees is not sent.
func TestDroidTree(t *testing.T) {
	rec, err := Read("s.jsonl", strings.NewReader(`{"type":"session_start","id":"s","version":2,"cwd":"/w","title":"Go","callingSessionId":"p"}
{"type":"message","id":"1","timestamp":"2026-11-27T17:13:37.041Z","message":{"role":"user","content":"Go."}}
{"type":"message","id":"2","parentId":"1","timestamp":"2026-11-27T17:13:38.041Z","message":{"role":"assistant","content":[{"type":"text","text":"Gone."}]}}
{"type":"message","id":"3","parentId":"2","timestamp":"2026-11-27T17:13:39.041Z","message":{"role":"user","content":"Wrong."}}
{"type":"message","id":"4","parentId":"2","timestamp":"2026-11-27T17:13:40.041Z","message":{"role":"user","content":"Right."}}
{"type":"message","id":"5","parentId":"4","timestamp":"2026-11-27T17:13:41.041Z","message":{"role":"assistant","visibility":"user_only","content":"Shown."}}
{"type":"compaction_state","id":"c","timestamp":"2026-11-27T17:13:42.041Z","summaryText":"Went.","anchorMessage":{"id":"2","index":1}}
{"type":"compaction_state","id":"d","timestamp":"2026-11-27T17:13:42.041Z","summaryText":"Lost.","anchorMessage":{"id":"9"}}
{"type":"message","id":"6","parentId":"5","timestamp":"2026-11-27T17:13:43.041Z","message":{"role":"assistant","content":"Yes."}}
{"type":"message","id":"7","parentId":"6","timestamp":7,"message":{"role":"robot","content":{}}}
{"type":"mess`))
	if err != nil {
		t.Fatal(err)
	}
	s := rec.Sessions[0]
	if rec.Format != "droid" || s.Parent != "p" || s.Compactions != 1 || len(rec.Skipped) != 3 {
		t.Errorf("%s, parent %q, %d compactions, skipped %v", rec.Format, s.Parent, s.Compactions, rec.Skipped)
	}
	wantShown(t, s, "user Went.", "user Right.", "assistant Yes.")
}
