package replay

import (
	"math"
	"strings"
	"testing"

	"github.com/furlhq/furl/transcript"
)

// A policy saves at most the share of the risen limit that it saves of the cost, and the rounding.
func TestPlanLimits(t *testing.T) {
	cost, half := 8.0, 4.0
	r := RecordingReport{
		PlanLimits: planLimits([]*transcript.Session{
			{PlanLimits: []transcript.PlanLimit{{Minutes: 10080, Rise: 6, Steps: 1}, {Minutes: 300, Rise: 27, Steps: 1}}},
			{PlanLimits: []transcript.PlanLimit{{Minutes: 300, Rise: 3, Steps: 1}}}, // a sub-agent, at the same time
		}),
		Results: []Result{{Policy: none, CostLow: &cost}, {Policy: "half", CostLow: &half}, {Policy: "unpriced"}},
	}
	r.savePlan(&Result{Cost: &cost})
	if len(r.PlanLimits) != 2 || r.PlanLimits[0].Minutes != 300 || len(r.PlanLimits[0].SavedAtMost) != 1 || math.Abs(r.PlanLimits[0].SavedAtMost["half"]-14) > 1e-9 || math.Abs(r.PlanLimits[1].SavedAtMost["half"]-3.5) > 1e-9 {
		t.Errorf("got %+v", r.PlanLimits)
	}
	rep := Report{Recordings: []RecordingReport{r, {}}}
	said := "Plan: during 1 recording, 27% of a 5-hour limit and 6% of a weekly limit were used, by these and other sessions of the account."
	if got := rep.PlanWords(); got != said {
		t.Errorf("got %q", got)
	}
	rep.Recommended = "half"
	if got := rep.PlanWords(); !strings.HasPrefix(got, said+" half would have saved at most 14% of a 5-hour limit and 4% of a weekly limit,") {
		t.Errorf("got %q", got)
	}
	rep.Recommended = "unpriced"
	if got := rep.PlanWords(); got != said {
		t.Errorf("got %q", got)
	}
	if got := (&Report{Recordings: []RecordingReport{{}}}).PlanWords(); got != "" {
		t.Errorf("got %q without limits", got)
	}
}
