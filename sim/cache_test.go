package sim_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl/sim"
)

// block is a text of about the given number of tokens.
func block(name string, tokens int, mark string) string {
	text := name + strings.Repeat(" word", tokens)
	if mark != "" {
		mark = fmt.Sprintf(`,"cache_control":{"type":"ephemeral","ttl":%q}`, mark)
	}
	return fmt.Sprintf(`{"type":"text","text":%q%s}`, text, mark)
}

// Cache reads and cache writes, over time, by lifetime, by account and by
// model.
func TestPromptCache(t *testing.T) {
	ask := func(model, choice string, blocks ...string) string {
		return fmt.Sprintf(`{"model":%q,"max_tokens":20%s,"tools":[%s],"messages":[{"role":"user","content":[%s]}]}`, model, choice, readTool, strings.Join(blocks, ","))
	}
	const m = "claude-sonnet-4-5"
	a, b := block("a", 2000, "5m"), block("b", 2000, "5m")
	type want struct{ read, write, long bool }
	type send struct {
		after time.Duration
		body  string
		key   string
		want  want
	}
	tests := []struct {
		name  string
		sends []send
	}{
		{"growing", []send{
			{0, ask(m, "", a), "k", want{write: true}},
			{time.Minute, ask(m, "", a, b), "k", want{read: true, write: true}},
			{5 * time.Minute, ask(m, "", a, b), "k", want{read: true}},
			{5*time.Minute + time.Second, ask(m, "", a, b), "k", want{write: true}},
		}},
		{"an hour", []send{
			{0, ask(m, "", block("a", 2000, "1h"), b), "k", want{write: true, long: true}},
			{50 * time.Minute, ask(m, "", block("a", 2000, "1h")), "k", want{read: true}},
		}},
		{"too short", []send{
			{0, ask(m, "", block("a", 100, "5m")), "k", want{}},
			{0, ask(m, "", block("a", 100, "5m")), "k", want{}},
		}},
		{"others", []send{
			{0, ask(m, "", a), "k", want{write: true}},
			{0, ask(m, "", a), "another account", want{write: true}},
			{0, ask("claude-sonnet-4-6", "", a), "k", want{write: true}},
			{0, ask(m, `,"tool_choice":{"type":"none"}`, a), "k", want{write: true}},
			{0, ask(m, "", a), "k", want{read: true}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &clock{start}
			s, srv := serve(t, &sim.Options{Now: c.Now})
			for i, send := range tt.sends {
				c.now = c.now.Add(send.after)
				r := post(t, srv, "/v1/messages", send.body, "Authorization", "Bearer "+send.key)
				if r.status != 200 {
					t.Fatalf("%s", r.body)
				}
				u := s.Requests()[i].Usage
				if got := (want{u.CacheRead > 0, u.CacheWrite > 0, u.CacheWrite1h > 0}); got != send.want {
					t.Errorf("request %d: %+v, want %+v", i, u, send.want)
				}
			}
		})
	}
}

// The bill is the usage at the catalogue's prices.
func TestBill(t *testing.T) {
	s, srv := serve(t, nil)
	body := fmt.Sprintf(`{"model":"claude-sonnet-5","max_tokens":200,"messages":[{"role":"user","content":[%s,%s]}]}`, block("a", 3000, "1h"), block("b", 500, ""))
	for range 2 {
		post(t, srv, "/v1/messages", body)
	}
	u := s.Bill().Usage
	want := (2*float64(u.Input) + 4*float64(u.CacheWrite1h) + 0.2*float64(u.CacheRead) + 10*float64(u.Output)) / 1e6
	if got := s.Bill().Cost; got < want*0.999999 || got > want*1.000001 || u.CacheRead == 0 || u.CacheRead != u.CacheWrite1h {
		t.Errorf("$%v for %+v, want $%v", got, u, want)
	}
	s.Forget()
	if b := s.Bill(); b.Requests != 0 || len(s.Requests()) != 0 {
		t.Errorf("not forgotten: %+v", b)
	}
	post(t, srv, "/v1/messages", body)
	if u := s.Bill().Usage; u.CacheRead != 0 || u.CacheWrite1h == 0 {
		t.Errorf("the cache is not forgotten: %+v", u)
	}
}

// Concurrent sessions are isolated from each other, and the sums are right.
func TestConcurrentSessions(t *testing.T) {
	s, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 6, Parallel: 2, Thinking: 10})})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for _, d := range dialects {
				text, _ := loop(t, srv, d.d, d.model, n%2 == 0, d.d.user("Look around."))
				if !strings.HasPrefix(text, "Done after 6 steps.") {
					t.Errorf("%s ends with %q", d.name, text)
				}
			}
		})
	}
	wg.Wait()
	want := 8 * len(dialects) * 7
	if b := s.Bill(); b.Requests != want || b.Refused != 0 {
		t.Errorf("%+v", b)
	}
	ids := make(map[int]bool)
	for _, e := range s.Requests() {
		ids[e.N] = true
	}
	if len(ids) != want {
		t.Errorf("%d numbers for %d requests", len(ids), want)
	}
}

// The same requests in the same order get the same answers.
func TestDeterministic(t *testing.T) {
	run := func(seed uint64) string {
		var all strings.Builder
		c := &clock{start}
		s := sim.New(&sim.Options{Seed: seed, Now: c.Now, KeepBodies: true, Player: sim.NewAgent(&sim.AgentOptions{Steps: 4, Thinking: 20, Seed: seed})})
		for _, d := range dialects {
			for _, stream := range []bool{false, true} {
				loopHandler(t, s, d.d, d.model, stream)
			}
		}
		for _, e := range s.Requests() {
			all.Write(e.Answer)
		}
		return all.String()
	}
	first := run(1)
	if again := run(1); again != first {
		t.Error("two runs differ")
	}
	if run(2) == first {
		t.Error("the seed changes nothing")
	}
}

// A request with max_tokens 0 generates nothing, and writes or renews the cache.
func TestCacheOnlyRequest(t *testing.T) {
	c := &clock{start}
	s, srv := serve(t, &sim.Options{Now: c.Now})
	for i, want := range []struct{ read, written bool }{{false, true}, {true, false}, {true, false}} {
		r := post(t, srv, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":0,"messages":[{"role":"user","content":[`+block("a", 2000, "5m")+`]}]}`)
		if r.status != 200 || !strings.Contains(string(r.body), `"content":[]`) || !strings.Contains(string(r.body), `"stop_reason":"max_tokens"`) {
			t.Fatalf("status %d: %s", r.status, r.body)
		}
		if u := s.Requests()[i].Usage; u.CacheRead > 0 != want.read || u.CacheWrite > 0 != want.written || u.Output != 0 {
			t.Errorf("request %d: %+v", i, u)
		}
		c.now = c.now.Add(4 * time.Minute)
	}
}
