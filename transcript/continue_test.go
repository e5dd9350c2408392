package transcript

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// The usage of each reply is in the file. Its own sums count only the last
// process that had the session open; the first session had one.
func TestContinue(t *testing.T) {
	for _, tt := range []struct {
		file     string
		requests int
		want     furl.Usage
	}{
		{"continue.json", 5, furl.Usage{Input: 4085, Output: 132, CacheRead: 9501, CacheWrite: 2663}},
		{"continue-fork.json", 6, furl.Usage{Input: 4085, Output: 141, CacheRead: 12164, CacheWrite: 6161}},
	} {
		s := only(t, fixture(t, tt.file))
		if s.Project != "/home/mira/quay" || s.Title != "" || s.Model != "claude-sonnet-4-5" || s.Wire != furl.FormatAnthropic || s.Calls != 4 || s.Results != 4 {
			t.Errorf("%s: project %q, title %q, model %q, wire %q, %d calls, %d results", tt.file, s.Project, s.Title, s.Model, s.Wire, s.Calls, s.Results)
		}
		if n, sum := sumUsage(s); n != tt.requests || sum != tt.want {
			t.Errorf("%s: %d requests used %+v, want %d and %+v", tt.file, n, sum, tt.requests, tt.want)
		}
		checkRequests(t, s, true)
	}
}

// Other models count the cache as a part of the prompt. The editor's summaries
// hide what is before them, and its results are in two places.
func TestContinueEditor(t *testing.T) {
	rec, err := Read("s.json", strings.NewReader(`{"sessionId":"s","title":"Count","workspaceDirectory":"/w","history":[
		{"message":{"role":"user","content":[{"type":"text","text":"Look."},{"type":"imageUrl","imageUrl":{"url":"data:image/png;base64,QQ=="}}]}},
		{"message":{"role":"thinking","content":"Hm."}},
		{"message":{"role":"assistant","content":"","toolCalls":[{"id":"a","function":{"name":"ls","arguments":"{}"}},{"id":"b","function":{"name":"rm","arguments":"{}"}}],
			"usage":{"prompt_tokens":900,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":700},"model":"gpt-5.4"}},
			"toolCallStates":[{"toolCallId":"a","status":"done","output":[{"content":"x"},{"content":"y"}]},{"toolCallId":"b","status":"canceled","output":[{"content":"no"}]},{"toolCallId":"c","status":"done"}]},
		{"message":{"role":"tool","toolCallId":"a","content":"x"}},
		{"message":{"role":"assistant","content":"Done."},"conversationSummary":"Looked."},
		{"message":{"role":"robot","content":"?"}},
		{"message":{"role":"user","content":"Go on."}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := rec.Sessions[0]
	if s.Title != "Count" || s.Compactions != 1 || s.Results != 2 || len(rec.Skipped) != 1 {
		t.Errorf("title %q, %d compactions, %d results, skipped %v", s.Title, s.Compactions, s.Results, rec.Skipped)
	}
	wantShown(t, s, "user Looked.", "user Go on.")
	if _, sum := sumUsage(s); sum != (furl.Usage{Input: 200, CacheRead: 700, Output: 5}) {
		t.Errorf("used %+v", sum)
	}
}

// The list of sessions next to them is skipped.
func TestContinueFolder(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, map[string]string{"43c45d01.json": "continue.json"}, map[string]string{
		"sessions.json": `[{"sessionId":"43c45d01","title":"Untitled Session","dateCreated":"1795799399362","workspaceDirectory":"/home/mira/quay","messageCount":5}]`,
	})
	if all := allSessions(t, dir); len(all) != 1 {
		t.Errorf("read %d sessions", len(all))
	}
}
