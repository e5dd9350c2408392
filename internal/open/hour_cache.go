package open

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
)

// wantsHourCache reports whether a request with a view should ask for cache entries of one
// hour for instructions and tools.
func (c *Change) wantsHourCache(in Prompt, b *furl.Budget, v *furl.View) bool {
	last := c.sizes.Last
	if last == nil || in.DryRun || in.HourCache == protocol.HourNever || c.all.hourCacheRefused(in.Model) {
		return false
	}
	h := keepalive.Hour{
		When: in.HourCache,
		Policy: func() bool {
			p, err := c.policyFor(in)
			return err == nil && policy.WantsHourCache(p, b)
		},
		At: b.Now, Since: b.Now.Sub(c.sizes.When), Idle: b.Now.Sub(b.LastUse), Had: account.HadHourCache(last.Plan), Fixed: b.Fixed, Uncached: b.Uncached,
		Hidden: func() int {
			st := c.log.State()
			hidden := account.HiddenPart(st, v, account.RecordedPart(st))
			return b.Of(hidden.Tokens, hidden.Items)
		},
	}
	return h.Wanted(&b.Model)
}

// RecordHourCacheRefused records that a model's provider refuses requests for cache
// entries of one hour. No later request of this process asks for them.
func (a *shared) RecordHourCacheRefused(model string) {
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
