package transcript

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/furlhq/furl/internal/rawjson"
)

// PlanLimit is how far a limit of a subscription rose between the requests of a session, as the agent recorded it.
// Other sessions of the account that ran at the same time are in it.
type PlanLimit struct {
	Minutes int     `json:"minutes"` // the time that the limit is over
	Rise    float64 `json:"rise"`    // in percent of the limit
	// Steps is the number of values that Rise was rounded by, each to one percent: the true rise is at most
	// Rise plus Steps.
	Steps int `json:"steps"`

	used   float64
	resets time.Time
}

// sameReset is by how much the time of a reset may differ between responses.
const sameReset = 2 * time.Minute

// maxPlanLimits bounds the limits of a session.
const maxPlanLimits = 8

// rateLimits reads the rate_limits of a token_count: {"primary": {"used_percent", "window_minutes", "resets_at"}, "secondary": …}.
func (c *codex) rateLimits(raw []byte) {
	if c.inherited {
		return
	}
	limits := objectOf(raw)
	for _, name := range [...]string{"primary", "secondary"} {
		var used float64
		var minutes, resets int
		if limits.kind(name) != '{' {
			continue
		}
		r := rawjson.NewReader(limits[name])
		for key := range r.Fields() {
			switch string(key) {
			case "used_percent":
				used = numberOf(r.Raw())
			case "window_minutes":
				minutes, _ = r.Int()
			case "resets_at":
				resets, _ = r.Int()
			}
		}
		if minutes > 0 && resets > 0 && used >= 0 && used <= 100 {
			c.b.planLimit(minutes, used, time.Unix(int64(resets), 0).UTC())
		}
	}
}

// planLimit notes how much of a limit is used.
func (s *Session) planLimit(minutes int, used float64, resets time.Time) {
	at := slices.IndexFunc(s.PlanLimits, func(l PlanLimit) bool { return l.Minutes == minutes })
	if at < 0 {
		if len(s.PlanLimits) < maxPlanLimits {
			s.PlanLimits = append(s.PlanLimits, PlanLimit{Minutes: minutes, Steps: 1, used: used, resets: resets})
		}
		return
	}
	l := &s.PlanLimits[at]
	switch apart := resets.Sub(l.resets); {
	case apart < -sameReset: // an old value
		return
	case apart > sameReset: // it began anew
		l.Rise += used
		l.Steps++
	default:
		l.Rise += max(0, used-l.used)
		used = max(used, l.used)
	}
	l.used, l.resets = used, resets
}

// numberOf reads a JSON number, -1 if it is none.
func numberOf(raw []byte) float64 {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(n) {
		return -1
	}
	return n
}
