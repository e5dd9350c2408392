package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// pathInShort returns the messages of a session's path in short.
func pathInShort(s *Session) string {
	var out []string
	for _, m := range pathMessages(s) {
		var parts []string
		for i := range m.Blocks {
			b := &m.Blocks[i]
			switch {
			case b.Kind == furl.KindText:
				parts = append(parts, b.Text)
			case b.Kind == furl.KindOpaque:
				parts = append(parts, b.Name)
			default:
				parts = append(parts, b.Kind.String()+" "+b.ID)
			}
		}
		out = append(out, string(m.Role)+" "+strings.Join(parts, ", "))
	}
	return strings.Join(out, " | ")
}

// Two processes that resumed one session write into its file: the records of their replies
// are between each other, and each reply is one message and one request.
func TestClaudeInterleavedReplies(t *testing.T) {
	line := func(uuid, parent, kind, id, content string) string {
		message := fmt.Sprintf(`{"role":%q,"content":%s}`, kind, content)
		if id != "" {
			message = fmt.Sprintf(`{"id":%q,"role":"assistant","model":"claude-opus-5-5","content":%s,"usage":{"input_tokens":100,"output_tokens":7}}`, id, content)
		}
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"s","message":%s}`, kind, uuid, parent, message)
	}
	rec, err := Read("s.jsonl", strings.NewReader(strings.Join([]string{
		line("u1", "null", "user", "", `"Begin."`),
		line("a1", `"u1"`, "assistant", "m1", `[{"type":"text","text":"Begun."}]`),
		line("u2", `"a1"`, "user", "", `"First window."`),
		line("u3", `"a1"`, "user", "", `"Second window."`),
		line("a2", `"u2"`, "assistant", "m2", `[{"type":"text","text":"One, part 1."}]`),
		line("a3", `"u3"`, "assistant", "m3", `[{"type":"text","text":"Two, part 1."}]`),
		line("a4", `"a2"`, "assistant", "m2", `[{"type":"tool_use","id":"c1","name":"Bash","input":{}}]`),
		line("a5", `"a3"`, "assistant", "m3", `[{"type":"tool_use","id":"c2","name":"Bash","input":{}}]`),
		line("a6", `"a5"`, "assistant", "m2", `[{"type":"text","text":"One, part 1."}]`), // a copy
		line("r1", `"a4"`, "user", "", `[{"type":"tool_result","tool_use_id":"c1","content":"one"}]`),
		line("r2", `"a5"`, "user", "", `[{"type":"tool_result","tool_use_id":"c2","content":"two"}]`),
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	s := rec.Sessions[0]
	if got, want := pathInShort(s), "user Begin. | assistant Begun. | user Second window. | assistant Two, part 1., call c2 | user result c2"; got != want {
		t.Errorf("path\n%s\nwant\n%s", got, want)
	}
	output, other := 0, 0
	for _, r := range s.Log.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			output += b.Usage.Output
		case *furl.Message:
			if hasResult(b) && b.Blocks[0].ID == "c1" {
				other++
			}
		}
	}
	if output != 21 || other != 1 || len(rec.Skipped)+len(rec.Notes) > 0 {
		t.Errorf("%d tokens, want 21 of 3 replies; %d results on the other branch, want 1; %v %v", output, other, rec.Skipped, rec.Notes)
	}
}

// What the user types, and what the client adds, while a tool of the provider runs follows its
// answer: a provider refuses it between the two.
func TestClaudeBetweenHalves(t *testing.T) {
	reply := func(uuid, parent, id, content string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":%q,"parentUuid":%q,"sessionId":"s","message":{"id":%q,"role":"assistant","model":"claude-opus-5-5","content":%s,"usage":{"input_tokens":100,"output_tokens":7}}}`, uuid, parent, id, content)
	}
	user := func(uuid, parent, content string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%s,"sessionId":"s","message":{"role":"user","content":%s}}`, uuid, parent, content)
	}
	fetch := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{"url":"https://example.com"}}`
	fetched := `{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"web_fetch_result","url":"https://example.com","content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}}}}`
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"results of the client between": {[]string{
			user("u1", "null", `"Do it."`),
			reply("a1", "u1", "m1", "["+fetch+`,{"type":"tool_use","id":"c1","name":"Bash","input":{}}]`),
			user("u2", `"a1"`, `"By the way."`),
			user("r1", `"a1"`, `[{"type":"tool_result","tool_use_id":"c1","content":"one"}]`),
			`{"type":"attachment","uuid":"x1","parentUuid":"r1","sessionId":"s","attachment":{"type":"date"},"rendered":[{"content":"It is Sunday."}],"renderedRole":"system"}`,
			reply("a2", "x1", "m2", "["+fetched+`,{"type":"text","text":"Done."}]`),
		}, "user Do it. | assistant server_tool_use, call c1 | user result c1 | assistant web_fetch_tool_result, Done. | user By the way. | user It is Sunday."},
		"the answer continues the reply": {[]string{
			user("u1", "null", `"Do it."`),
			reply("a1", "u1", "m1", "["+fetch+`]`),
			user("u2", `"a1"`, `"By the way."`),
			reply("a2", "u2", "m2", "["+fetched+`,{"type":"text","text":"Done."}]`),
			user("u3", `"a2"`, `"Thanks."`),
		}, "user Do it. | assistant server_tool_use | assistant web_fetch_tool_result, Done. | user By the way. | user Thanks."},
		"no answer": {[]string{
			user("u1", "null", `"Do it."`),
			reply("a1", "u1", "m1", "["+fetch+`]`),
			user("u2", `"a1"`, `"By the way."`),
			reply("a2", "u2", "m2", `[{"type":"text","text":"Done."}]`),
		}, "user Do it. | assistant server_tool_use | user By the way. | assistant Done."},
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := Read("s.jsonl", strings.NewReader(strings.Join(c.lines, "\n")))
			if err != nil {
				t.Fatal(err)
			}
			if got := pathInShort(rec.Sessions[0]); got != c.want {
				t.Errorf("path\n%s\nwant\n%s", got, c.want)
			}
			if name != "no answer" {
				checkRequests(t, rec.Sessions[0], true)
				if !strings.Contains(fmt.Sprint(rec.Notes), "behind the answer of a tool that the provider runs") {
					t.Errorf("notes %v", rec.Notes)
				}
			}
		})
	}
}
