package session

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
)

// wantsHourCache reports whether a request with a view should ask for cache entries of one
// hour for instructions and tools.
func (s *Session) wantsHourCache(in transact.Prompt, b *furl.Budget, v *furl.View) bool {
	last := s.sizes.last
	if last == nil || in.DryRun || in.HourCache == protocol.HourNever || s.all.hourCacheRefused(in.Model) {
		return false
	}
	h := keepalive.Hour{
		When: in.HourCache,
		Policy: func() bool {
			p, err := s.policyFor(in)
			return err == nil && policy.WantsHourCache(p, b)
		},
		At: b.Now, Since: b.Now.Sub(s.sizes.when), Idle: b.Now.Sub(b.LastUse), Had: hadHourCache(last.Plan), Fixed: b.Fixed, Uncached: b.Uncached,
		Hidden: func() int {
			st := s.log.State()
			hidden := hiddenPart(st, v, recordedPart(st))
			return b.Of(hidden.tokens, hidden.items)
		},
	}
	return h.Wanted(&b.Model)
}

// RecordHourCacheRefused implements transact.Session.
func (s oneSession) RecordHourCacheRefused(model string) { s.all.recordHourCacheRefused(model) }

// RecordHourCacheRefused implements transact.Sessions.
func (a allSessions) RecordHourCacheRefused(model string) { a.recordHourCacheRefused(model) }

func (a *shared) recordHourCacheRefused(model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.limits[model]
	l.noHour = true
	a.setLimits(model, l)
}

// hourCacheRefused reports whether a model's provider has refused such entries.
func (a *shared) hourCacheRefused(model string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits[model].noHour
}

// hourStep is the last step of a request of that size whose instructions and tools got
// cache entries of one hour.
func hourStep(size int) furl.PlanStep {
	return furl.PlanStep{Stage: event.StageHourCache, Skipped: "cache entries of one hour for instructions and tools, since the session has paused", Before: size, After: size}
}

// hadHourCache reports whether the steps are those of such a request.
func hadHourCache(steps []furl.PlanStep) bool {
	return len(steps) > 0 && steps[len(steps)-1].Stage == event.StageHourCache
}

// keptHour reports whether instructions and tools were read from the cache after a pause
// because furl had asked for entries of one hour.
func (r *accounted) keptHour(late bool) bool {
	return late && hadHourCache(r.last.Plan) && r.usage.CacheRead > 0 && r.at.Sub(r.when) <= time.Hour
}
