package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// eachFormat runs a test in each format, streamed and not.
func eachFormat(t *testing.T, f func(t *testing.T, a *agent)) {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,stream=%t", format, stream), func(t *testing.T) {
				model := "gpt-5"
				if format == furl.FormatAnthropic {
					model = "claude-sonnet-4-5"
				}
				f(t, &agent{format: format, stream: stream, model: model})
			})
		}
	}
}

func script(t testing.TB, text string) *sim.Script {
	t.Helper()
	s, err := sim.ParseScript(t.Name(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recallFixture is a gateway with recall in front of a sim that says what is
// written.
func recallFixture(t testing.TB, text string) *fixture {
	t.Helper()
	return newFixture(t, &sim.Options{Player: script(t, text)}, nil, &gateway.Options{Recall: true})
}

// reply asks and gives the whole reply, which goes into the history.
func (a *agent) reply(t testing.TB, st *fixture, headers ...string) *protocol.Reply {
	t.Helper()
	resp, answer := st.post(t, a.path(), a.body(), headers...)
	if resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", resp.StatusCode, answer)
	}
	if bytes.Contains(answer, []byte(`"memory_`)) { // Responses repeats the request's tools
		t.Errorf("the client is told of furl's tools: %s", answer)
	}
	reply := a.understand(t, answer)
	for _, m := range reply.Messages {
		a.history = append(a.history, m.Raw)
	}
	return reply
}

// result answers a call.
func (a *agent) result(id, text string) {
	switch a.format {
	case furl.FormatAnthropic:
		a.history = append(a.history, mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": text}}}))
	case furl.FormatChat:
		a.history = append(a.history, mustJSON(map[string]any{"role": "tool", "tool_call_id": id, "content": text}))
	default:
		a.history = append(a.history, mustJSON(map[string]any{"type": "function_call_output", "call_id": id, "output": text}))
	}
}

// said lists what a reply is made of, one word each: text, thinking, and the
// names of calls.
func said(reply *protocol.Reply) (parts []string) {
	for _, m := range reply.Messages {
		for _, b := range m.Blocks {
			switch b.Kind {
			case furl.KindCall:
				parts = append(parts, b.Name)
			case furl.KindText:
				parts = append(parts, b.Text)
			default:
				parts = append(parts, b.Kind.String())
			}
		}
	}
	return parts
}

// accepted checks that no request was refused, and that each one's prompt begins
// with the whole of the one before.
func (st *fixture) accepted(t testing.TB, a *agent, requests int) {
	t.Helper()
	log := st.sim.Requests()
	if len(log) != requests {
		t.Errorf("%d requests reached the provider, want %d", len(log), requests)
	}
	var before []string
	for _, r := range log {
		if r.Verdict != sim.VerdictOK {
			t.Errorf("request %d was refused: %s\n%s", r.N, r.Error, r.Body)
		}
		now := a.sent(t, r.Body)
		if len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
			t.Errorf("request %d is no extension of the one before:\n%s\n%s", r.N, strings.Join(before, "\n"), strings.Join(now, "\n"))
		}
		before = now
	}
}

// sent gives the tools and messages of a request, one a line.
func (a *agent) sent(t testing.TB, body []byte) (lines []string) {
	t.Helper()
	var req map[string]json.RawMessage
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	lines = append(lines, string(req["tools"]))
	list := req["messages"]
	if a.format == furl.FormatResponses {
		list = req["input"]
	}
	r := rawjson.NewReader(list)
	for range r.Elements() {
		lines = append(lines, string(r.Raw()))
	}
	return lines
}

const searchGetText = `
-- 1 --
text: Let me look.
call: memory_search {"query":"nothing"}
-- 2 --
call: memory_get {"handle":"furl:1.0"}
-- 3 --
text: It said hello.
-- 4 --
text: Goodbye.
`

// The model searches, gets and speaks; the client has one reply without any of
// the calls, and the model sees them in all later requests.
func TestRecallInAReply(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		st := recallFixture(t, searchGetText)
		a.say("hello there")
		reply := a.reply(t, st)
		want := []string{"Let me look.", "It said hello."}
		if a.format == furl.FormatChat {
			want = []string{"Let me look.\n\nIt said hello."}
		}
		if got := said(reply); !slices.Equal(got, want) {
			t.Errorf("the client has %q, want %q", got, want)
		}
		if !reply.Complete || reply.Stop == "tool_use" || reply.Stop == "tool_calls" {
			t.Errorf("the reply stops with %q", reply.Stop)
		}
		used := furl.Usage{}
		for _, r := range st.sim.Requests() {
			used = used.Add(furl.Usage{Input: r.Usage.Input, CacheRead: r.Usage.CacheRead, CacheWrite: r.Usage.CacheWrite, CacheWrite1h: r.Usage.CacheWrite1h, Output: r.Usage.Output})
		}
		if got := reply.Usage; got.Prompt() != used.Prompt() || got.Output != used.Output || got.CacheRead != used.CacheRead {
			t.Errorf("the client is told of %+v, used were %+v", got, used)
		}
		a.say("bye")
		a.reply(t, st)
		st.accepted(t, a, 4)
		last := string(st.sim.Requests()[3].Body)
		for _, name := range []string{exchange.ToolSearch, exchange.ToolGet, "hello there"} {
			if !strings.Contains(last, name) {
				t.Errorf("the last request has no %s", name)
			}
		}
		s, err := st.sessions.Find(t.Context(), session.Latest)
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("the session: %v %v", problems, err)
		}
		_, view := st.ask(t, "GET", "/sessions/latest/view", "")
		if own := strings.Count(string(mustJSON(view)), `"own":true`); own != 4 { // two calls and their answers
			t.Errorf("%d blocks of the view are marked as furl's own, want 4", own)
		}
		if bytes.Contains(a.body(), []byte("memory_")) {
			t.Error("the client's history has a call of recall")
		}
	})
}

