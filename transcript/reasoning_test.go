package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// Reasoning of interrupted replies, and items written twice, are not sent;
// reasoning at the end of a recording stays.
func TestReasoningWithoutOutput(t *testing.T) {
	line := func(typ, payload string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00Z","type":%q,"payload":%s}`, typ, payload) + "\n"
	}
	item := func(payload string) string { return line("response_item", payload) }
	user := item(`{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}`)
	thought := func(id string) string {
		return item(fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"x"}`, id))
	}
	count := func(n int) string {
		return line("event_msg", fmt.Sprintf(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"total_tokens":%d},"last_token_usage":{"input_tokens":10,"total_tokens":10}}}`, n, n))
	}
	call := item(`{"type":"function_call","name":"n","arguments":"{}","call_id":"c"}`) + item(`{"type":"function_call_output","call_id":"c","output":"r"}`)
	data := line("session_meta", `{"id":"s"}`) + user +
		thought("rs_1") + count(10) + user + // interrupted
		thought("rs_2") + thought("rs_2") + call + count(20) +
		thought("rs_2") + item(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}`) + count(30) + user +
		thought("rs_3") + count(40)
	rec, err := Read("rollout.jsonl", strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	s := rec.Sessions[0]
	if n := checkRequests(t, s, false); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	var ids []string
	for i := 1; i <= s.Log.Len(); i++ {
		if m, ok := s.Log.At(furl.Seq(i)).Body.(*furl.Message); ok && m.Blocks[0].Kind == furl.KindThinking {
			ids = append(ids, m.Blocks[0].ID)
		}
	}
	if got := strings.Join(ids, " "); got != "rs_2 rs_3" {
		t.Errorf("reasoning %s, want rs_2 rs_3", got)
	}
	if len(rec.Skipped) != 2 || !strings.Contains(strings.Join(rec.Notes, "\n"), "skipped 1 reasoning item without any output") {
		t.Errorf("skipped %v, notes %q", rec.Skipped, rec.Notes)
	}
}
