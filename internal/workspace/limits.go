package workspace

import (
	"reflect"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/config"
)

// Limits returns the limits of tenants by the configuration, nil if there are none.
func Limits(c *config.Config) *access.LimitSet {
	l := &c.Gateway.Limits
	if reflect.DeepEqual(*l, config.Limits{}) {
		return nil
	}
	set := &access.LimitSet{Default: limitsOf(l), Tenants: make(map[furl.Tenant]access.Limits)}
	for name, own := range l.Tenants {
		set.Tenants[furl.Tenant(name)] = limitsOf(&own)
	}
	return set
}

func limitsOf(l *config.Limits) access.Limits {
	return access.Limits{
		RequestsPerMinute: l.RequestsPerMinute, Concurrent: l.Concurrent, BytesPerDay: l.BytesPerDay, Sessions: l.Sessions,
		DollarsPerDay: l.DollarsPerDay, DollarsPerProjectDay: l.DollarsPerProjectDay, DollarsPerSession: l.DollarsPerSession, TokensPerSession: l.TokensPerSession,
	}
}
