package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// Copilot CLI 1.0.102 records the usage of each request, and the events of sub-agents with their ids.
func TestCopilotUsage(t *testing.T) {
	rec := fixture(t, "copilot-usage.jsonl")
	if len(rec.Sessions) != 2 || len(rec.Skipped) > 0 {
		t.Fatalf("%d sessions, skipped %v", len(rec.Sessions), rec.Skipped)
	}
	main, agent := rec.Sessions[0], rec.Sessions[1]
	if agent.Parent != main.ID || agent.ID != "b223c283-dafa-4774-bae6-b420e2e8e27e" || main.Wire != furl.FormatChat || main.Calls != 5 || main.Results != 5 {
		t.Errorf("the agent %q of %q; %s, %d calls, %d results", agent.ID, agent.Parent, main.Wire, main.Calls, main.Results)
	}
	for s, want := range map[*Session]furl.Usage{ // the sums of usage records
		main:  {Input: 17846, CacheRead: 62720, Output: 246, Reasoning: 8},
		agent: {Input: 9808, Output: 34},
	} {
		var sum furl.Usage
		ex, _ := exchanges(s)
		for _, x := range ex {
			sum = sum.Add(x.Usage)
		}
		if sum != want {
			t.Errorf("%s used %+v, want %+v", s.ID, sum, want)
		}
		checkRequests(t, s, true)
	}
	images, told := 0, 0
	for _, r := range main.Log.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Message:
			if b.Role == furl.RoleSystem {
				told++
			}
			for _, block := range b.Blocks {
				images += len(block.Media)
				if strings.Contains(block.Text, "Count the lines of notes exactly") && b.Role == furl.RoleUser {
					t.Error("the prompt of the agent is in its parent's conversation")
				}
			}
		case *furl.Reduction:
			if want := (furl.Usage{Input: 12754 - 5632, CacheRead: 5632, Output: 34}); b.Summary != nil && b.Summary.Usage != want {
				t.Errorf("the compaction used %+v, want %+v", b.Summary.Usage, want)
			}
		}
	}
	if images != 1 || told != 1 {
		t.Errorf("%d images, instructions %d times; want each once", images, told)
	}
}

// Other files of a session are not recordings. Logs without usage records have sums at their end.
func TestCopilotFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "session-state", "x")
	if err := os.MkdirAll(filepath.Join(dir, "checkpoints"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"workspace.yaml":     "id: x\n",
		"checkpoints/001.md": "# Checkpoint\n",
		"events.jsonl":       `{"type":"session.start","id":"1","timestamp":"2026-01-02T10:00:00Z","data":{"sessionId":"x"}}` + "\n" + `{"type":"user.message","id":"2","timestamp":"2026-01-02T10:00:01Z","data":{"content":"Go."}}` + "\n" + `{"type":"assistant.message","id":"3","timestamp":"2026-01-02T10:00:02Z","data":{"content":"Yes.","model":"claude-sonnet-4.5","outputTokens":4}}` + "\n" + `{"type":"session.shutdown","id":"4","timestamp":"2026-01-02T10:00:03Z","data":{"modelMetrics":{"claude-sonnet-4.5":{"requests":{"count":1},"usage":{"inputTokens":100,"outputTokens":4,"cacheReadTokens":60,"cacheWriteTokens":10}}}}}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := walked(t, filepath.Dir(dir))
	if len(list) != 1 || len(list[0].Notes) != 1 || !strings.Contains(list[0].Notes[0], "1 request used 100 tokens of input, of which 60 were read from the cache and 10 written to it, and 4 of output") {
		t.Errorf("%d recordings, notes %q", len(list), list[0].Notes)
	}
}
