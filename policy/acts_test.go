package policy_test

import (
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

func TestSizes(t *testing.T) {
	for _, tt := range []struct {
		name            string
		set             policy.Settings
		recall          bool
		trigger, target int
	}{
		{name: "none"},
		{name: "tool-age"},
		{name: "rolling-mask-5"},
		{name: "sliding-window", trigger: 85_000},
		{name: "sliding-window", set: policy.Settings{Threshold: 0.5}, trigger: 50_000},
		{name: "compaction", trigger: 85_000},
		{name: "rolling", recall: true, trigger: 85_000, target: 80_000},
		{name: "rolling", recall: true, set: policy.Settings{Threshold: 0.5}, trigger: 50_000, target: 50_000},
		{name: "rolling", trigger: 85_000}, // compaction takes its place
		{name: "clear-100k", trigger: 100_001},
		{name: "graduated", trigger: 92_001},
		{name: "auto", trigger: 91_000},
		{name: "auto:frugal", trigger: 91_000},
		{name: "auto", set: policy.Settings{RollingContext: new(true)}, trigger: 91_000},
		{name: "auto", set: policy.Settings{Off: true}},
	} {
		p, err := policy.NewSet().Policy(tt.name, tt.set)
		if err != nil {
			t.Fatal(err)
		}
		b := policy.NewBudget(furl.Model{ID: "m"}, 100_000)
		b.Recall = tt.recall
		if trigger, target := policy.Sizes(p, &b); trigger != tt.trigger || target != tt.target {
			t.Errorf("%s with %+v acts at %d and reduces to %d, want %d and %d", tt.name, tt.set, trigger, target, tt.trigger, tt.target)
		}
		b = policy.NewBudget(furl.Model{ID: "m"}, 0) // an unknown window
		if trigger, target := policy.Sizes(p, &b); tt.name != "clear-100k" && (trigger != 0 || target != 0) {
			t.Errorf("%s acts at %d and reduces to %d of an unknown window", tt.name, trigger, target)
		}
	}
}
