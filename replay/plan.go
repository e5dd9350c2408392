package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/transcript"
)

// PlanLimit is how far a limit of a subscription rose between the requests of a recording.
type PlanLimit struct {
	Minutes int `json:"minutes"` // the time that the limit is over
	// Rise is in percent of the limit. Other sessions of the account are in it. The true value is at most Rise
	// plus Rounding.
	Rise     float64 `json:"rise_percent"`
	Rounding float64 `json:"rounding_percent"`
	// SavedAtMost has for each policy how much less the limit would have risen at most, in percent of the limit: by
	// the share of the cost that the policy saves (at CostLow). It is less if other sessions ran at the same time, see
	// docs/internals/cost-model.md.
	SavedAtMost map[string]float64 `json:"saved_at_most_percent,omitempty"`
}

// planLimits are the limits that sessions have.
func planLimits(sessions []*transcript.Session) (out []PlanLimit) {
	for _, s := range sessions {
		for _, l := range s.PlanLimits {
			at := slices.IndexFunc(out, func(p PlanLimit) bool { return p.Minutes == l.Minutes })
			if at < 0 {
				at = len(out)
				out = append(out, PlanLimit{Minutes: l.Minutes})
			}
			// Sub-agents run within the time of their session, so that the rises are of the same limit.
			out[at].Rise, out[at].Rounding = max(out[at].Rise, l.Rise), max(out[at].Rounding, float64(l.Steps))
		}
	}
	slices.SortFunc(out, func(a, b PlanLimit) int { return cmp.Compare(a.Minutes, b.Minutes) })
	return out
}

// savePlan fills in what policies would have saved of the limits, as compared with policy none.
func (r *RecordingReport) savePlan(as *Result) {
	if as.Cost == nil || *as.Cost <= 0 {
		return
	}
	for i := range r.PlanLimits {
		l := &r.PlanLimits[i]
		l.SavedAtMost = make(map[string]float64)
		for j := range r.Results {
			if p := &r.Results[j]; p.CostLow != nil && p.Window == as.Window && p.Policy != none {
				l.SavedAtMost[p.Policy] = (l.Rise + l.Rounding) * max(0, 1 - *p.CostLow / *as.Cost)
			}
		}
	}
}

// PlanWords say how far limits of subscriptions rose, and what the recommended policy would have saved of them at most; "" if no
// recording has limits that rose.
func (r *Report) PlanWords() string {
	var minutes []int
	rise, saved := make(map[int]float64), make(map[int]float64)
	recordings, known := 0, r.Recommended != ""
	for i := range r.Recordings {
		rose := false
		for _, l := range r.Recordings[i].PlanLimits {
			if l.Rise == 0 {
				continue
			}
			if !slices.Contains(minutes, l.Minutes) {
				minutes = append(minutes, l.Minutes)
			}
			most, ok := l.SavedAtMost[r.Recommended]
			rise[l.Minutes] += l.Rise
			saved[l.Minutes] += most
			rose, known = true, known && ok
		}
		if rose {
			recordings++
		}
	}
	if recordings == 0 {
		return ""
	}
	slices.Sort(minutes)
	var rises, savings []string
	for _, m := range minutes {
		rises = append(rises, fmt.Sprintf("%.0f%% of a %s limit", rise[m], limitName(m)))
		savings = append(savings, fmt.Sprintf("%.0f%% of a %s limit", saved[m], limitName(m)))
	}
	out := fmt.Sprintf("Plan: during %s, %s were used, by these and other sessions of the account.", numbers.Count(recordings, "recording"), strings.Join(rises, " and "))
	if known {
		out += fmt.Sprintf(" %s would have saved at most %s, if the limits count list prices; other sessions make it less.", r.Recommended, strings.Join(savings, " and "))
	}
	return out
}

// limitName names a limit by its time: 5-hour, weekly.
func limitName(minutes int) string {
	const week, day, hour = 7 * 24 * 60, 24 * 60, 60
	switch {
	case minutes == week:
		return "weekly"
	case minutes%day == 0:
		return fmt.Sprintf("%d-day", minutes/day)
	case minutes%hour == 0:
		return fmt.Sprintf("%d-hour", minutes/hour)
	}
	return fmt.Sprintf("%d-minute", minutes)
}
