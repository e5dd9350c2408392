package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

func TestNanocoder(t *testing.T) {
	s := only(t, fixture(t, "nanocoder.json"))
	if s.ID != "2f1c7c39-6f0e-4a4e-9a3e-0c5e5b5f1a11" || s.Project != "/home/mira/quay" || s.Model != "qwen3-coder:30b" || s.Wire != furl.FormatChat || s.Messages != 8 {
		t.Errorf("id %q, project %q, model %q, wire %q, %d messages", s.ID, s.Project, s.Model, s.Wire, s.Messages)
	}
	wantShown(t, s, "user List the files.", "assistant I look. call:call_1 call:call_2", "tool result:call_1", "tool result:call_2",
		"assistant Two files: go.mod and main.go.", "user Thanks, and the version?", "assistant call:call_3", "tool result:call_3")
	checkRequests(t, s, true)
}

// A session of nanocoder 1.30.0: a call that nanocoder refused, a command that failed, and one that did not.
func TestNanocoderFailed(t *testing.T) {
	s := only(t, fixture(t, "nanocoder-failed.json"))
	var failed []string
	for _, m := range currentBranch(s) {
		for _, b := range m.Blocks {
			switch {
			case b.Error:
				failed = append(failed, "marked "+b.Text)
			case b.ErrorText:
				failed = append(failed, "by its text "+strings.SplitN(b.Text, "\n", 2)[0])
			}
		}
	}
	if got := strings.Join(failed, "|"); got != "marked \u2692 Validation failed: File \"missing.txt\" does not exist|by its text EXIT_CODE: 2" {
		t.Errorf("failed: %q", got)
	}
	if got := contentsOf(s); got.requests != 4 || got.calls != 4 || s.Model != "gpt-5.1" || s.Project != "/home/user/project" {
		t.Errorf("%d requests, %d calls, model %q, project %q", got.requests, got.calls, s.Model, s.Project)
	}
	checkRequests(t, s, true)
}

// Images of the user, and a structured result that is sent in place of its text.
func TestNanocoderSent(t *testing.T) {
	rec, err := Read("s.json", strings.NewReader(`{"id":"x","createdAt":"2026-11-29T09:10:20Z","lastAccessedAt":"","workingDirectory":"/w","model":"gpt-5.1","messages":[
		{"role":"user","content":"Look.","images":[{"data":"aGk=","mediaType":"image/png"}]},
		{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"name":"a","arguments":{}}}]},
		{"role":"tool","tool_call_id":"call_1","content":"short","structuredContent":{"long": [1, 2]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	list := currentBranch(rec.Sessions[0])
	if got := contentsOf(rec.Sessions[0]); len(list) != 3 || got.images != 1 || list[2].Blocks[0].Text != `{"long":[1,2]}` {
		t.Errorf("%d messages, %d images, result %q", len(list), got.images, list[len(list)-1].Blocks[0].Text)
	}
}

func TestNanocoderBroken(t *testing.T) {
	rec, err := Read("s.json", strings.NewReader(`{"id":"x","createdAt":"?","lastAccessedAt":"","workingDirectory":"","model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Go."},7,{"role":"robot","content":"?"},{"role":"tool","tool_call_id":"gone","content":"x"},{"role":"assistant","content":"Yes."},{"role":"us`))
	if err != nil {
		t.Fatal(err)
	}
	if rec.Format != "nanocoder" || len(rec.Sessions) != 1 || len(rec.Skipped) < 3 {
		t.Fatalf("%s: %d sessions, skipped %v", rec.Format, len(rec.Sessions), rec.Skipped)
	}
	wantShown(t, rec.Sessions[0], "user Go.", "assistant Yes.")
}

func TestCodeAssistant(t *testing.T) {
	s := only(t, fixture(t, "code-assistant.json"))
	if s.ID != "chat_5f0c" || s.Title != "Why the test fails" || s.Project != "/home/mira/quay" || s.Model != "Claude Sonnet 4.5" || s.Wire != furl.FormatAnthropic || s.Compactions != 1 {
		t.Errorf("id %q, title %q, project %q, model %q, wire %q, %d compactions", s.ID, s.Title, s.Project, s.Model, s.Wire, s.Compactions)
	}
	wantShown(t, s, "user The test fails because the store sleeps.", "user Go on.", "assistant Done.")
	checkRequests(t, s, true)
	var other strings.Builder // the branch that was left
	for i := 1; i <= s.Log.Len(); i++ {
		if m, ok := s.Log.At(furl.Seq(i)).Body.(*furl.Message); ok {
			for _, b := range m.Blocks {
				other.WriteString(b.Text + "\n")
			}
		}
	}
	for _, want := range []string{"Remove the sleep.", "no such text", "loaded_files", "The store waits for a timer."} {
		if !strings.Contains(other.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	ex, at := exchanges(s)
	if len(ex) != 5 || ex[0].Usage != (furl.Usage{Input: 12, Output: 40, CacheWrite: 900}) || at[0].IsZero() {
		t.Errorf("%d requests, the first %+v at %v", len(ex), ex[0].Usage, at)
	}
}

// Older versions store a list of messages.
func TestCodeAssistantList(t *testing.T) {
	rec, err := Read("s.json", strings.NewReader(`{"id":"c","name":"n","created_at":{"secs_since_epoch":1,"nanos_since_epoch":0},"updated_at":{"secs_since_epoch":1,"nanos_since_epoch":0},
		"messages":[{"role":"user","content":"Go."},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}]},{"role":"robot","content":"?"},{"role":"assistant","content":"Done."}],
		"tool_executions":[],"init_path":"/p"}`))
	if err != nil {
		t.Fatal(err)
	}
	if rec.Format != "code-assistant" || len(rec.Skipped) != 1 || rec.Sessions[0].Project != "/p" {
		t.Fatalf("%s, skipped %v", rec.Format, rec.Skipped)
	}
	wantShown(t, rec.Sessions[0], "user Go.", "assistant call:a", "tool result:a", "assistant Done.")
}

// The lists of sessions next to them are skipped.
func TestSessionLists(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sessions.json": `[{"id":"x","title":"t","createdAt":"2026-03-02T09:15:00Z","lastAccessedAt":"2026-03-02T09:15:00Z","messageCount":1,"provider":"p","model":"m","workingDirectory":"/w"}]`,
		"metadata.json": `[{"id":"c","name":"n","created_at":{"secs_since_epoch":1},"updated_at":{"secs_since_epoch":1},"message_count":1,"tool_syntax":"native","initial_project":""}]`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for rec, err := range Walk(dir) {
		t.Errorf("read %+v, %v", rec, err)
	}
}
