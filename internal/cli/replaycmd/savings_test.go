package replaycmd

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/storage"
)

// Eighty columns show the agent and the model of savings whole.
func TestSavingsAt80Columns(t *testing.T) {
	rep := &storage.SavingsReport{Lines: []storage.SavingsLine{{Day: "2026-11-23", Agent: "Claude Code", Model: "claude-sonnet-4-5-20250929", Savings: storage.Savings{Requests: 21, Tokens: 109767, TokensWithout: 171058, Cost: 0.34, CostWithout: 0.53}, TokensSaved: 61291, Saved: 0.18}}}
	var b strings.Builder
	tab := savingsTable(&b, rep)
	tab.Cols = 80
	fitSavings(tab)
	tab.Print()
	if out := b.String(); !strings.Contains(out, "Claude Code  sonnet-4-5  ") || tab.Width() > 80 {
		t.Errorf("printed\n%s", out)
	}
}
