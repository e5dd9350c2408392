package transcript

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// The metrics of the file's replies add up to 25,217 input tokens, of which
// 19,584 were read from the cache, and 149 output tokens, as in the session's
// description.
func TestCline(t *testing.T) {
	s := only(t, fixture(t, "cline.json"))
	if s.ID != "1795799433422_2r3if" || s.Model != "gpt-5.4" || s.Wire != furl.FormatChat || s.Messages != 11 || s.Calls != 5 || s.Results != 5 {
		t.Errorf("id %q, model %q, wire %q, %d messages, %d calls, %d results", s.ID, s.Model, s.Wire, s.Messages, s.Calls, s.Results)
	}
	n, sum := sumUsage(s)
	if want := (furl.Usage{Input: 25217 - 19584, CacheRead: 19584, Output: 149}); n != 5 || sum != want {
		t.Errorf("%d requests used %+v, want 5 and %+v", n, sum, want)
	}
	failed := 0
	for i := 1; i <= s.Log.Len(); i++ {
		if m, ok := s.Log.At(furl.Seq(i)).Body.(*furl.Message); ok {
			for _, b := range m.Blocks {
				if b.Kind == furl.KindResult && b.Error {
					failed++
				}
			}
		}
	}
	if failed != 1 {
		t.Errorf("%d results failed, want 1", failed)
	}
	checkRequests(t, s, true)
}

// A session is a folder with a description and a file for each agent.
func TestClineFolder(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, map[string]string{
		"1795799433422_2r3if/1795799433422_2r3if.messages.json":        "cline.json",
		"1795799433422_2r3if/agent_1795799434776_789rc9.messages.json": "cline-agent.json",
	}, map[string]string{
		"1795799433422_2r3if/1795799433422_2r3if.json": `{"version":1,"session_id":"1795799433422_2r3if","cwd":"/home/mira/quay","workspace_root":"/home/mira/quay","metadata":{"title":"Look"},"messages_path":"x"}`,
	})
	all := allSessions(t, dir)
	if len(all) != 2 {
		t.Fatalf("read %d sessions", len(all))
	}
	main, agent := all[0], all[1]
	if main.Title != "Look" || main.Project != "/home/mira/quay" || main.Parent != "" {
		t.Errorf("title %q, project %q, parent %q", main.Title, main.Project, main.Parent)
	}
	if agent.Parent != main.ID || agent.ID == main.ID || agent.Project != "/home/mira/quay" || agent.Title != "" {
		t.Errorf("sub-agent %q of %q, project %q, title %q", agent.ID, agent.Parent, agent.Project, agent.Title)
	}
	if n, sum := sumUsage(agent); n != 1 || sum != (furl.Usage{Input: 1873 - 1024, CacheRead: 1024, Output: 10}) {
		t.Errorf("%d requests of the sub-agent used %+v", n, sum)
	}
}

func TestClineBroken(t *testing.T) {
	rec, err := Read("x.messages.json", strings.NewReader(`{"version":1,"sessionId":"../x","agent":"lead","messages":[{"role":"user","content":"<user_input mode=\"act\">Go.</user_input>"},7,{"role":"robot"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":[{"success":false},{"result":[7,{"type":"image"}]}]}]},{"role":"assistant","content":[{"type":"text","text":"Yes."}],"metrics":{"inputTokens":5,"cacheReadTokens":-9,"cacheWriteTokens":90}},{"role":"us`))
	if err != nil {
		t.Fatal(err)
	}
	if rec.Format != "cline" || len(rec.Skipped) < 3 {
		t.Errorf("%s, skipped %v", rec.Format, rec.Skipped)
	}
	wantShown(t, rec.Sessions[0], "user Go.", "assistant Yes.")
	if n, sum := sumUsage(rec.Sessions[0]); n != 1 || sum != (furl.Usage{CacheWrite: 5}) {
		t.Errorf("%d requests used %+v", n, sum)
	}
}

func TestClineTyped(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain",
		`<user_input mode="plan">a <b></user_input>`:       "a <b>",
		`<user_command slash="x">do</user_command>` + "\n": "do",
		`<user_input>never closed`:                         `<user_input>never closed`,
	} {
		if got := clineTyped(text); got != want {
			t.Errorf("clineTyped(%q) = %q, want %q", text, got, want)
		}
	}
}
