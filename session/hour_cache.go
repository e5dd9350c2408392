package session

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/keepalive"
)

// hourCachePays reports whether the next request should ask for cache entries of one hour
// for instructions and tools: from the first request after a pause on.
func (s *Session) hourCachePays(b *furl.Budget) bool {
	paused := s.sizes.paused || !s.sizes.when.IsZero() && keepalive.IsPause(&b.Model, b.Now.Sub(s.sizes.when))
	return paused && keepalive.HourPays(&b.Model)
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