// A reply that calls both furl's tools and the client's: the client gets its
// own call alone, and the model finds both answered.
func TestRecallBesideOtherCalls(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		st := recallFixture(t, `
-- 1 --
think: hm
text: Both at once.
call: memory_get {"handle":"furl:1.0"}
call: bash {"command":"ls"}
call: memory_search {"query":"x"}
-- 2 --
call: memory_get {"handle":"furl:99.0"}
call: bash {"command":"pwd"}
-- 3 --
text: Done.
`)
		a.say("hello there")
		for round, words := range [][]string{{"Both at once.", "bash"}, {"bash"}} {
			reply := a.reply(t, st)
			got := slices.DeleteFunc(said(reply), func(s string) bool { return s == "thinking" })
			if !slices.Equal(got, words) || reply.Stop == "end_turn" || reply.Stop == "stop" {
				t.Fatalf("round %d: the client has %q and %q, want %q", round, got, reply.Stop, words)
			}
			last := reply.Messages[len(reply.Messages)-1]
			a.result(last.Blocks[len(last.Blocks)-1].ID, "file.go")
		}
		a.reply(t, st)
		st.accepted(t, a, 3)
		last := string(st.sim.Requests()[2].Body)
		if strings.Count(last, `"memory_get"`) < 2 || !strings.Contains(last, "hello there\"") && !strings.Contains(last, "unknown handle") {
			t.Errorf("the last request lacks an answer of recall: %s", last)
		}
	})
}

