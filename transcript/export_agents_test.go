package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// agentExports are the exports that are session files of agents with a form of their own.
var agentExports = []string{"codex", "qwen-code", "pi", "opencode"}

// carried lists what an agent's session file keeps of a session: texts of the user and the model,
// calls, and results with the call that they answer. Calls are numbered, because ids may change.
func carried(s *Session) (out []string) {
	calls := make(map[string]int)
	var results []string
	flush := func() {
		slices.Sort(results) // agents keep them with their calls
		out = append(out, results...)
		results = nil
	}
	for _, m := range pathMessages(s) {
		if isInstruction(m.Role) {
			continue
		}
		for i := range m.Blocks {
			b := &m.Blocks[i]
			if b.Kind != furl.KindResult {
				flush()
			}
			switch b.Kind {
			case furl.KindText:
				text, role := strings.TrimSpace(b.Text), string(m.Role)+": "
				switch n := len(out); {
				case text == "":
				case n > 0 && strings.HasPrefix(out[n-1], role): // readers of Chat Completions join texts
					out[n-1] += "\n\n" + text
				default:
					out = append(out, role+text)
				}
			case furl.KindCall:
				calls[b.ID] = len(calls)
				var args any
				_ = json.Unmarshal(callObject(b.Args), &args)
				again, _ := json.Marshal(args)
				out = append(out, fmt.Sprintf("call %d %s %s", len(calls)-1, toolName(b.Name), again))
			case furl.KindResult:
				results = append(results, fmt.Sprintf("result %d %s", calls[b.ID], strings.TrimSpace(b.Text)))
			}
		}
	}
	flush()
	return out
}

// The session file of an agent, read again, has the same texts, calls and results in the same
// order, whatever the format of the session.
func TestExportsForAgents(t *testing.T) {
	for _, wire := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for seed := range uint64(6) {
			s := randomSession(t, wire, seed, 40)
			if len(s.Log.State().OpenCalls()) > 0 {
				continue
			}
			for _, name := range agentExports {
				data, done := export(t, name, s, nil)
				if done.Messages != s.Log.State().Len() {
					t.Errorf("%s of a session in %s: %d messages of %d", name, wire, done.Messages, s.Log.State().Len())
				}
				back := imported(t, s, data)
				want, got := carried(s), carried(back)
				if !slices.Equal(want, got) {
					i := 0
					for i < min(len(want), len(got)) && want[i] == got[i] {
						i++
					}
					t.Errorf("%s of a session in %s, seed %d: from entry %d\n%.200q, want\n%.200q", name, wire, seed, i, got[i:min(i+4, len(got))], want[i:min(i+4, len(want))])
				}
			}
		}
	}
}

