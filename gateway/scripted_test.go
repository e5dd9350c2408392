package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// scriptRound is a reply of the model, and what the client sends after it, as
// elements of the request's list.
type scriptRound struct {
	reply []string // blocks or items
	stop  string
	then  []string
}

// scripted is an agent whose requests and replies are known beforehand.
type scripted struct {
	name   string
	format furl.Format
	model  string   // if empty, one of the format
	begin  []string // the list before the user's task
	keeps  string   // what each request must have, once the client has sent it
	rounds func(n int, big func(i int) string) []scriptRound
}

// definers are agents whose tools, or what furl does not understand, are in the list.
var definers = []scripted{
	{
		name: "tools in the input", format: furl.FormatResponses, keeps: `"additional_tools"`,
		begin: []string{
			`{"type":"additional_tools","id":"at_1","role":"developer","tools":[{"type":"function","name":"bash","parameters":{"type":"object"}}]}`,
			`{"type":"message","role":"developer","content":"You are a coding agent."}`,
		},
		rounds: func(n int, big func(int) string) []scriptRound { return calls(n, big, "") },
	},
	{
		name: "a search for tools", format: furl.FormatResponses, keeps: `"tool_search_output"`,
		rounds: func(n int, big func(int) string) []scriptRound {
			rounds := calls(n, big, "")
			rounds[3] = scriptRound{
				[]string{`{"type":"tool_search_call","id":"ts_1","call_id":"call_ts","execution":"client","arguments":{"query":"mend"},"status":"completed"}`}, "tool_use",
				[]string{`{"type":"tool_search_output","call_id":"call_ts","execution":"client","status":"completed","tools":[{"type":"function","name":"mend","parameters":{"type":"object"}}]}`},
			}
			return rounds
		},
	},
	{
		name: "an unknown item", format: furl.FormatResponses, keeps: `"of a new kind"`,
		rounds: func(n int, big func(int) string) []scriptRound {
			return calls(n, big, `{"type":"of a new kind","x":1}`)
		},
	},
	{
		name: "a tool that is added", format: furl.FormatAnthropic, model: "claude-opus-5-5", keeps: `"tool_addition"`,
		rounds: func(n int, big func(int) string) []scriptRound {
			rounds := fetches(n, n+1, big)
			rounds[3].then = append(rounds[3].then, `{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"mend","input_schema":{"type":"object"}}}}]}`)
			return rounds
		},
	},
	{
		name: "an unknown block", format: furl.FormatAnthropic, keeps: `"of a new kind"`,
		rounds: func(n int, big func(int) string) []scriptRound {
			rounds := fetches(n, n+1, big)
			rounds[3].then = []string{strings.Replace(rounds[3].then[0], "]}", `,{"type":"of a new kind","x":1}]}`, 1)}
			return rounds
		},
	},
}

