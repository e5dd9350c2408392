package cli

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/replay"
)

// The advice names a policy that keeps nearly all identifiers visible. If there is
// none, it says how many the cheapest keeps.
func TestAdvice(t *testing.T) {
	result := func(name string, ratio float64, kept, overflows int) replay.Result {
		return replay.Result{Policy: name, Requests: 3, CostRatio: &ratio, References: 100, ReferencesKept: kept, Overflows: overflows}
	}
	none, over := result("none", 1, 100, 0), result("over", 0.1, 100, 1)
	for _, tt := range []struct {
		name   string
		totals []replay.Result
		want   []string
	}{
		{"a good one", []replay.Result{none, over, result("lossy", 0.5, 80, 0), result("good", 0.7, 96, 0)},
			[]string{"Cheapest policy that keeps 95% of the identifiers visible: good, 70% of the input cost.", `session.Options{Policy: "good"}`}},
		{"only lossy ones", []replay.Result{none, over, result("lossy", 0.5, 80, 0), result("worse", 0.6, 70, 0)},
			[]string{"No policy is cheaper", "The cheapest policy, lossy, has 50% of the input cost and keeps 80.0% of the identifiers visible."}},
		{"none cheaper", []replay.Result{none, over, result("dear", 1.2, 100, 0)}, []string{"No policy is cheaper"}},
	} {
		var b strings.Builder
		printAdvice(&b, &replay.Report{Totals: tt.totals, Recordings: []replay.RecordingReport{{File: "made up"}}}, nil)
		for _, want := range tt.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: advice lacks %q:\n%s", tt.name, want, b.String())
			}
		}
		if strings.Contains(b.String(), "The cheapest") != (len(tt.want) == 2 && strings.HasPrefix(tt.want[1], "The cheapest")) {
			t.Errorf("%s: advice about the cheapest out of place:\n%s", tt.name, b.String())
		}
	}
}

func TestQuoteArg(t *testing.T) {
	for in, want := range map[string]string{
		"a/b.jsonl":   "a/b.jsonl",
		"a b":         "'a b'",
		"it's":        `'it'\''s'`,
		"-x":          "./-x",
		"":            "''",
		"e\x1b[1m'\n": `$'e\x1b[1m\'\x0a'`,
	} {
		if got := quoteArg(in); got != want {
			t.Errorf("quoteArg(%q) = %s, want %s", in, got, want)
		}
	}
}