// sessionOf is a session with messages in a wire format.
func sessionOf(t *testing.T, wire furl.Format, raws ...string) *Session {
	t.Helper()
	log := furl.NewLog()
	for i, raw := range raws {
		m, err := codecOf(wire).DecodeMessage([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(furl.Seq(i), time.Time{}, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	return &Session{ID: "s", Log: log, Wire: wire}
}

// Providers refuse duplicate ids of calls, and some characters in ids and names. Claude Code loses
// the result of a call whose id is that of an earlier call, _ and a number. A call at the end has
// a result that says that there is none.
func TestExportedCalls(t *testing.T) {
	call := func(id, name string) string {
		return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":"{}"}}]}`, id, name)
	}
	result := func(id, text string) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, text)
	}
	s := sessionOf(t, furl.FormatChat, `{"role":"user","content":"go"}`,
		call("fs.read:0", "fs.read"), result("fs.read:0", "A"), call("fs.read:0", "fs.read"), result("fs.read:0", "B"),
		call("fs_read_0_7", "bash"), result("fs_read_0_7", "C"), call("last", "bash"))
	for _, name := range append([]string{"claude-code"}, agentExports...) {
		data, done := export(t, name, s, nil)
		back := imported(t, s, data)
		var ids, names, results []string
		for _, m := range pathMessages(back) {
			for i := range m.Blocks {
				switch b := &m.Blocks[i]; b.Kind {
				case furl.KindCall:
					ids, names = append(ids, b.ID), append(names, b.Name)
				case furl.KindResult:
					results = append(results, b.ID+" "+b.Text)
				}
			}
		}
		if want := []string{"fs_read_0", "fs_read_0-2", "fs_read_0-7", "last"}; !slices.Equal(ids, want) {
			t.Errorf("%s: calls %q, want %q", name, ids, want)
		}
		if want := []string{"fs_read", "fs_read", "bash", "bash"}; !slices.Equal(names, want) {
			t.Errorf("%s: calls of %q, want %q", name, names, want)
		}
		want := []string{"fs_read_0 A", "fs_read_0-2 B", "fs_read_0-7 C"}
		if name != "claude-code" { // which adds it itself
			want = append(want, "last "+noResult)
		}
		if !slices.Equal(results, want) {
			t.Errorf("%s: results %q, want %q", name, results, want)
		}
		for _, note := range []string{"3 call ids changed", "the tool's name changed in 2 calls", "1 call "} {
			if !slices.ContainsFunc(done.Notes, func(n string) bool { return strings.HasPrefix(n, note) }) {
				t.Errorf("%s: notes %q, want %q", name, done.Notes, note)
			}
		}
	}
}

// Codex drops a message with content of a type that it does not know, and OpenAI refuses a request
// with reasoning of another account. Only Codex's own sessions keep it.
func TestExportForCodex(t *testing.T) {
	s := sessionOf(t, furl.FormatResponses,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"read"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VjcmV0"}`,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"done","annotations":[]}]}`)
	for client, keeps := range map[string]bool{"": false, "opencode": false, "Codex": true} {
		s.Meta.Client = client
		data, done := export(t, "codex", s, nil)
		if !bytes.Contains(data, []byte(`{"type":"input_text","text":"[file a.pdf]"}`)) || bytes.Contains(data, []byte("input_file")) {
			t.Errorf("%q: the document is exported as %s", client, data)
		}
		if got := bytes.Contains(data, []byte("c2VjcmV0")); got != keeps {
			t.Errorf("%q: reasoning kept: %v, want %v", client, got, keeps)
		}
		if got := slices.ContainsFunc(done.Notes, func(n string) bool { return strings.HasPrefix(n, "1 thinking block not exported") }); got == keeps {
			t.Errorf("%q: notes %q", client, done.Notes)
		}
		if bytes.Contains(data, []byte(`"id":"msg_1"`)) != keeps {
			t.Errorf("%q: an item whose reasoning is missing has an id: %s", client, data)
		}
	}
}

// Clients of the API may write a message without a type, and its text as a string. Codex drops
// both.
func TestExportForCodexPlainItems(t *testing.T) {
	s := sessionOf(t, furl.FormatResponses, `{"role":"user","content":"read"}`, `{"role":"assistant","content":"done"}`)
	data, _ := export(t, "codex", s, nil)
	for _, want := range []string{
		`{"role":"user","content":[{"type":"input_text","text":"read"}],"type":"message"}`,
		`{"role":"assistant","content":[{"type":"output_text","text":"done"}],"type":"message"}`,
	} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no item %s in %s", want, data)
		}
	}
}

// A search for tools and the definitions that it found are not for another agent: as texts, they
// would be words of the model and of the user.
func TestExportToolSearch(t *testing.T) {
	s := sessionOf(t, furl.FormatResponses,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"look"}]}`,
		`{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{"query":"github issues"}}`,
		`{"type":"tool_search_output","call_id":"c","execution":"client","status":"completed","tools":[{"type":"function","name":"list_issues","parameters":{"type":"object"}}]}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"found"}]}`)
	for name, keeps := range map[string]bool{"codex": true, "claude-code": false, "qwen-code": false, "pi": false, "opencode": false} {
		data, done := export(t, name, s, nil)
		if bytes.Contains(data, []byte("list_issues")) != keeps || bytes.Contains(data, []byte("github issues")) != keeps {
			t.Errorf("%s: search kept: %v, want %v\n%s", name, !keeps, keeps, data)
		}
		if noted := slices.ContainsFunc(done.Notes, func(n string) bool { return strings.HasPrefix(n, "instructions and tools not exported") }); noted == keeps {
			t.Errorf("%s: notes %q", name, done.Notes)
		}
	}
}
