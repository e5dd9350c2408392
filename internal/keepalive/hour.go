package keepalive

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
)

// IsPause reports whether a time between two requests is a pause that entries of one
// hour outlive, and the entries of the model do not.
func IsPause(m *furl.Model, d time.Duration) bool {
	return m.Caching.Lifetime > 0 && d > m.Caching.Lifetime && d <= time.Hour
}

// HourPays reports whether entries of one hour pay for the instructions and tools of a
// session that has paused once, as IsPause says, at a time. The first of them is written with the
// request after that pause, which writes the whole prompt anyway. They pay if the model
// has a price for them, and one more such pause saves more than they cost to write.
func HourPays(m *furl.Model, at time.Time) bool {
	if !m.Caching.Explicit || m.Caching.Lifetime == 0 || m.Caching.Lifetime >= time.Hour || !price.Known(m.Prices) {
		return false
	}
	p := price.Complete(price.For(m, 0, at))
	return p.CacheWrite1h > p.CacheWrite && p.CacheWrite-p.CacheRead > p.CacheWrite1h-p.CacheWrite
}

// Hour is what decides whether a request asks for entries of one hour for instructions
// and tools.
type Hour struct {
	When protocol.HourCache
	// Policy returns whether the session's policy asks for such entries by itself.
	Policy func() bool
	// At is the time of the request.
	At time.Time
	// Since is the time since the session's last request, and Had says that it asked
	// for such entries. Idle is the time since a request or a ping used its entries.
	Since, Idle time.Duration
	Had         bool
	// Fixed is the size of instructions and tools, and Hidden returns how many tokens
	// of the request are hidden.
	Fixed  int
	Hidden func() int
	// Uncached says that messages are not cached, so a hidden token saves the input
	// price.
	Uncached bool
}

// Wanted reports whether a request to a model asks for such entries: from the first
// request after a pause on. Unless they are always wanted, what is hidden in that request
// must save at least what they cost more, so that it costs no more than without furl.
func (h *Hour) Wanted(m *furl.Model) bool {
	switch {
	case h.When == protocol.HourNever, !h.Had && !IsPause(m, h.Since), !HourPays(m, h.At), h.When == protocol.HourByPolicy && !h.Policy():
		return false
	case h.Had && h.Since <= time.Hour:
		return true
	}
	if h.When == protocol.HourAlways {
		return true
	}
	if h.Idle <= m.Caching.Lifetime {
		return false // pings have kept the cache, so hiding does not save a write
	}
	p := price.Complete(price.For(m, 0, h.At))
	saved := p.CacheWrite
	if h.Uncached {
		saved = p.Input
	}
	return float64(h.Hidden())*saved >= float64(h.Fixed)*(p.CacheWrite1h-p.CacheWrite)
}
