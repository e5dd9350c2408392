package replaycmd

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/replay"
)

// Without names, the limits apply to the recommended policy alone; with names, to each of
// them.
func TestCeilings(t *testing.T) {
	result := func(policy string, cost, share float64) replay.Result {
		return replay.Result{
			Policy: policy, Cost: &cost, CostShare: &share, CostRatio: &share, PenalisedShare: &share, PenalisedCostRatio: &share,
			Requests: 10, Peak: int(cost * 1000), Edits: 20, BlindEdits: 1, References: 10, ReferencesKept: 10, QuotedLines: 10, QuotedLinesKept: 10,
		}
	}
	rep := &replay.Report{Totals: []replay.Result{result("none", 10, 1), result("auto", 4, 0.4), result("rolling", 8, 0.8)}}
	for _, tt := range []struct {
		pairs string
		named []string
		want  []string // beginnings of lines
	}{
		{"cost=4", nil, nil},
		{"cost=3.99", nil, []string{"policy auto: cost is $4.00, above $3.99"}},
		{"cost=5", []string{"auto", "rolling"}, []string{"policy rolling: cost is $8.00, above $5.00"}},
		{"cost=5,prompt=7k", []string{"rolling", "none"}, []string{
			"as recorded: cost is $10.00, above $5.00", "as recorded: the largest prompt has 10,000 tokens, above 7,000",
			"policy rolling: cost is $8.00, above $5.00", "policy rolling: the largest prompt has 8,000 tokens, above 7,000",
		}},
		{"blind=5", nil, nil},
		{"blind=4.9%", nil, []string{"policy auto: 1 of 20 edits are blind (5.0%), above 4.9%"}},
		{"prompt=1", []string{"unknown"}, []string{"--fail-above has nothing to check"}},
	} {
		c, err := parseCeilings(strings.Split(tt.pairs, ","))
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		if err := c.check(rep, tt.named); err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		ok := len(lines) == len(tt.want)
		for i := range tt.want {
			ok = ok && strings.HasPrefix(lines[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%s of %q:\n%s", tt.pairs, tt.named, strings.Join(lines, "\n"))
		}
	}
}
