package sim_test

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// A loop of many steps passes every check in each format, streaming and not,
// and uses the cache.
func TestAgentLoop(t *testing.T) {
	tests := []struct {
		name, model string
		d           dialect
	}{
		{"anthropic", "claude-sonnet-4-5", anthropicDialect{}},
		{"anthropic, thinking", "claude-sonnet-4-5", anthropicDialect{extra: `,"thinking":{"type":"enabled","budget_tokens":2000}`}},
		{"anthropic, bound thinking", "claude-opus-5-5", anthropicDialect{extra: `,"thinking":{"type":"adaptive"}`}},
		{"anthropic, last thinking only", "claude-haiku-4-5", anthropicDialect{extra: `,"thinking":{"type":"enabled","budget_tokens":2000}`}},
		{"chat", "gpt-5.2", chatDialect{}},
		{"chat, not OpenAI's", "kimi-k2-thinking", chatDialect{}},
		{"responses", "gpt-5.2", responsesDialect{}},
		{"gemini", "gemini-3.1-pro-preview", geminiDialect{}},
		{"gemini, without ids and signatures", "gemini-2.5-flash", geminiDialect{extra: `,"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}`}},
		{"gemini, thoughts", "gemini-3-flash-preview", geminiDialect{extra: `,"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`}},
		{"gemini, in pieces", "gemini-3.1-pro-preview", geminiDialect{pieces: true}},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			name := tt.name
			if stream {
				name += ", streaming"
			}
			t.Run(name, func(t *testing.T) {
				c := &clock{start}
				s, srv := serve(t, &sim.Options{
					Player: sim.NewAgent(&sim.AgentOptions{Steps: 25, Parallel: 3, Thinking: 40}),
					Now:    c.Now,
				})
				text, _ := loop(t, srv, tt.d, tt.model, stream, tt.d.user("Find the bug in the parser."))
				if !strings.HasPrefix(text, "Done after 25 steps.") {
					t.Errorf("the last text is %q", text)
				}
				bill := s.Bill()
				if bill.Requests != 26 || bill.Refused != 0 || bill.Faults != 0 {
					t.Errorf("bill %+v, want 26 requests and no refusal", bill)
				}
				u := bill.Usage
				share := 2
				if tt.d.path() == "" {
					share = 4 // Google's caches begin at 4,096 tokens
				}
				if u.CacheRead < u.Prompt()/share {
					t.Errorf("only %d of %d tokens were read from the cache", u.CacheRead, u.Prompt())
				}
				if bill.Cost <= 0 || u.Output == 0 {
					t.Errorf("bill %+v costs nothing", bill)
				}
				for _, r := range s.Requests() {
					if r.Verdict != sim.VerdictOK || r.Stream != stream {
						t.Errorf("request %d: %+v", r.N, r)
					}
				}
			})
		}
	}
}
