package admission

import (
	"errors"

	"github.com/furlhq/furl/internal/access"
)

// Begin counts a request to a provider by its tenant, until end is called with the bytes
// of the request and of its response. It returns the limit that refuses the request.
func (a *Admission) Begin() (end func(bytes int64), limit *access.LimitError) {
	g := a.g
	if g.o.Limits == nil {
		return func(int64) {}, nil
	}
	tenant := a.Who.Tenant
	done, err := g.env.State.usage.Begin(g.env.Now(), tenant, g.o.Limits.Of(tenant))
	if limit, ok := errors.AsType[*access.LimitError](err); ok {
		return nil, limit
	}
	return func(bytes int64) {
		if bytes > 0 {
			g.env.State.usage.Add(g.env.Now(), tenant, bytes)
		}
		done()
	}, nil
}

// BeginSession counts a session that is about to begin. It returns the limit that refuses
// it. count counts the tenant's sessions in the store, at most up to a number. If that
// fails, the session begins, as with every failure of the store.
func (a *Admission) BeginSession(count func(most int) (int, error)) *access.LimitError {
	g := a.g
	if g.o.Limits == nil {
		return nil
	}
	err := g.env.State.usage.NewSession(g.env.Now(), a.Who.Tenant, g.o.Limits.Of(a.Who.Tenant), count)
	limit, ok := errors.AsType[*access.LimitError](err)
	if !ok && err != nil {
		g.env.Log.Warn("sessions of a tenant could not be counted", "error", err)
	}
	return limit
}

// Usage returns the limits of the tenant, nil if it has none, and what it has used of its
// bytes per day.
func (a *Admission) Usage() (limits *access.Limits, today int64) {
	g := a.g
	l := g.o.Limits.Of(a.Who.Tenant)
	if l == (access.Limits{}) {
		return nil, 0
	}
	return &l, g.env.State.usage.Bytes(g.env.Now(), a.Who.Tenant)
}
