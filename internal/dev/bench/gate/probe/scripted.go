package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// A scripted case is a conversation that is known beforehand, about something that recordings
// lack.
type scripted struct {
	name    string
	formats []furl.Format // if nil, all
	setup   func() setup
	pause   func(request int) time.Duration
	model   string // if empty, the client's
	fields  map[string]any
	steps   func(a *actor) error
}

// actor takes the steps of a scripted case.
type actor struct {
	*stand
	*sim.Client
}

// ask sends the history, and adds the answer and the results of its calls. A refusal is part of what
// is compared, not an error.
func (a *actor) ask() error {
	reply, err := a.Send(context.Background())
	if err != nil {
		return nil // the stand has noted what the client got
	}
	var results []furl.Block
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindCall {
				results = append(results, furl.Block{Kind: furl.KindResult, ID: b.ID, Text: a.output()})
			}
		}
	}
	if len(results) == 0 {
		return a.Say(fmt.Sprintf("And number %d?", a.stand.requests))
	}
	return a.Results(results)
}

// output is what a tool prints.
func (a *actor) output() string {
	var b strings.Builder
	for i := range 20 + 20*(a.stand.requests%5) {
		fmt.Fprintf(&b, "src/part%d/file_%d.go:%d: func Handle%dOf%d returns an error of piece %d\n", a.stand.requests, i, i*7, i, a.stand.requests, a.stand.requests)
	}
	return b.String()
}

// asks sends n requests.
func (a *actor) asks(n int) error {
	for range n {
		if err := a.ask(); err != nil {
			return err
		}
	}
	return nil
}

