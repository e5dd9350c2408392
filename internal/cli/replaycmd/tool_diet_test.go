package replaycmd

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/replay"
)

// The table has a row for each server, and names that come from a recording are printable.
func TestPrintToolDiet(t *testing.T) {
	cost := func(c float64) *float64 { return &c }
	d := &replay.ToolDiet{Recordings: 1, Tools: 4, NeverCalled: 3, Cost: cost(3), NeverCalledCost: cost(2), CostShare: cost(0.3), NeverCalledShare: cost(0.2), Agents: []replay.AgentTools{{
		Agent: "Claude Code", Where: "~/.claude/settings.json", Setting: `{"permissions":{"deny":["mcp__a"]}}`, Defers: "It defers tools.",
		Servers: []replay.ServerTools{
			{Tools: 2, Tokens: 1200, NeverCalled: []string{"Draw\x1b[31m"}, NeverCalledTokens: 700, Cost: cost(2), NeverCalledCost: cost(1)},
			{Server: "a", Tools: 2, Tokens: 1000, NeverCalled: []string{"mcp__a__x", "mcp__a__y"}, NeverCalledTokens: 1000, Cost: cost(1), NeverCalledCost: cost(1)},
		},
	}}}
	var b strings.Builder
	printToolDiet(&b, d)
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"3 of 4 tools with a definition were never called: their definitions cost $2.00, 20.0% of the input cost.",
		"Claude Code the agent 2 1,200 $2.00 1 700 $1.00 a 2 1,000 $1.00 2 1,000 $1.00",
		"Never called, of the agent: Draw",
		`add to ~/.claude/settings.json: {"permissions":{"deny":["mcp__a"]}} It defers tools.`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b") || strings.Contains(got, "mcp__a__x") {
		t.Errorf("an escape, or tools that the server stands for:\n%s", b.String())
	}
	b.Reset()
	printToolDiet(&b, nil)
	if b.Len() > 0 {
		t.Errorf("printed %q for nothing", b.String())
	}
}
