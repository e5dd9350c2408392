package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
)

// What a model recalled stays in its prompt also where the client sends its
// answers back in other words: with the texts in one, or without any.
func TestRecallForClientsThatReword(t *testing.T) {
	for name, words := range map[string]string{"dropped": "", "joined": "Let me look.It said hello.", "the last alone": "It said hello."} {
		t.Run(name, func(t *testing.T) {
			eachFormat(t, func(t *testing.T, a *agent) {
				if a.format == furl.FormatResponses && name == "the last alone" {
					return // in Responses each text is an item, which a client leaves out or not
				}
				st := recallFixture(t, `
-- 1 --
text: Let me look.
call: memory_search {"query":"nothing"}
-- 2 --
text: It said hello.
call: read {"path":"a.txt"}
-- 3 --
text: Done.
-- 4 --
text: Goodbye.
`)
				a.say("hello there")
				reply := a.reply(t, st)
				id := ""
				for _, m := range reply.Messages {
					for _, b := range m.Blocks {
						if b.Kind == furl.KindCall {
							id = b.ID
						}
					}
				}
				a.history = append(a.history[:1], a.answer(words, id)...)
				a.result(id, "what is in a.txt")
				a.reply(t, st)
				a.say("bye")
				a.reply(t, st)
				st.accepted(t, a, 4)
				// Once among the tools, and once as it was called.
				if last := string(st.sim.Requests()[3].Body); strings.Count(last, `"`+exchange.ToolSearch+`"`) < 2 {
					t.Errorf("the last prompt has nothing of what was recalled: %s", last)
				}
				if list := st.list(t); len(list) != 1 {
					t.Errorf("%d sessions, want 1", len(list))
				}
			})
		})
	}
}

// answer gives a model's answer in the client's words.
func (a *agent) answer(words, id string) []json.RawMessage {
	args := `{"path":"a.txt"}`
	switch a.format {
	case furl.FormatAnthropic:
		content := []any{map[string]any{"type": "tool_use", "id": id, "name": "read", "input": json.RawMessage(args)}}
		if words != "" {
			content = append([]any{map[string]any{"type": "text", "text": words}}, content...)
		}
		return []json.RawMessage{mustJSON(map[string]any{"role": "assistant", "content": content})}
	case furl.FormatChat:
		m := map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "read", "arguments": args}}}}
		if words != "" {
			m["content"] = words
		}
		return []json.RawMessage{mustJSON(m)}
	}
	var list []json.RawMessage
	if words != "" {
		list = append(list, mustJSON(map[string]any{"role": "assistant", "content": words}))
	}
	return append(list, mustJSON(map[string]any{"type": "function_call", "call_id": id, "name": "read", "arguments": args}))
}
