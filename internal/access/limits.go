package access

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/furlhq/furl"
)

// Limits are what one tenant may use. A zero field is no limit.
type Limits struct {
	// RequestsPerMinute is the rate of requests to providers. A tenant that was idle
	// may send so many at once.
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	// Concurrent is how many requests may be in flight.
	Concurrent int `json:"concurrent,omitempty"`
	// BytesPerDay is the size of requests and responses in a day of UTC.
	BytesPerDay int64 `json:"bytes_per_day,omitempty"`
	// Sessions is how many sessions a tenant may have in the store.
	Sessions int `json:"sessions,omitempty"`
	// DollarsPerDay, DollarsPerProjectDay, DollarsPerSession and TokensPerSession limit
	// what is spent; see package spending. Days are local ones, dollars those of list
	// prices.
	DollarsPerDay        float64 `json:"dollars_per_day,omitempty"`
	DollarsPerProjectDay float64 `json:"dollars_per_project_day,omitempty"`
	DollarsPerSession    float64 `json:"dollars_per_session,omitempty"`
	TokensPerSession     int     `json:"tokens_per_session,omitempty"`
}

// LimitSet has the limits of all tenants.
type LimitSet struct {
	Default Limits
	Tenants map[furl.Tenant]Limits // each field that is not zero replaces the default's
}

// Of returns the limits of a tenant. It accepts nil, which has none.
func (s *LimitSet) Of(t furl.Tenant) Limits {
	if s == nil {
		return Limits{}
	}
	l, own := s.Default, s.Tenants[t]
	l.RequestsPerMinute = cmp.Or(own.RequestsPerMinute, l.RequestsPerMinute)
	l.Concurrent = cmp.Or(own.Concurrent, l.Concurrent)
	l.BytesPerDay = cmp.Or(own.BytesPerDay, l.BytesPerDay)
	l.Sessions = cmp.Or(own.Sessions, l.Sessions)
	l.DollarsPerDay = cmp.Or(own.DollarsPerDay, l.DollarsPerDay)
	l.DollarsPerProjectDay = cmp.Or(own.DollarsPerProjectDay, l.DollarsPerProjectDay)
	l.DollarsPerSession = cmp.Or(own.DollarsPerSession, l.DollarsPerSession)
	l.TokensPerSession = cmp.Or(own.TokensPerSession, l.TokensPerSession)
	return l
}

// LimitError is the error for a request beyond a limit.
type LimitError struct {
	// Limit is the name of the limit in the configuration.
	Limit string
	// Most is its value.
	Most int64
	// Retry is when the request can succeed, rounded up to a second.
	Retry time.Duration
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("limit of this tenant reached: %s is %d; retry in %s", e.Limit, e.Most, e.Retry)
}

// Usage counts what tenants use, in this process. The zero value is ready. It is safe
// for concurrent use.
type Usage struct {
	mu      sync.Mutex
	tenants map[furl.Tenant]*usage
}

// usage is what one tenant uses. level is a bucket that a request fills by one and that
// drains with time.
type usage struct {
	level    float64
	at       time.Time // of level
	inFlight int
	day      int64 // since 1970
	bytes    int64 // in that day
	sessions int   // as of counted, and those begun since
	counted  time.Time
}

// maxTenants is the number of tenants above which those without requests in flight are
// forgotten. Clients can invent tenants if credentials identify them.
const maxTenants = 1 << 16

func (u *Usage) of(t furl.Tenant) *usage {
	if u.tenants == nil {
		u.tenants = make(map[furl.Tenant]*usage)
	}
	if one := u.tenants[t]; one != nil {
		return one
	}
	if len(u.tenants) >= maxTenants {
		for name, one := range u.tenants { // in no order
			if one.inFlight == 0 {
				delete(u.tenants, name)
			}
			if len(u.tenants) < maxTenants*3/4 {
				break
			}
		}
	}
	one := new(usage)
	u.tenants[t] = one
	return one
}

// Begin counts a request until end is called, or returns a *LimitError.
func (u *Usage) Begin(now time.Time, t furl.Tenant, l Limits) (end func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.of(t)
	one.roll(now)
	if l.Concurrent > 0 && one.inFlight >= l.Concurrent {
		return nil, &LimitError{"concurrent", int64(l.Concurrent), time.Second}
	}
	if l.BytesPerDay > 0 && one.bytes >= l.BytesPerDay {
		return nil, &LimitError{"bytes_per_day", l.BytesPerDay, ceil(time.Unix((one.day+1)*86400, 0).Sub(now))}
	}
	if most := float64(l.RequestsPerMinute); most > 0 {
		if passed := now.Sub(one.at); passed > 0 {
			one.level = max(0, one.level-passed.Minutes()*most)
		}
		one.at = now
		if one.level = min(one.level, most); one.level+1 > most+1e-9 {
			return nil, &LimitError{"requests_per_minute", int64(most), ceil(time.Duration((one.level + 1 - most) / most * float64(time.Minute)))}
		}
		one.level++
	}
	one.inFlight++
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		one.inFlight--
	}), nil
}

// roll starts another day. If the clock is set back, the day stays.
func (one *usage) roll(now time.Time) {
	if day := now.Unix() / 86400; day > one.day {
		one.day, one.bytes = day, 0
	}
}

// ceil rounds up to a second.
func ceil(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

// Add counts bytes of a tenant.
func (u *Usage) Add(now time.Time, t furl.Tenant, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.of(t)
	one.roll(now)
	one.bytes += bytes
}

// Bytes returns the bytes of a tenant today.
func (u *Usage) Bytes(now time.Time, t furl.Tenant) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.of(t)
	one.roll(now)
	return one.bytes
}

// recount is the age at which the number of a tenant's sessions is counted again. At the
// limit, it is recountFull: a deletion shows soon, and refused requests cost little.
const (
	recount     = time.Minute
	recountFull = time.Second
)

// NewSession counts a session that is about to begin, or returns a *LimitError. count
// counts the sessions in the store, at most up to a number. For a tenant it is called once
// a minute, and at the limit at most once a second.
func (u *Usage) NewSession(now time.Time, t furl.Tenant, l Limits, count func(most int) (int, error)) error {
	if l.Sessions <= 0 {
		return nil
	}
	u.mu.Lock()
	one := u.of(t)
	age := now.Sub(one.counted)
	fresh := !one.counted.IsZero() && (age < recount && one.sessions < l.Sessions || age < recountFull)
	u.mu.Unlock()
	n := 0
	if !fresh { // without the lock, because the store may be slow
		var err error
		if n, err = count(l.Sessions); err != nil {
			return err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !fresh {
		one.sessions, one.counted = n, now
	}
	if one.sessions >= l.Sessions {
		return &LimitError{"sessions", int64(l.Sessions), recount}
	}
	one.sessions++
	return nil
}
