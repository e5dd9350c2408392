package exchange_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire/anthropic"
)

// recallRequest is a request with a tool and these messages.
func recallRequest(t *testing.T, messages ...string) *protocol.Request {
	t.Helper()
	req, err := anthropic.Codec.DecodeRequest([]byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"tools":[{"name":"bash","input_schema":{"type":"object"}}],"messages":[` + strings.Join(messages, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// recallReply is a reply with this content.
func recallReply(t *testing.T, n int, stop, content string) *protocol.Reply {
	t.Helper()
	reply, err := anthropic.Codec.DecodeReply(200, fmt.Appendf(nil,
		`{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%q,"usage":{"input_tokens":50,"output_tokens":5}}`, n, content, stop))
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// An exchange in which recall is asked for goes on with what was answered, later
// requests have it in the same bytes, and so do those for which furl itself
// fails.
func TestAnswer(t *testing.T) {
	store := &broken{Store: inmem.New()}
	all := reopen(t, store, session.Options{})
	how := exchange.BeginOptions{Hints: protocol.Hints{Hint: "a"}, Recall: exchange.OfferRecall}
	user := `{"role":"user","content":"hello there"}`
	x, err := exchange.Of(all).Begin(t.Context(), recallRequest(t, user), how)
	if err != nil || !x.Offered() || !x.IsRecall(exchange.ToolGet) || x.IsRecall("bash") {
		t.Fatalf("%v, offered %t", err, x.Offered())
	}
	if tools := bytes.Count(x.Body, []byte(`"input_schema"`)); tools != 3 {
		t.Errorf("%d tools in %s", tools, x.Body)
	}
	again, err := x.Answer(t.Context(), recallReply(t, 1, "tool_use", `{"type":"text","text":"Hm."},{"type":"tool_use","id":"toolu_1","name":"memory_get","input":{"handle":"furl:1.0"}}`))
	if err != nil || !again || x.Recalls() != 1 {
		t.Fatalf("again %t, %v", again, err)
	}
	second := x.Body
	if !bytes.Contains(second, []byte("toolu_1")) || !bytes.Contains(second, []byte(`hello there\"`)) && !bytes.Contains(second, []byte(`\nhello there`)) {
		t.Errorf("the model is sent %s", second)
	}
	if again, err = x.Answer(t.Context(), recallReply(t, 2, "end_turn", `{"type":"text","text":"It was hello."}`)); err != nil || again {
		t.Fatalf("again %t, %v", again, err)
	}
	x.Drop()

	history := []string{user, `{"role":"assistant","content":[{"type":"text","text":"Hm."},{"type":"text","text":"It was hello."}]}`, `{"role":"user","content":"bye"}`}
	next := recallRequest(t, history...)
	prefix := bytes.TrimSuffix(second, []byte("]}"))
	for _, tc := range []struct {
		name string
		down bool
		how  exchange.BeginOptions
	}{
		{"the next request", false, how},
		{"read again", false, how},
		{"with the setting off", false, exchange.BeginOptions{Hints: protocol.Hints{Hint: "a"}, Recall: exchange.KeepRecall}},
		{"with the store down", true, how},
	} {
		if tc.name == "read again" {
			all = reopen(t, store, session.Options{NewID: func() furl.SessionID { return "another" }})
		}
		if store.Down = tc.down; tc.down {
			next = recallRequest(t, append(history, `{"role":"assistant","content":"Well."}`, `{"role":"user","content":"bye bye"}`)...)
		}
		x, err := exchange.Of(all).Begin(t.Context(), next, tc.how)
		if err == nil {
			_, err = x.Commit(t.Context())
		}
		if err != nil || tc.down != errors.Is(x.Err, errDown) {
			t.Fatalf("%s: %v, %v", tc.name, err, x.Err)
		}
		if !bytes.HasPrefix(x.Body, prefix) || x.Offered() == tc.down {
			t.Errorf("%s: offered %t, sent\n%s\nwhich does not begin with\n%s", tc.name, x.Offered(), x.Body, prefix)
		}
		x.Drop()
	}
	store.Down = false
	if x, err = exchange.Of(all).Begin(t.Context(), next, exchange.BeginOptions{Hints: protocol.Hints{Hint: "a"}}); err != nil || x.Offered() {
		t.Errorf("who does not answer: %v, offered %t", err, x.Offered())
	}
	checked(t, x.Session)
	x.Drop()
	x, err = exchange.Of(all).Begin(t.Context(), recallRequest(t, user), exchange.BeginOptions{Hints: protocol.Hints{Hint: "b"}, Recall: exchange.KeepRecall})
	if err != nil || x.Offered() || x.Reduced {
		t.Errorf("a session that begins without: %v, offered %t", err, x.Offered())
	}
}

// What a model asks for is bounded, and nothing that it asks for is an error of
// furl's.
func TestAnswersAreBounded(t *testing.T) {
	all := reopen(t, inmem.New(), session.Options{})
	long := strings.Repeat(`a line of words\n`, 5000)
	x, err := exchange.Of(all).Begin(t.Context(), recallRequest(t, `{"role":"user","content":"`+long+`"}`), exchange.BeginOptions{Recall: exchange.OfferRecall})
	if err != nil {
		t.Fatal(err)
	}
	calls := []string{
		`"memory_get","input":{"handle":"furl:1.0"}`, `"memory_get","input":{"handle":"[furl:1]","from_line":4999}`,
		`"memory_get","input":{"handle":"furl:1.0","from_line":3,"to_line":4}`, `"memory_get","input":{"handle":"furl:1.0","from_line":9999}`,
		`"memory_get","input":{"handle":"elsewhere/1.0"}`, `"memory_search","input":{"query":7}`, `"memory_search","input":{}`,
		`"memory_search","input":{"query":"` + strings.Repeat("word ", 10_000) + `"}`, `"memory_get","input":{"handle":"furl:1.0"}`,
	}
	var content []string
	for i, c := range calls {
		content = append(content, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%s}`, i, c))
	}
	if again, err := x.Answer(t.Context(), recallReply(t, 1, "tool_use", strings.Join(content, ","))); err != nil || !again {
		t.Fatalf("again %t, %v", again, err)
	}
	var got []*furl.Block
	for _, r := range x.Session.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && r.By == furl.Furl {
			for i := range m.Blocks {
				got = append(got, &m.Blocks[i])
			}
		}
	}
	for i, want := range []string{
		"continue with from_line 1025", "shown from line 4999", "line 3\n\na line of words\na line of words", "Error: line range out of bounds: the text has 5001",
		"Error: unknown handle", "Error: invalid arguments", "Error: empty query", "No hidden content", "Error: too many calls",
	} {
		if i >= len(got) || !strings.Contains(got[i].Text, want) || len(got[i].Text) > 17<<10 || got[i].Error != strings.HasPrefix(want, "Error") {
			t.Errorf("call %d: %d bytes, error %t: %.200s\nwant %s", i, len(got[i].Text), got[i].Error, got[i].Text, want)
		}
	}
	checked(t, x.Session)
	x.Drop()
}
