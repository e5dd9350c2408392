package replaycmd

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/replay"
)

// The advice names a policy that keeps nearly all identifiers and most lines visible,
// and how to use it, the Go line last. If there is none, it names the closest.
func TestAdvice(t *testing.T) {
	result := func(name string, share float64, kept, overflows int) replay.Result {
		return replay.Result{Policy: name, Requests: 3, CostShare: &share, References: 100, ReferencesKept: kept, Overflows: overflows}
	}
	none, over := result("none", 1, 100, 0), result("over", 0.1, 100, 1)
	use := []string{
		"Run an agent with it:   furl run --policy good -- AGENT\n",
		"Make it the default:    policy: good   (in furl.yaml)\n",
		"Use it in a Go program: session.Options{Policy: \"good\"}\n",
	}
	for _, tt := range []struct {
		name   string
		totals []replay.Result
		want   string
	}{
		{"a good one", []replay.Result{none, over, result("lossy", 0.5, 80, 0), result("good", 0.7, 96, 0)},
			"\nCheapest policy that keeps 95% of the identifiers and 75% of the quoted lines visible, with at most 10% of the edits blind: good, 70% of the cost as recorded.\n\n" + strings.Join(use, "")},
		{"only lossy ones", []replay.Result{none, over, result("lossy", 0.5, 80, 0), result("worse", 0.6, 70, 0)},
			"\nNo policy that costs less than as recorded keeps 95% of the identifiers and 75% of the quoted lines visible, with at most 10% of the edits blind: none is recommended.\n" +
				"The closest is lossy: 50% of the cost as recorded; it keeps 80.0% of the identifiers and – of the quoted lines visible.\n"},
		{"none cheaper", []replay.Result{none, over, result("dear", 1.2, 100, 0)},
			"\nNo policy that costs less than as recorded keeps 95% of the identifiers and 75% of the quoted lines visible, with at most 10% of the edits blind.\n"},
		{"the recording does not fit", []replay.Result{result("none", 1, 100, 2), result("good", 1.2, 90, 0)},
			"\nAs recorded, 2 of 3 requests do not fit the window.\n" +
				"No policy that costs less than as recorded keeps 95% of the identifiers and 75% of the quoted lines visible, with at most 10% of the edits blind: none is recommended.\n" +
				"The closest is good: 120% of the cost as recorded; it keeps 90.0% of the identifiers and – of the quoted lines visible.\n"},
	} {
		var b strings.Builder
		f := &replayFlags{config: "furl.yaml"}
		printAdvice(&b, &replay.Report{Totals: tt.totals, Recordings: []replay.RecordingReport{{File: "made up"}}}, f)
		if got := b.String(); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}