// A model that asks memory again and again is told to stop, and if it does not,
// the client's reply ends all the same.
func TestRecallRoundsAreBounded(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		st := recallFixture(t, `
-- 1 --
text: Again.
call: memory_search {"query":"again"}
repeat: 5
-- 2 --
text: Enough.
`)
		a.say("hello there")
		reply := a.reply(t, st)
		if !reply.Complete || slices.Contains([]string{"tool_use", "tool_calls"}, reply.Stop) {
			t.Errorf("the reply ends with %q", reply.Stop)
		}
		if n := len(st.sim.Requests()); n != 5 {
			t.Errorf("%d requests, want 5", n)
		}
		if last := string(st.sim.Requests()[4].Body); strings.Count(last, "the last call of a memory tool") != 1 {
			t.Error("the model was not told that no more calls are answered")
		}
		a.say("go on")
		reply = a.reply(t, st)
		if got := said(reply); !slices.Equal(got, []string{"Enough."}) {
			t.Errorf("then %q", got)
		}
		st.accepted(t, a, 6)
	})
}

// chunkings are the faults that change how an answer comes and not what it is.
var chunkings = []string{"", "split=bytes", "split=lines", "split=utf8", "args=odd", "args=interleaved", "ping"}

// ownTools are furl's as a provider of Responses repeats them.
var ownTools = regexp.MustCompile(`,\{"type":"function","name":"memory_.*?"strict":false\}`)

// An answer without a call of recall reaches the client byte for byte, however
// it is cut, but for the tools that the client did not send.
func TestRecallIsByteExactWithoutCalls(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		for _, fault := range chunkings {
			st := recallFixture(t, "-- 1 --\nthink: hm\ntext: Grüße, здравствуйте.\ncall: bash {\"command\":\"echo ü\"}\ncall: bash {}\n")
			a.history = nil
			a.say("hello there")
			_, through := st.post(t, a.path(), a.body(), sim.FaultHeader, fault)
			sent := st.sim.Requests()[0]
			want := ownTools.ReplaceAll(sent.Answer, nil)
			if sent.Verdict != sim.VerdictOK || !bytes.Contains(sent.Body, []byte("memory_get")) || !bytes.Equal(through, want) || bytes.Contains(want, []byte("memory_")) {
				t.Errorf("%s: %s %s\nthe client got\n%s\nthe provider sent\n%s", fault, sent.Verdict, sent.Error, through, sent.Answer)
			}
		}
	})
}

// Calls of recall are found in streams however these are cut, beside calls of
// the client's that come by turns with them.
func TestRecallInOddChunks(t *testing.T) {
	eachFormat(t, func(t *testing.T, a *agent) {
		for _, fault := range chunkings[1:] {
			st := recallFixture(t, `
-- 1 --
think: hm
text: Schöne Grüße.
call: memory_get {"handle":"furl:1.0"}
call: memory_search {"query":"Grüße"}
-- 2 --
text: Noch eins.
call: bash {"command":"echo ü"}
call: memory_search {"query":"Grüße"}
call: bash {"command":"ls"}
-- 3 --
text: Ende.
`)
			a.history = nil
			a.say("hello there")
			reply := a.reply(t, st, sim.FaultHeader, fault)
			got := slices.DeleteFunc(said(reply), func(s string) bool { return s == "thinking" })
			want := []string{"Schöne Grüße.", "Noch eins.", "bash", "bash"}
			if a.format == furl.FormatChat {
				want = []string{"Schöne Grüße.\n\nNoch eins.", "bash", "bash"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: the client has %q, want %q", fault, got, want)
				continue
			}
			for _, m := range reply.Messages {
				for _, b := range m.Blocks {
					if b.Kind == furl.KindCall {
						a.result(b.ID, "ok "+string(b.Args))
					}
				}
			}
			if a.format == furl.FormatAnthropic {
				a.history = joinResults(a.history)
			}
			a.reply(t, st)
			st.accepted(t, a, 3)
		}
	})
}

// joinResults makes one message of the last two, which have a result each.
func joinResults(history []json.RawMessage) []json.RawMessage {
	n := len(history)
	var x, y struct {
		Content []json.RawMessage `json:"content"`
	}
	if json.Unmarshal(history[n-2], &x) != nil || json.Unmarshal(history[n-1], &y) != nil {
		return history
	}
	return append(history[:n-2], mustJSON(map[string]any{"role": "user", "content": append(x.Content, y.Content...)}))
}
