package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// A session of Qwen Code 0.24.4 with parallel calls, a failed one, an image, a sub-agent, and a compression.
func TestQwen(t *testing.T) {
	s := only(t, fixture(t, "qwen.jsonl"))
	if s.ID != "2f93bdd8-bd83-4f24-8e83-706ad27d82a1" || s.Project != "/home/user/project" || s.Model != "gpt-5.4" || s.Wire != furl.FormatChat || s.Compactions != 1 || s.Calls != 6 || s.Results != 6 {
		t.Errorf("id %q, project %q, model %q, wire %q, %d compactions, %d calls, %d results", s.ID, s.Project, s.Model, s.Wire, s.Compactions, s.Calls, s.Results)
	}
	// The sum of usageMetadata of all replies.
	var sum furl.Usage
	ex, at := exchanges(s)
	for _, x := range ex {
		sum = sum.Add(x.Usage)
	}
	if want := (furl.Usage{Input: 24232, CacheRead: 133632, Output: 209, Reasoning: 8}); sum != want || at[0].IsZero() {
		t.Errorf("usage %+v, want %+v", sum, want)
	}
	for _, r := range s.Log.Records(0) {
		if c, ok := r.Body.(*furl.Reduction); ok && c.Summary != nil && (c.Summary.Usage != furl.Usage{Input: 20491 - 19584, CacheRead: 19584, Output: 25} || !strings.HasPrefix(c.Summary.Text, "<state_snapshot>")) {
			t.Errorf("the compression is %+v", c.Summary)
		}
	}
	checkRequests(t, s, true)
}

// The file of a sub-agent names no model: it is that of the session.
func TestQwenSubAgent(t *testing.T) {
	root := t.TempDir()
	chat, err := os.ReadFile("testdata/qwen.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	id := "2f93bdd8-bd83-4f24-8e83-706ad27d82a1"
	const sub = `{"uuid":"a","parentUuid":null,"sessionId":"2f93bdd8-bd83-4f24-8e83-706ad27d82a1","timestamp":"2026-11-27T17:06:00.789Z","type":"user","cwd":"/home/user/project","agentId":"general-purpose-call_1","isSidechain":true,"message":{"role":"user","parts":[{"text":"Count the lines"}]}}
{"uuid":"b","parentUuid":"a","sessionId":"2f93bdd8-bd83-4f24-8e83-706ad27d82a1","timestamp":"2026-11-27T17:06:01.749Z","type":"assistant","agentId":"general-purpose-call_1","isSidechain":true,"message":{"role":"model","parts":[{"text":"There are 3 lines."}]},"usageMetadata":{"promptTokenCount":13766,"candidatesTokenCount":10,"thoughtsTokenCount":0,"totalTokenCount":13776,"cachedContentTokenCount":3456}}
`
	for name, data := range map[string][]byte{"chats/" + id + ".jsonl": chat, "subagents/" + id + "/agent-general-purpose-call_1.jsonl": []byte(sub)} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := walked(t, root)
	if len(list) != 2 {
		t.Fatalf("%d recordings", len(list))
	}
	s := only(t, list[1])
	if s.Parent != id || s.ID != "general-purpose-call_1" || s.Model != "gpt-5.4" {
		t.Errorf("id %q, parent %q, model %q", s.ID, s.Parent, s.Model)
	}
}

// What the user went back from is a branch; results are in order also where other records are between them.
func TestQwenRewind(t *testing.T) {
	lines := []string{
		`{"uuid":"1","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"One."}]}}`,
		`{"uuid":"2","parentUuid":"1","sessionId":"s","type":"assistant","model":"claude-sonnet-4-5","message":{"role":"model","parts":[{"functionCall":{"id":"a","name":"read","args":{}}},{"functionCall":{"id":"b","name":"read","args":{}}}]},"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":15}}`,
		`{"uuid":"3","parentUuid":"2","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"b","response":{"output":"B"}}}]}}`,
		`{"uuid":"4","parentUuid":"3","sessionId":"s","type":"system","subtype":"ui_telemetry","systemPayload":{}}`,
		`{"uuid":"5","parentUuid":"4","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"a","response":{"output":"A"}}}]}}`,
		`{"uuid":"6","parentUuid":"5","sessionId":"s","type":"assistant","model":"claude-sonnet-4-5","message":{"role":"model","parts":[{"text":"Done."}]}}`,
		`{"uuid":"7","parentUuid":"6","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Two."}]}}`,
		`{"uuid":"8","parentUuid":"7","sessionId":"s","type":"assistant","model":"claude-sonnet-4-5","message":{"role":"model","parts":[{"text":"Wrong."}]}}`,
		`{"uuid":"9","parentUuid":"6","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Three."}]}}`,
		`{"uuid":"10","parentUuid":"9","sessionId":"s","type":"robot"}`,
		`{"uuid":"11","parentUuid":"10","sessionId":"s","type":"assistant","message":7}`,
	}
	rec, err := Read("s.jsonl", strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	s := rec.Sessions[0]
	wantShown(t, s, "user One.", "assistant call:a call:b", "user result:b result:a", "assistant Done.", "user Three.")
	if ex, _ := exchanges(s); ex[0].Usage != (furl.Usage{Input: 10, Output: 5, Reasoning: 3}) || len(rec.Skipped) != 1 {
		t.Errorf("usage %+v, skipped %v", ex[0].Usage, rec.Skipped)
	}
	checkRequests(t, s, true)
}
