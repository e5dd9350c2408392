package keepalive

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

// IsPause reports whether a time between two requests is a pause that entries of one
// hour outlive, and the entries of the model do not.
func IsPause(m *furl.Model, d time.Duration) bool {
	return m.Caching.Lifetime > 0 && d > m.Caching.Lifetime && d <= time.Hour
}

// HourPays reports whether entries of one hour pay for the instructions and tools of a
// session that has paused once, as IsPause says. The first of them is written with the
// request after that pause, which writes the whole prompt anyway. They pay if the model
// has a price for them, and one more such pause saves more than they cost to write.
func HourPays(m *furl.Model) bool {
	if !m.Caching.Explicit || m.Caching.Lifetime == 0 || m.Caching.Lifetime >= time.Hour || !price.Known(m.Prices) {
		return false
	}
	p := price.Complete(m.Prices)
	return p.CacheWrite1h > p.CacheWrite && p.CacheWrite-p.CacheRead > p.CacheWrite1h-p.CacheWrite
}
