package policy

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/openai"
)

// chatStep adds a call and its result as Chat Completions has them.
func (s *session) chatStep(i int, output string) furl.Seq {
	s.t.Helper()
	call, err := openai.Chat.DecodeMessage(fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"run","arguments":"{\"n\":%d}"}}]}`, i, i))
	if err != nil {
		s.t.Fatal(err)
	}
	s.add(call)
	result, err := openai.Chat.DecodeMessage(fmt.Appendf(nil, `{"role":"tool","tool_call_id":"c%d","content":%q}`, i, output))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.add(result).Seq
}

// A6: a result that reads like a failure stays, where the format has no flag
// for it, as long as such results take a twentieth of the window: the newest
// ones stay. Placeholders say of the others that they failed.
func TestFailuresByText(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "Fix it.")
	failed := make(map[furl.Seq]bool)
	var order []furl.Seq
	for i := range 20 {
		out := fmt.Sprintf("fine %d ", i) + text(150)
		if i < 8 {
			out = fmt.Sprintf("Error: ENOENT: no such file, open '/srv/%d' ", i) + text(150)
		}
		seq := s.chatStep(i, out)
		if i < 8 {
			failed[seq] = true
			order = append(order, seq)
		}
	}
	b := s.budget(10_000) // a twentieth is 500 tokens: three results
	plan := s.plan(must(t, "tool-age", ToolAge{Text: "[gone: {error}]"}), b)
	var stays []furl.Seq
	for i := range plan.View.Units {
		for _, sb := range plan.View.Units[i].Blocks {
			if failed[sb.Pos.Msg] && sb.By == 0 && sb.Block.Kind == furl.KindResult {
				stays = append(stays, sb.Pos.Msg)
			}
			if failed[sb.Pos.Msg] && sb.By != 0 && len(sb.Text) < len("[gone: Error: ENOENT") {
				t.Errorf("the placeholder %q does not say what failed", sb.Text)
			}
		}
	}
	if len(stays) != 3 || stays[0] != order[5] {
		t.Errorf("records %v stay, want the newest three of %v", stays, order)
	}
	// The same text in a format with a flag, which is not set.
	s = newSession(t)
	s.say(furl.RoleUser, "Fix it.")
	s.step("read", "Error: ENOENT: no such file "+text(150))
	for range 10 {
		s.step("read", "fine "+text(150))
	}
	plan = s.plan(must(t, "tool-age"), s.budget(10_000))
	if first := plan.View.Units[1].Blocks[1]; first.By == 0 {
		t.Errorf("a result without an error flag stays in a format that has one: %q", first.Block.Text[:20])
	}
}