// calls is an agent of Responses that calls a tool in each reply. The item, if any, follows
// an early result.
func calls(n int, big func(i int) string, item string) (rounds []scriptRound) {
	for i := range n {
		r := scriptRound{
			[]string{fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":"bash","arguments":"{}","status":"completed"}`, i, i)}, "tool_use",
			[]string{fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%q}`, i, big(i))},
		}
		if i == 3 && item != "" {
			r.then = append(r.then, item)
		}
		rounds = append(rounds, r)
	}
	return rounds
}

// serverTools are agents whose provider runs tools of its own and answers the
// calls in a later reply, with results of the client between.
var serverTools = []scripted{
	{name: "a fetch in each reply", format: furl.FormatAnthropic, rounds: func(n int, big func(int) string) []scriptRound { return fetches(n, 1, big) }},
	{name: "a fetch in each third reply", format: furl.FormatAnthropic, rounds: func(n int, big func(int) string) []scriptRound { return fetches(n, 3, big) }},
	{name: "a program over two rounds", format: furl.FormatAnthropic, rounds: func(n int, big func(int) string) (rounds []scriptRound) {
		use := func(id, program string) string {
			return fmt.Sprintf(`{"type":"tool_use","id":"toolu_%s","name":"bash","input":{"command":%q},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_%s"}}`, id, id, program)
		}
		for i := range n / 3 {
			p, a, b := fmt.Sprint("p", i), fmt.Sprint("a", i), fmt.Sprint("b", i)
			rounds = append(rounds,
				scriptRound{[]string{textBlock("I run a program."), fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_%s","name":"code_execution","input":{"code":"x()"}}`, p), use(a, p)}, "tool_use", []string{toolResult(a, big(i))}},
				scriptRound{[]string{use(b, p)}, "tool_use", []string{toolResult(b, big(i))}},
				scriptRound{[]string{fmt.Sprintf(`{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_%s","content":{"type":"code_execution_result","stdout":"ok","stderr":"","return_code":0,"content":[]}}`, p), textBlock("Done.")}, "end_turn", []string{userText(fmt.Sprint("And number ", i, "?"))}})
		}
		return rounds
	}},
	{name: "a program of Responses over two rounds", format: furl.FormatResponses, rounds: func(n int, big func(int) string) (rounds []scriptRound) {
		call := func(id, program string) string {
			return fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":"call_%s","name":"bash","arguments":"{}","status":"completed","caller":{"type":"program","caller_id":"prg_%s"}}`, id, id, program)
		}
		output := func(id, text string) string {
			return fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%s","output":%q}`, id, text)
		}
		for i := range n / 3 {
			p, a, b := fmt.Sprint("p", i), fmt.Sprint("a", i), fmt.Sprint("b", i)
			rounds = append(rounds,
				scriptRound{[]string{fmt.Sprintf(`{"type":"program","id":"prog_%s","call_id":"prg_%s","code":"x()","fingerprint":"f","status":"completed"}`, p, p), call(a, p)}, "tool_use", []string{output(a, big(i))}},
				scriptRound{[]string{call(b, p)}, "tool_use", []string{output(b, big(i))}},
				scriptRound{[]string{fmt.Sprintf(`{"type":"program_output","id":"out_%s","call_id":"prg_%s","result":"done","status":"completed"}`, p, p),
					fmt.Sprintf(`{"type":"message","id":"msg_%s","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Done.","annotations":[]}]}`, p)}, "end_turn",
					[]string{userText(fmt.Sprint("And number ", i, "?"))}})
		}
		return rounds
	}},
}

func textBlock(words string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, words) }
func userText(words string) string  { return fmt.Sprintf(`{"role":"user","content":%q}`, words) }

func toolResult(id, text string) string {
	return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%s","content":%q}]}`, id, text)
}

// fetches is an agent that has the provider fetch a page in each replies' reply,
// beside a call of the client's tool.
func fetches(n, each int, big func(i int) string) (rounds []scriptRound) {
	for i := range n {
		var reply []string
		if i > 0 && (i-1)%each == 0 {
			reply = append(reply, fmt.Sprintf(`{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_%d","content":{"type":"web_fetch_result","url":"https://x.example/%d","content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":%q}}}}`, i-1, i-1, big(i)))
		}
		reply = append(reply, textBlock(fmt.Sprint("Step ", i)))
		if i%each == 0 {
			reply = append(reply, fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_fetch","input":{"url":"https://x.example/%d"}}`, i, i))
		}
		id := fmt.Sprint(i)
		reply = append(reply, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%s","name":"bash","input":{"command":"ls"}}`, id))
		rounds = append(rounds, scriptRound{reply, "tool_use", []string{toolResult(id, big(i))}})
	}
	return rounds
}

// P4 calls that the provider runs and answers in a later reply, and tools that are defined in
// the list: under every policy, no request is refused, also where the client repeats requests
// before the answer, and none is without a definition or what furl does not understand.
func TestScriptedAgents(t *testing.T) {
	const window = 9_000
	big := func(i int) string {
		var b strings.Builder
		for k := range 40 {
			fmt.Fprintf(&b, "func Value%d_%d() int { return %d }\n", i, k, i*k)
		}
		return b.String()
	}
	for _, agent := range slices.Concat(serverTools, definers) {
		for _, name := range policy.NewSet().Names() {
			if name == "none" {
				continue // the provider refuses what is larger than its window
			}
			t.Run(agent.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				var next atomic.Pointer[scriptRound]
				var asked atomic.Value // the end of the list that it replies to
				player := sim.PlayerFunc(func(_ context.Context, req *protocol.Request) (sim.Reply, error) {
					if last := req.Messages[len(req.Messages)-1].Raw; !bytes.HasSuffix(compact(last), compact([]byte(asked.Load().(string)))) {
						return sim.Text("A summary."), nil
					}
					r := next.Load()
					reply := sim.Reply{Stop: r.stop}
					for _, part := range r.reply {
						reply.Blocks = append(reply.Blocks, furl.Block{Kind: furl.KindOpaque, Text: part})
					}
					return reply, nil
				})
				st := newFixture(t, &sim.Options{Window: window, AnyField: true, KeepBodies: true, Player: player}, &session.Options{Window: window, Policy: name}, &gateway.Options{})
				list := append(slices.Clone(agent.begin), userText("Do the tasks."))
				reduced := false
				for i, round := range agent.rounds(24, big) {
					next.Store(&round)
					asked.Store(list[len(list)-1])
					for again := range 2 {
						if again == 1 && i%5 != 3 {
							break
						}
						resp, answer := st.post(t, pathOf(agent.format), requestOf(&agent, list), "X-Furl-Session", "server-tools")
						if resp.StatusCode != 200 {
							t.Fatalf("request %d (%d): %d %s", i, again, resp.StatusCode, answer)
						}
						if agent.keeps != "" && strings.Contains(strings.Join(list, ","), agent.keeps) && !sentWith(st, list[len(list)-1], agent.keeps) {
							t.Fatalf("request %d (%d) was sent without %s", i, again, agent.keeps)
						}
						reduced = reduced || resp.Header.Get("X-Furl-Reductions") != "0"
					}
					list = append(list, replyAsSent(agent.format, round.reply)...)
					list = append(list, round.then...)
				}
				if !reduced {
					t.Error("nothing was reduced: the window is too large for this test")
				}
				if b := st.sim.Bill(); b.Refused > 0 {
					t.Errorf("%d requests were refused", b.Refused)
				}
				if infos := st.list(t); len(infos) != 1 {
					t.Errorf("%d sessions, want 1", len(infos))
				}
			})
		}
	}
}

// sentWith reports whether the newest request that ends with an element, as those of the client
// do, has a text.
func sentWith(st *fixture, last, text string) bool {
	entries := st.sim.Requests()
	for i := len(entries) - 1; i >= 0; i-- {
		if body := compact(entries[i].Body); bytes.HasSuffix(bytes.TrimRight(body, "]}"), bytes.TrimRight(compact([]byte(last)), "]}")) {
			return bytes.Contains(body, []byte(text))
		}
	}
	return false
}

func compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

func pathOf(f furl.Format) string {
	if f == furl.FormatResponses {
		return "/v1/responses"
	}
	return "/v1/messages"
}

func requestOf(a *scripted, list []string) []byte {
	items := strings.Join(list, ",")
	if a.format == furl.FormatResponses {
		return []byte(`{"model":"` + cmp.Or(a.model, "gpt-5.2") + `","store":false,"tools":[{"type":"function","name":"bash","parameters":{"type":"object"}}],"input":[` + items + `]}`)
	}
	return []byte(`{"model":"` + cmp.Or(a.model, "claude-sonnet-4-5") + `","max_tokens":500,"tools":[{"type":"web_fetch_20250910","name":"web_fetch"},{"name":"bash","input_schema":{"type":"object"}}],"messages":[` + items + `]}`)
}

func replyAsSent(f furl.Format, parts []string) []string {
	if f == furl.FormatResponses {
		return slices.Clone(parts)
	}
	return []string{`{"role":"assistant","content":[` + strings.Join(parts, ",") + `]}`}
}