// with sends one request with more headers, and does not add its answer.
func (a *actor) with(method, path string, body []byte, headers ...string) error {
	req, err := http.NewRequest(method, a.provider.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = a.Client.Header.Clone()
	req.Header.Set("Content-Type", "application/json")
	if strings.Contains(path, "messages") {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := a.RoundTrip(req)
	if err != nil {
		return nil // noted
	}
	return resp.Body.Close()
}

// post changes something with furl's API, and notes the answer.
func (a *actor) post(path, body string) {
	a.stand.requests++
	id := "none"
	if len(a.ids) > 0 {
		id = a.ids[0]
	}
	r := httptest.NewRequest(http.MethodPost, "/furl/v1"+strings.ReplaceAll(path, "ID", id), strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	a.under.gateway.ServeHTTP(w, r)
	var created struct{ Session string }
	if json.Unmarshal(w.Body.Bytes(), &created) == nil {
		a.known(created.Session)
	}
	a.put("POST "+path, fmt.Appendf(nil, "%d %s", w.Code, w.Body))
}

func (a *actor) path() string {
	return map[furl.Format]string{furl.FormatAnthropic: "/v1/messages", furl.FormatChat: "/v1/chat/completions", furl.FormatResponses: "/v1/responses"}[a.Format]
}

// script is a player that answers what a text says; see sim.Script. It panics on a mistake in
// the text, which is a constant.
func script(text string) sim.Player {
	s, err := sim.ParseScript("probe", []byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// caller calls a tool in each reply.
func caller() sim.Player { return sim.NewAgent(&sim.AgentOptions{Steps: 1000, Seed: 3}) }

// thinker does, and thinks.
func thinker() sim.Player {
	return sim.NewAgent(&sim.AgentOptions{Steps: 1000, Seed: 3, Thinking: 40, Parallel: 3})
}

// refusing is a player that refuses bodies that contain a text.
func refusing(text string, refusal protocol.Refusal, other sim.Player) sim.Player {
	return sim.PlayerFunc(func(ctx context.Context, req *protocol.Request) (sim.Reply, error) {
		if bytes.Contains(req.Body, []byte(text)) {
			return sim.Reply{}, &refusal
		}
		return other.Play(ctx, req)
	})
}

const recalls = `
-- 1 --
text: Let me look.
call: memory_search {"query":"error"}
-- 2 --
call: memory_get {"handle":"furl:1.0"}
-- 3 --
text: It said hello.
call: memory_get {"handle":"furl:1.0"}
call: bash {"command":"ls"}
-- 4 --
call: bash {"command":"ls -l"}
-- 5 --
call: memory_get {"handle":"furl:900.0"}
-- 6 --
text: Goodbye.
`

var anthropicOnly = []furl.Format{furl.FormatAnthropic}

// scripts are the cases that are not about one policy.
var scripts = []scripted{
	{name: "recall", setup: func() setup { return setup{recall: true, player: script(recalls), sqlite: true} }, steps: func(a *actor) error { return a.asks(4) }},
	{name: "recall in a transport", setup: func() setup { return setup{recall: true, player: script(recalls), transport: true} }, steps: func(a *actor) error { return a.asks(4) }},
	{name: "recall, then a fault", setup: func() setup {
		return setup{recall: true, player: script("-- 1 --\ntext: Let me look.\ncall: memory_search {\"query\":\"nothing\"}\n-- 2 --\nfault: 529\n-- 3 --\ncall: memory_search {\"query\":\"nothing\"}\n-- 4 --\ntext: words and more of them\nfault: cut=2\n-- 5 --\ntext: Here I am.\n")}
	}, steps: func(a *actor) error { return a.asks(3) }},
	{name: "overflow", setup: func() setup { return setup{real: 9000, policy: "sliding-window", player: caller()} }, steps: func(a *actor) error { return a.asks(24) }},
	{name: "overflow under auto", setup: func() setup { return setup{real: 9000, policy: "auto", player: caller(), sqlite: true} }, steps: func(a *actor) error { return a.asks(24) }},
	{name: "overflow with recall in a transport", setup: func() setup {
		return setup{real: 9000, policy: "auto", recall: true, transport: true, player: caller()}
	}, steps: func(a *actor) error { return a.asks(24) }},
	{name: "overflow under none", setup: func() setup { return setup{real: 6000, policy: "none", player: caller()} }, steps: func(a *actor) error { return a.asks(12) }},
	{name: "overflow in a stream", setup: func() setup {
		return setup{policy: "rolling-mask-5", player: script("-- 1 --\nrepeat: 6\ncall: bash {\"command\":\"ls\"}\n-- 2 --\nfault: overflow=stream\n-- 3 --\nrepeat: 9\ncall: bash {\"command\":\"ls\"}\n")}
	}, steps: func(a *actor) error { return a.asks(12) }},
	{name: "thinking refused", formats: []furl.Format{furl.FormatAnthropic, furl.FormatResponses}, setup: func() setup {
		refusals := protocol.Refusal{Status: 400, Type: "invalid_request_error", Message: "messages.1.content.0: Invalid `signature` in `thinking` block"}
		return setup{policy: "auto", player: refusing("c3RhbGU=", refusals, caller()), sqlite: true}
	}, steps: func(a *actor) error {
		stale := []json.RawMessage{json.RawMessage(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c3RhbGU="},{"type":"text","text":"b"}]}`)}
		if a.Format == furl.FormatResponses {
			stale = []json.RawMessage{json.RawMessage(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c3RhbGU="}`),
				json.RawMessage(`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]}`)}
		}
		a.History = append(a.History, stale...)
		if err := a.Say("c"); err != nil {
			return err
		}
		return a.asks(5)
	}},
	{name: "thinking bound to its prompt", formats: anthropicOnly, model: "claude-opus-5-5", fields: map[string]any{"max_tokens": 2000, "thinking": map[string]string{"type": "adaptive"}},
		setup: func() setup { return setup{policy: "auto", window: 12_000, player: thinker()} }, steps: func(a *actor) error { return a.asks(30) }},
	{name: "thinking bound, tool-age", formats: anthropicOnly, model: "claude-opus-5-5", fields: map[string]any{"max_tokens": 2000, "thinking": map[string]string{"type": "adaptive"}},
		setup: func() setup { return setup{policy: "tool-age", window: 12_000, player: thinker(), transport: true} }, steps: func(a *actor) error { return a.asks(30) }},
	{name: "an hour", formats: anthropicOnly, fields: breakpoints(), pause: pauses, setup: func() setup { return setup{policy: "none", hour: true, player: caller(), sqlite: true} }, steps: func(a *actor) error { return a.asks(8) }},
	{name: "an hour by auto", formats: anthropicOnly, fields: breakpoints(), pause: pauses, setup: func() setup { return setup{policy: "auto", window: 24_000, player: caller()} }, steps: func(a *actor) error { return a.asks(20) }},
	{name: "an hour refused", formats: anthropicOnly, fields: breakpoints(), pause: pauses, setup: func() setup {
		return setup{policy: "none", hour: true, player: refusing(`"ttl"`, protocol.Refusal{Status: 400, Type: "invalid_request_error", Message: "cache_control.ttl: Extra inputs are not permitted"}, caller())}
	}, steps: func(a *actor) error { return a.asks(8) }},
	{name: "count_tokens", formats: anthropicOnly, setup: func() setup { return setup{policy: "rolling-mask-5", player: caller()} }, steps: func(a *actor) error {
		for i := range 12 {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(a.Body(), &fields); err != nil {
				return err
			}
			delete(fields, "max_tokens")
			delete(fields, "stream")
			body, err := json.Marshal(fields)
			if err != nil {
				return err
			}
			headers := [][]string{nil, {"X-Furl-Dry-Run", "true"}, {"X-Furl-Bypass", "true"}}[i%3]
			if err := errors.Join(a.with("POST", "/v1/messages/count_tokens", body, headers...), a.ask()); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "dry run", setup: func() setup { return setup{policy: "auto", window: 16_000, player: caller(), sqlite: true} }, steps: func(a *actor) error {
		for i := range 24 {
			a.Client.Header.Del("X-Furl-Dry-Run")
			if i%4 < 2 {
				a.Client.Header.Set("X-Furl-Dry-Run", "true")
			}
			if err := a.ask(); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "bypass", setup: func() setup { return setup{policy: "rolling-mask-5", player: caller()} }, steps: func(a *actor) error {
		if err := a.asks(8); err != nil {
			return err
		}
		return errors.Join(a.with("POST", a.path(), a.Body(), "X-Furl-Bypass", "true"), a.ask())
	}},
	{name: "compaction by the client", setup: func() setup { return setup{policy: "auto", window: 16_000, player: caller(), sqlite: true} }, steps: compacts},
	{name: "compaction by the client, with recall", setup: func() setup { return setup{policy: "rolling-mask-5", recall: true, player: caller()} }, steps: compacts},
	{name: "compaction by the provider", formats: []furl.Format{furl.FormatResponses}, setup: func() setup { return setup{policy: "rolling-mask-5", player: caller()} }, steps: func(a *actor) error {
		if err := a.asks(10); err != nil {
			return err
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(a.Body(), &fields); err != nil {
			return err
		}
		delete(fields, "stream")
		body, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		return errors.Join(a.with("POST", "/v1/responses/compact", body), a.asks(3))
	}},
	{name: "faults", setup: func() setup { return setup{policy: "rolling-mask-5", player: caller(), sqlite: true} }, steps: func(a *actor) error {
		for _, fault := range []string{"401", "400", "429", "500", "529 retry-after=2", "overflow", "cut=4", "error=4", "ping", "split=bytes", "split=utf8", "args=odd", "redirect=http://127.0.0.1:9/", "404"} {
			a.Client.Header.Set(sim.FaultHeader, fault)
			if err := a.ask(); err != nil {
				return err
			}
			a.Client.Header.Del(sim.FaultHeader)
			if err := a.ask(); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "faults in a transport", setup: func() setup { return setup{policy: "rolling-mask-5", player: caller(), transport: true} }, steps: func(a *actor) error {
		for _, fault := range []string{"401", "529", "overflow", "cut=4", "error=4", "split=bytes"} {
			a.Client.Header.Set(sim.FaultHeader, fault)
			if err := a.ask(); err != nil {
				return err
			}
			a.Client.Header.Del(sim.FaultHeader)
			if err := a.ask(); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "repeated and edited", setup: func() setup { return setup{policy: "rolling-mask-5", player: caller(), sqlite: true} }, steps: func(a *actor) error {
		for i := range 16 {
			if i%5 == 4 { // again, as after a broken connection
				if err := a.with("POST", a.path(), a.Body()); err != nil {
					return err
				}
			}
			if i == 9 { // from an earlier place
				a.History = slices.Clone(a.History[:len(a.History)/2])
				for len(a.History) > 1 && !strings.Contains(string(a.History[len(a.History)-1]), "Handle") {
					a.History = a.History[:len(a.History)-1]
				}
			}
			if err := a.ask(); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "not a conversation", setup: func() setup { return setup{player: caller()} }, steps: func(a *actor) error {
		return errors.Join(
			a.with("POST", a.path(), []byte(`{"model":`)), a.with("POST", a.path(), []byte(`[1]`)), a.with("POST", a.path(), nil),
			a.with("POST", a.path(), bytes.Replace(a.Body(), []byte(`{`), []byte(`{"Messages":[],"Input":[],`), 1)),
			a.with("POST", a.path(), []byte(`{"model":"gpt-5","max_tokens":9,"messages":[],"input":[]}`)),
			a.with("POST", a.path(), a.Body(), "X-Furl-Session", "mine"), a.with("POST", a.path(), a.Body(), "X-Furl-Session", "../x"),
			a.with("POST", a.path(), a.Body(), "Content-Encoding", "gzip"),
			a.with("GET", "/v1/models", nil), a.with("GET", a.path(), nil), a.with("GET", a.path(), nil, "Connection", "Upgrade", "Upgrade", "websocket"), a.with("POST", "/v1/unknown", []byte("{}")), a.with("GET", "/healthz", nil), a.ask())
	}},
	{name: "a person changes it", setup: func() setup { return setup{policy: "auto", window: 16_000, player: caller(), sqlite: true} }, steps: func(a *actor) error {
		if err := a.asks(12); err != nil {
			return err
		}
		a.post("/sessions/ID/reduce", `{"policy":"clear-100k","dry_run":true}`)
		a.post("/sessions/ID/reduce", `{"policy":"rolling-mask-5"}`)
		a.post("/sessions/ID/pin", `{"handles":["furl:3.0"]}`)
		if err := a.asks(3); err != nil {
			return err
		}
		a.post("/sessions/ID/release", `{"handles":["furl:3.0"]}`)
		a.post("/sessions/ID/restore", `{"handles":["furl:5.0"]}`)
		a.post("/sessions/ID/settings", `{"policy":"tool-age","context_limit":20000,"title":"a title"}`)
		if err := a.asks(3); err != nil {
			return err
		}
		a.post("/sessions/ID/fork", `{"at":9,"title":"a fork"}`)
		a.post("/sessions/other/append", `{"format":"anthropic","messages":[{"role":"user","content":"hi"}]}`)
		a.post("/sessions/ID/summary/edit", `{"text":"x","reduction_id":1}`)
		return a.asks(2)
	}},
	{name: "fit", setup: func() setup { return setup{policy: "auto", window: 16_000, player: caller()} }, steps: func(a *actor) error {
		for i := range 16 {
			a.post("/fit", fmt.Sprintf(`{"body":%s,"format":%q,"session":"fitted","time":%q}`, a.Body(), a.Format, start.Add(time.Duration(i)*time.Minute).Format(time.RFC3339)))
			a.post("/fit", fmt.Sprintf(`{"body":%s,"format":%q,"policy":"rolling-mask-5"}`, a.Body(), a.Format))
			if err := a.ask(); err != nil {
				return err
			}
		}
		return nil
	}},
}

func breakpoints() map[string]any {
	return map[string]any{
		"max_tokens": 2000, "system": []any{map[string]any{"type": "text", "text": strings.Repeat("rule ", 3000), "cache_control": map[string]string{"type": "ephemeral"}}},
	}
}

func pauses(request int) time.Duration {
	if request%3 == 0 {
		return 12 * time.Minute
	}
	return 20 * time.Second
}

// compacts is a client that replaces its history by a summary.
func compacts(a *actor) error {
	if err := a.asks(14); err != nil {
		return err
	}
	if err := a.Say("Write a summary of this for another model."); err != nil {
		return err
	}
	if _, err := a.Send(context.Background()); err != nil {
		return nil // noted
	}
	a.History = nil
	if err := errors.Join(a.Say("Look at everything there is."), a.Say("It was worked on before, and this was left: look on.")); err != nil {
		return err
	}
	return a.asks(6)
}

// scriptedCases are the scripts in each format, streamed and whole, and agents under each policy.
func scriptedCases(o *options) (cases []probed) {
	for i := range scripts {
		s := &scripts[i]
		for k := range agents {
			c := &agents[k]
			if s.formats != nil && !slices.Contains(s.formats, c.format) {
				continue
			}
			for _, stream := range []bool{false, true} {
				if o.quick && stream == (i%2 == 0) && len(s.formats) != 1 {
					continue
				}
				cases = append(cases, probed{name: fmt.Sprintf("%s, %s, stream=%t", s.name, c.name, stream), run: func(o *options, out *output) error {
					return s.run(o, out, c, stream)
				}})
			}
		}
	}
	for j, preset := range presets() {
		for k := range agents {
			if o.quick && j%3 != k {
				continue
			}
			s := &scripted{setup: func() setup {
				return setup{policy: preset, window: 14_000, player: thinker(), summaries: true, recall: k == 1, sqlite: k == 2}
			}, steps: func(a *actor) error { return a.asks(40) }}
			cases = append(cases, probed{name: fmt.Sprintf("an agent, %s, %s", agents[k].name, preset), run: func(o *options, out *output) error {
				return s.run(o, out, &agents[k], j%2 == 0)
			}})
		}
	}
	return cases
}

func (s *scripted) run(o *options, out *output, c *client, stream bool) error {
	set := s.setup()
	set.sqlite = set.sqlite && (!o.quick || stream == (c.format == furl.FormatAnthropic))
	st, err := newStand(o, out, &set)
	if err != nil {
		return err
	}
	defer st.close()
	st.pause = s.pause
	a := &actor{stand: st, Client: c.newClient(st, stream)}
	if s.model != "" {
		a.Model = s.model
	}
	if s.fields != nil {
		fields := make(map[string]any)
		for _, from := range []map[string]any{c.fields, s.fields} {
			maps.Copy(fields, from)
		}
		a.Fields = fields
	}
	if err := a.Say("Look at everything there is."); err != nil {
		return err
	}
	if err := s.steps(a); err != nil {
		return err
	}
	return st.end()
}
