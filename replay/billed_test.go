package replay

import (
	"iter"
	"math"
	"slices"
	"testing"

	"github.com/furlhq/furl/transcript"
)

// What was billed does not depend on what the recording is replayed as, and has sub-agents.
func TestBilled(t *testing.T) {
	for fixture, want := range map[string]struct{ billed, subagents float64 }{
		// Claude Opus 5, by hand: 6 fresh, 65,000 read, 10,000 written, 160 out; two advisors with 60,000 in and 2,000 out.
		"claude-billing-advisor.jsonl": {0.09903 + 0.7, 0},
		"claude-billing-fast.jsonl":    {2 * 0.09903, 0},
	} {
		for _, o := range []Options{{}, {Model: "claude-haiku-4-5"}} {
			rec, err := transcript.ReadFile("../transcript/testdata/" + fixture)
			if err != nil {
				t.Fatal(err)
			}
			o.Candidates = presets(t, "none")
			rep, err := Run(t.Context(), iter.Seq[*transcript.Recording](slices.Values([]*transcript.Recording{rec})), o)
			if err != nil {
				t.Fatal(err)
			}
			r := rep.Recordings[0]
			if r.Billed == nil || math.Abs(*r.Billed-want.billed) > 1e-9 || math.Abs(r.BilledSubagents-want.subagents) > 1e-9 || r.OutputRecorded == 0 || r.OutputEstimated < r.OutputRecorded {
				t.Errorf("%s as %q: billed %v (%v), output %d (%d), want %+v", fixture, o.Model, r.Billed, r.BilledSubagents, r.OutputRecorded, r.OutputEstimated, want)
			}
		}
	}
	sessions := play(t, Options{Candidates: presets(t, "none")}, ledger(t, "no-such-model").recording())
	if r := sessions.Recordings[0]; r.Billed != nil {
		t.Errorf("billed $%v without a price", *r.Billed)
	}
}
