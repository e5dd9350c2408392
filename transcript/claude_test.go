package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// fixture reads a file of testdata.
func fixture(t *testing.T, name string) *Recording {
	t.Helper()
	rec, err := ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// only returns the single session of a recording without skipped records.
func only(t *testing.T, rec *Recording) *Session {
	t.Helper()
	if len(rec.Sessions) != 1 {
		t.Fatalf("%d sessions, want 1", len(rec.Sessions))
	}
	for _, s := range rec.Skipped {
		t.Errorf("skipped line %d: %s", s.Line, s.Reason)
	}
	return rec.Sessions[0]
}

// wantShown checks what the model sees at the end of a session.
func wantShown(t *testing.T, s *Session, want ...string) {
	t.Helper()
	if got := strings.Split(shown(s), " | "); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("session %s: the model sees\n%s\nwant\n%s", s.ID, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func exchanges(s *Session) (list []*furl.Exchange, at []time.Time) {
	for i := 1; i <= s.Log.Len(); i++ {
		if ex, ok := s.Log.At(furl.Seq(i)).Body.(*furl.Exchange); ok {
			list, at = append(list, ex), append(at, s.Log.At(furl.Seq(i)).At)
		}
	}
	return list, at
}

func TestClaudeReply(t *testing.T) {
	rec := fixture(t, "claude-main.jsonl")
	if rec.Format != "claude-code" || rec.Agent != "Claude Code" {
		t.Errorf("format %q, agent %q", rec.Format, rec.Agent)
	}
	s := only(t, rec)
	wantShown(t, s,
		"user Why is the price 10.004?",
		"assistant Look at both files. call:c1 call:c2",
		"user result:c1 result:c2 [look in lib]",
		"assistant Rounding is missing.",
		"user <local-command-caveat>Caveat</local-command-caveat>",
		"user Fix it.",
		"assistant call:c3",
		"user result:c3",
		"assistant Done.",
	)
	if s.Title != "Price rounding" || s.Model != "claude-sonnet-4-6" || s.Parent != "" || s.Wire != furl.FormatAnthropic {
		t.Errorf("title %q, model %q, parent %q, wire %q", s.Title, s.Model, s.Parent, s.Wire)
	}
	if s.Messages != 13 || s.Calls != 3 || s.Results != 3 {
		t.Errorf("%d messages, %d calls, %d results; want 13, 3, 3", s.Messages, s.Calls, s.Results)
	}
	_, reply := s.Log.State().Message(1)
	const want = `{"role":"assistant","content":[{"type":"thinking","thinking":"Look at both files.","signature":"c2lnbmF0dXJl"},` +
		`{"type":"tool_use","id":"c1","name":"Read","input":{"file":"price.go","limit":1.0}},` +
		`{"type":"tool_use","id":"c2","name":"Read","input":{"file":"tax.go"}}]}`
	if string(reply.Raw) != want {
		t.Errorf("the reply was sent as\n%s\nwant\n%s", reply.Raw, want)
	}
	list, at := exchanges(s)
	if len(list) != 4 {
		t.Fatalf("%d requests, want 4", len(list))
	}
	if u := list[0].Usage; u.Output != 90 || u.Input != 3 || u.CacheWrite1h != 100 || list[0].Stop != "tool_use" || list[0].ResponseID != "msg_1" {
		t.Errorf("the first request reports %+v, stop %q, id %q", u, list[0].Stop, list[0].ResponseID)
	}
	// The second request was sent after the last result arrived.
	if want := time.Date(2026, 3, 1, 10, 1, 20, 0, time.UTC); !at[1].Equal(want) {
		t.Errorf("the second request was sent at %v, want %v", at[1], want)
	}
}

func TestClaudeBranches(t *testing.T) {
	s := only(t, fixture(t, "claude-branches.jsonl"))
	wantShown(t, s, "user Name a town.", "assistant Bern.")
	var parents []string
	for i := 1; i <= s.Log.Len(); i++ {
		r := s.Log.At(furl.Seq(i))
		if head, ok := r.Body.(*furl.Head); ok {
			st, err := furl.Fold(s.Log, head.From)
			if err != nil {
				t.Fatal(err)
			}
			_, m := st.Message(st.Len() - 1)
			to := "the start"
			if r.Parent != 0 {
				to = s.Log.At(r.Parent).Body.(*furl.Message).Blocks[0].Text
			}
			parents = append(parents, m.Blocks[0].Text+" to "+to)
		}
	}
	if got, want := strings.Join(parents, ", "), "Green. to Red., Maroon. to the start"; got != want {
		t.Errorf("rewinds from %s, want %s", got, want)
	}
	if list, _ := exchanges(s); len(list) != 4 {
		t.Errorf("%d requests, want 4: those of abandoned branches count", len(list))
	}
}

func TestClaudeCompaction(t *testing.T) {
	s := only(t, fixture(t, "claude-compact.jsonl"))
	wantShown(t, s,
		"user 42 files; folders were asked for.",
		"assistant call:c2", "user result:c2", "assistant 7 folders.",
		"user Thanks.", "assistant You are welcome.", "user Bye.",
	)
	st := s.Log.State()
	if st.ShownBy(furl.Pos{Msg: seqOf(t, s, "c2"), Block: 0}) == 0 {
		t.Error("a cleared result is shown as recorded")
	}
	var reds []*furl.Reduction
	for red := range st.Reductions() {
		reds = append(reds, red.Reduction)
	}
	if len(reds) != 3 || s.Compactions != 2 {
		t.Fatalf("%d reductions and %d compactions, want 3 and 2", len(reds), s.Compactions)
	}
	if r := reds[0]; r.Stage != "compact" || r.Before != 155000 || r.Reason != "auto" || r.Summary.Number != 1 || r.Summary.Text != "There are 42 files." || r.Summary.Messages != 4 {
		t.Errorf("first compaction %+v, %+v", r, r.Summary)
	}
	if r := reds[1]; r.Before != 90000 || r.After != 900 || r.Summary.Number != 2 || r.Summary.Messages != 1 {
		t.Errorf("second compaction %+v, %+v", r, r.Summary)
	}
	if in, ok := reds[2].Items[0].Show.(furl.In); !ok || reds[2].Stage != "mask" || in.Text != "[Old tool result content cleared]" {
		t.Errorf("clearing %+v", reds[2])
	}
	if w := s.Windows[s.Model]; w != 200_000 {
		t.Errorf("window %d: automatic compaction at 155,000 tokens means 200,000", w)
	}
	// Before the first compaction everything was shown.
	list := s.Log.Path(s.Log.Head())
	for i, r := range list {
		if _, ok := r.Body.(*furl.Reduction); ok {
			st, err := furl.Fold(s.Log, list[i-1].Seq)
			if err != nil {
				t.Fatal(err)
			}
			if v := st.View(furl.Model{}); len(v.Messages) != 4 {
				t.Errorf("%d messages are shown before the first compaction, want 4", len(v.Messages))
			}
			break
		}
	}
}

// seqOf finds the message with the result of a call.
func seqOf(t *testing.T, s *Session, call string) furl.Seq {
	t.Helper()
	st := s.Log.State()
	for i := range st.Len() {
		if seq, m := st.Message(i); m.Blocks[0].Kind == furl.KindResult && m.Blocks[0].ID == call {
			return seq
		}
	}
	t.Fatalf("no result of %s", call)
	return 0
}

func TestClaudeAgents(t *testing.T) {
	rec := fixture(t, "claude-agents.jsonl")
	if len(rec.Sessions) != 3 || len(rec.Skipped) != 0 {
		t.Fatalf("%d sessions, skipped %v; want 3 and none", len(rec.Sessions), rec.Skipped)
	}
	main, chain, agent := rec.Sessions[0], rec.Sessions[1], rec.Sessions[2]
	wantShown(t, main, "user Review this.", "assistant call:c1 call:c2", "user result:c1 result:c2", "assistant All good.", "user Now?")
	wantShown(t, chain, "user Read it.", "assistant call:ck", "user result:ck", "assistant Fine.")
	wantShown(t, agent, "user Test it.", "assistant call:cq", "user result:cq")
	if chain.Parent != main.ID || agent.Parent != main.ID || agent.ID != "7e57ab1e" || chain.Model != "claude-haiku-4-5" {
		t.Errorf("parents %q %q, want %q; id %q, model %q", chain.Parent, agent.Parent, main.ID, agent.ID, chain.Model)
	}
	if main.Calls != 2 || chain.Calls != 1 || agent.Calls != 1 {
		t.Errorf("calls %d %d %d, want 2 1 1", main.Calls, chain.Calls, agent.Calls)
	}
}

// A sub-agent with its own file is not read twice.
func TestClaudeAgentFile(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "claude-agents.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sub := filepath.Join(dir, "0b8d6c1e-0000-4000-8000-000000000001", "subagents")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	own := `{"type":"user","isSidechain":true,"agentId":"7e57ab1e","sessionId":"0b8d6c1e-0000-4000-8000-000000000001","uuid":"q1","parentUuid":null,"message":{"role":"user","content":"Test it."}}`
	for name, text := range map[string]string{filepath.Join(dir, "main.jsonl"): string(data), filepath.Join(sub, "agent-7e57ab1e.jsonl"): own} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agents := 0
	for rec, err := range Walk(dir) {
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Sessions {
			if s.ID == "7e57ab1e" {
				agents++
				if s.Parent != "0b8d6c1e-0000-4000-8000-000000000001" {
					t.Errorf("parent %q", s.Parent)
				}
			}
		}
	}
	if agents != 1 {
		t.Errorf("the sub-agent was read %d times, want once", agents)
	}
}

func TestClaudeExtras(t *testing.T) {
	s := only(t, fixture(t, "claude-extras.jsonl"))
	wantShown(t, s,
		"user Start.", "assistant call:c1", "user result:c1",
		"user Use tabs.", "user And short names.", "user Branch: main\nClean", "user 1 package a", "user Be brief.", "user package b",
		"assistant Done.", "user Next.",
	)
	if s.Title != "Tabs and names" {
		t.Errorf("title %q", s.Title)
	}
}

func TestClaudeBroken(t *testing.T) {
	rec := fixture(t, "claude-broken.jsonl")
	if len(rec.Sessions) != 1 {
		t.Fatalf("%d sessions, want 1", len(rec.Sessions))
	}
	s := rec.Sessions[0]
	wantShown(t, s, "user One.", "assistant Two.", "user Three.", "assistant Four.", "user "+nothingBetween, "assistant call:c1", "user none:c1", "user Stop.", "assistant Five.", "user Six.")
	var lines []string
	for _, sk := range rec.Skipped {
		lines = append(lines, fmt.Sprint(sk.Line))
	}
	if got, want := strings.Join(lines, " "), "4 5 6 7 9 11 14"; got != want {
		t.Errorf("skipped lines %s, want %s: %v", got, want, rec.Skipped)
	}
	if len(rec.Notes) != 2 || !strings.Contains(rec.Notes[0], "the missing result") {
		t.Errorf("notes %q", rec.Notes)
	}
}

// A recording that starts in the middle gets a first message.
func TestClaudeNoBeginning(t *testing.T) {
	rec, err := Read("x", strings.NewReader(`{"type":"assistant","parentUuid":"gone","sessionId":"s","uuid":"a","message":{"id":"m","model":"claude","role":"assistant","content":[{"type":"text","text":"So."}],"usage":{"input_tokens":9}}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := only(t, rec)
	wantShown(t, s, "user "+noBeginning, "assistant So.")
	if list, _ := exchanges(s); len(list) != 1 || len(rec.Notes) != 1 {
		t.Errorf("%d requests, notes %v; want one each", len(list), rec.Notes)
	}
}

// Several sessions in one file are separate conversations, unless one
// continues from a record of the other.
func TestClaudeSeveralSessions(t *testing.T) {
	line := func(typ, session, uuid, parent, words string) string {
		if parent != "null" {
			parent = `"` + parent + `"`
		}
		return fmt.Sprintf(`{"type":%q,"sessionId":%q,"uuid":%q,"parentUuid":%s,"message":{"id":"m%s","role":%q,"model":"claude","content":%q}}`, typ, session, uuid, parent, uuid, typ, words)
	}
	rec, err := Read("x", strings.NewReader(strings.Join([]string{
		line("user", "first", "u1", "null", "One."),
		line("user", "other", "v1", "null", "Alone."),
		line("assistant", "first", "u2", "u1", "Two."),
		line("user", "resumed", "u3", "u2", "Three."),
		line("assistant", "resumed", "u4", "u3", "Four."),
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Sessions) != 2 {
		t.Fatalf("%d sessions, want 2", len(rec.Sessions))
	}
	wantShown(t, rec.Sessions[0], "user One.", "assistant Two.", "user Three.", "assistant Four.")
	wantShown(t, rec.Sessions[1], "user Alone.")
	if rec.Sessions[0].ID != "resumed" || rec.Sessions[1].ID != "other" {
		t.Errorf("ids %q and %q, want resumed and other", rec.Sessions[0].ID, rec.Sessions[1].ID)
	}
}

// The stream that Claude Code prints for programs has the same records, with
// other field names for the links.
func TestClaudeStream(t *testing.T) {
	rec, err := Read("x", strings.NewReader(`{"type":"system","subtype":"init","session_id":"s","tools":["Task"],"model":"claude-x"}
{"type":"user","message":{"role":"user","content":"Go."},"parent_tool_use_id":null,"session_id":"s"}
{"type":"assistant","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"Task","input":{}}],"usage":{"input_tokens":7,"output_tokens":2}},"parent_tool_use_id":null,"session_id":"s","uuid":"a"}
{"type":"user","message":{"role":"user","content":"Look."},"parent_tool_use_id":"t1","session_id":"s","uuid":"b"}
{"type":"assistant","message":{"id":"m2","role":"assistant","model":"claude-y","content":[{"type":"text","text":"Seen."}]},"parent_tool_use_id":"t1","session_id":"s","uuid":"c"}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"Seen."}]},"parent_tool_use_id":null,"session_id":"s","uuid":"d"}
{"type":"result","subtype":"success","result":"Done.","session_id":"s"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if rec.Format != "claude-code" || len(rec.Sessions) != 2 || len(rec.Skipped) > 0 {
		t.Fatalf("read as %s, %d sessions, skipped %v", rec.Format, len(rec.Sessions), rec.Skipped)
	}
	wantShown(t, rec.Sessions[0], "user Go.", "assistant call:t1", "user result:t1")
	wantShown(t, rec.Sessions[1], "user Look.", "assistant Seen.")
	if s := rec.Sessions[1]; s.ID != "t1" || s.Parent != "s" || s.Model != "claude-y" {
		t.Errorf("sub-agent %q of %q by %q", s.ID, s.Parent, s.Model)
	}
}

// Records written again on resuming are skipped silently; other records with
// a known uuid are reported.
func TestClaudeUUIDsTwice(t *testing.T) {
	const user = `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hello"}}` + "\n"
	const reply = `{"type":"assistant","uuid":"%s","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}]}}` + "\n"
	for _, tt := range []struct {
		name, uuid string
		skipped    int
	}{{"again", "a1", 0}, {"another", "u1", 1}} {
		rec, err := Read("s.jsonl", strings.NewReader(user+user+fmt.Sprintf(reply, tt.uuid)))
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Skipped) != tt.skipped {
			t.Errorf("%s: skipped %v, want %d", tt.name, rec.Skipped, tt.skipped)
		}
	}
}

// A title set by a user takes precedence over one by a model. A file with
// only titles is still a Claude Code file.
func TestClaudeTitles(t *testing.T) {
	const (
		said  = `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hi"}}` + "\n"
		model = `{"type":"ai-title","aiTitle":"By a model","sessionId":"s"}` + "\n"
		own   = `{"type":"custom-title","customTitle":"My own","sessionId":"s"}` + "\n"
	)
	for _, tt := range []struct{ data, want string }{{said + model, "By a model"}, {own + said + model, "My own"}} {
		rec, err := Read("s.jsonl", strings.NewReader(tt.data))
		if err != nil {
			t.Fatal(err)
		}
		if got := only(t, rec).Title; got != tt.want {
			t.Errorf("title %q, want %q", got, tt.want)
		}
	}
	rec, err := Read("s.jsonl", strings.NewReader(`{"type":"mode","mode":"default","sessionId":"s"}`+"\n"+model))
	if err != nil || rec.Format != "claude-code" || len(rec.Sessions) != 0 {
		t.Errorf("%+v, %v", rec, err)
	}
}

// Import puts no text between a call that the provider runs and its answer in the
// next reply, here after a pause.
func TestClaudePausedServerTool(t *testing.T) {
	const head = `"isSidechain":false,"sessionId":"0b8d6c1e-0000-4000-8000-000000000009","version":"2.1.330","cwd":"/home/ada/shop",`
	reply := func(id, parent, content string) string {
		return `{"parentUuid":"` + parent + `",` + head + `"type":"assistant","message":{"model":"claude-opus-4-6","id":"msg_` + id + `","type":"message","role":"assistant","content":[` + content +
			`],"usage":{"input_tokens":100,"output_tokens":5}},"uuid":"` + id + `","timestamp":"2026-03-01T10:09:20.000Z"}`
	}
	rec, err := Read("x.jsonl", strings.NewReader(strings.Join([]string{
		`{"parentUuid":null,` + head + `"type":"user","message":{"role":"user","content":"Start."},"uuid":"u1","timestamp":"2026-03-01T10:09:10.000Z"}`,
		reply("a1", "u1", `{"type":"text","text":"I look."},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"sails"}}`),
		reply("a2", "a1", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"Found."}`),
		reply("a3", "a2", `{"type":"text","text":"Another reply."}`),
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	s := only(t, rec)
	var roles []string
	for i := range s.Log.State().Len() {
		_, m := s.Log.State().Message(i)
		roles = append(roles, string(m.Role))
	}
	if got := strings.Join(roles, " "); got != "user assistant assistant user assistant" {
		t.Errorf("roles %s; want text only between the replies that are no pair", got)
	}
}
