package exchange

import (
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/wire"
)

// askForHourCache asks for cache entries of one hour in the encoded body of a fit, if the fit
// says so.
func (x *Exchange) askForHourCache(fit *policy.Fit) {
	if !fit.HourCache {
		return
	}
	body, ok := wire.For(x.req.Format).HourPreamble(x.Body)
	if fit.HourCache = ok; ok {
		x.Body = body
	}
}

// withoutHourCache handles a refusal of a request that asked for cache entries of one
// hour. It reports whether Body is now the request without them, to send instead. If the
// provider accepts that one, call hourCacheRefused.
func (x *Exchange) withoutHourCache() bool {
	if !x.isRecorded() || x.Fit == nil || !x.Fit.HourCache {
		return false
	}
	body, err := x.encode(x.Fit.View)
	if err != nil {
		return false
	}
	x.Fit.HourCache = false
	x.setBody(body)
	return true
}

// hourCacheRefused records that the provider refuses such entries, so that no later
// request for the model asks for them.
func (x *Exchange) hourCacheRefused() {
	x.all.RecordHourCacheRefused(x.req.Model)
	x.all.Options().Logger.Warn("the provider refuses cache entries of one hour; furl does not ask for them again", "model", x.req.Model)
}
