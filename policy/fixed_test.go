package policy

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// What defines tools, and what furl does not understand, is always sent, with its whole
// step, however old it is, under every policy. If it is too large for the window, the
// plan says so.
func TestFixedStays(t *testing.T) {
	cases := []struct {
		name  string
		codec protocol.Codec
		items []string
	}{
		{"deferred tools", anthropic.Codec, []string{
			`{"role":"assistant","content":[{"type":"tool_use","id":"s","name":"ToolSearch","input":{"query":"select:TaskCreate"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s","content":[{"type":"tool_reference","tool_name":"TaskCreate"}]}]}`}},
		{"inline tool", anthropic.Codec, []string{
			`{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"mend"}}}]}`}},
		{"removed tool", anthropic.Codec, []string{
			`{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"mend"}}]}`}},
		{"unknown block", anthropic.Codec, []string{
			`{"role":"assistant","content":[{"type":"hologram_use","id":"h"},{"type":"tool_use","id":"s","name":"read","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s","content":"a long result"},{"type":"hologram","tool_use_id":"h"}]}`}},
		{"unknown part", anthropic.Codec, []string{
			`{"role":"assistant","content":[{"type":"tool_use","id":"s","name":"read","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s","content":[{"type":"text","text":"words"},{"type":"hologram"}]}]}`}},
		{"additional tools", openai.Responses, []string{
			`{"type":"additional_tools","role":"developer","tools":[{"type":"custom","name":"exec"}]}`}},
		{"found tools", openai.Responses, []string{
			`{"type":"tool_search_call","call_id":"c","execution":"client"}`,
			`{"type":"tool_search_output","call_id":"c","tools":[{"type":"function","name":"f"}]}`}},
		{"message of another agent", openai.Responses, []string{
			`{"type":"agent_message","author":"/main/a","recipient":"/main","content":[{"type":"input_text","text":"done"}]}`}},
		{"unknown item", openai.Responses, []string{
			`{"type":"function_call","call_id":"c","name":"read","arguments":"{}"}`,
			`{"type":"hologram","beam":"light"}`,
			`{"type":"function_call_output","call_id":"c","output":"words"}`}},
		{"unknown role", openai.Chat, []string{`{"role":"narrator","content":"meanwhile"}`}},
		{"unknown part", openai.Chat, []string{`{"role":"user","content":[{"type":"text","text":"see"},{"type":"hologram","beam":1}]}`}},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s %s", c.codec.Format(), c.name), func(t *testing.T) {
			for _, name := range append(NewSet().Variants(), withAgents(NewSet()).Unlisted()...) {
				fixedStays(t, c.codec, name, c.items)
			}
		})
	}
}

func fixedStays(t *testing.T, codec protocol.Codec, name string, items []string) {
	t.Helper()
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	var fixed []furl.Seq
	for _, raw := range items {
		m, err := codec.DecodeMessage([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Blocks {
			m.Blocks[i].Tokens = 300
		}
		fixed = append(fixed, s.add(m).Seq)
	}
	p := must(t, name)
	stays := func() bool {
		v := s.view()
		for _, seq := range fixed {
			shown := false
			for i := range v.Messages {
				shown = shown || v.Messages[i].Seq == seq && v.Messages[i].AsRecorded()
			}
			if !shown {
				return false
			}
		}
		return true
	}
	s.say(furl.RoleUser, "go on")
	for i := range 60 {
		s.call("list", `{"n":`+string(rune('0'+i%10))+`}`, text(900), false)
		b := s.paid()
		b.Window, b.Reserve = 20_000, 2_000
		s.plan(p, b)
		if !stays() {
			t.Fatalf("%s hides %s after %d steps", name, items[len(items)-1], i+1)
		}
	}
	hide := &Pipeline{Label: "hide", Stages: []Stage{&Hide{Spans: []furl.Span{{First: furl.Pos{Msg: fixed[0]}, Last: furl.Pos{Msg: fixed[len(fixed)-1]}}}, Steps: true}}, NoBackstop: true}
	if plan := s.plan(hide, s.paid()); !stays() || plan.Steps[0].Skipped != string(skipFixed) {
		t.Errorf("a person hides %s: %+v", items, plan.Steps)
	}
	if name == "none" {
		return
	}
	b := s.budget(250)
	b.Model = priced
	if plan := s.plan(p, b); !stays() || !plan.Impossible {
		t.Errorf("%s hides what does not fit, or does not say so: %v %s", name, plan.Impossible, plan.Reason)
	}
}

// The share of T1 and the newest messages of R1 are those that may be hidden: pinned
// messages do not count.
func TestFixedAreNotCounted(t *testing.T) {
	for _, pinned := range []int{0, 12} {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		for range pinned {
			s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindOpaque, Name: "hologram", Tokens: 5, Fixed: true}}})
		}
		for i := range 10 {
			s.call("list", fmt.Sprintf(`{"n":%d}`, i), text(900), false)
		}
		red, err := (&Truncate{}).Reduce(t.Context(), s.view(), s.budget(10_000))
		if err != nil {
			t.Fatal(err)
		}
		if e, err := s.log.State().Effect(red); err != nil || len(e.Messages) != 10 {
			t.Errorf("with %d pinned messages, %d of 20 are hidden: %v", pinned, len(e.Messages), err)
		}
	}
}
