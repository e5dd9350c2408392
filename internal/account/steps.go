package account

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

// showedUnreduced reports whether an exchange was a dry run that showed hidden
// blocks, so that its usage says nothing about the view.
func showedUnreduced(ex *furl.Exchange, st *furl.State) bool {
	return WasDry(ex.Plan) && event.Hides(st)
}

// WasDry reports whether the steps are those of a dry run.
func WasDry(steps []furl.PlanStep) bool {
	return len(steps) > 0 && steps[len(steps)-1].Stage == event.StageDryRun
}

// HadHourCache reports whether the steps are those of a request whose instructions and
// tools got cache entries of one hour.
func HadHourCache(steps []furl.PlanStep) bool {
	return len(steps) > 0 && steps[len(steps)-1].Stage == event.StageHourCache
}

// keptHour reports whether instructions and tools were read from the cache after a pause
// because furl had asked for entries of one hour.
func (r *Sent) keptHour(late bool) bool {
	return late && HadHourCache(r.Last.Plan) && r.Usage.CacheRead > 0 && r.At.Sub(r.When) <= time.Hour
}
