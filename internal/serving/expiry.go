package serving

import (
	"context"
	"log/slog"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// expiry deletes expired sessions by the configuration's retention, at the start and
// every hour.
//
// With a clock that is far ahead, every session looks expired, and deleting cannot be
// undone. So if the clock has advanced by more than the age at which sessions expire
// (since the previous run, or at the start since the newest record of the store),
// nothing is deleted until the next run. A clock that was wrong at boot is correct by
// then. Sessions that really have expired are deleted an hour late.
type expiry struct {
	sessions  *session.Sessions
	retention func() session.Retention
	now       func() time.Time
	log       *slog.Logger
	audit     *audit.Log // nil: deletions are not written down
	last      time.Time  // the clock at the previous run; before the first, the time of the newest record
}

// expiryEvery is the time between two runs.
const expiryEvery = time.Hour

func (s *Running) expiry() *expiry {
	return &expiry{sessions: s.Sessions, retention: func() session.Retention { return *s.retention.Load() }, now: time.Now, log: s.log, audit: s.audit}
}

func (e *expiry) run(ctx context.Context) error {
	hourly := time.NewTicker(expiryEvery)
	defer hourly.Stop()
	e.last = e.newest(ctx)
	for {
		e.expire(ctx)
		select {
		case <-hourly.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// newest returns the time of the newest record of any tenant, or zero if there is none
// or the store cannot be read.
func (e *expiry) newest(ctx context.Context) (newest time.Time) {
	tenants, err := e.sessions.Tenants(ctx)
	if err != nil {
		return time.Time{}
	}
	for _, tenant := range tenants {
		for info, err := range e.sessions.Store().Sessions(ctx, tenant, storage.SessionQuery{Limit: 1}) {
			if err == nil && info.Updated.After(newest) {
				newest = info.Updated
			}
			break
		}
	}
	return newest
}

// expire deletes expired sessions, unless the clock may be wrong.
func (e *expiry) expire(ctx context.Context) {
	r := e.retention()
	now := e.now().Round(0) // wall clock time
	ahead := now.Sub(e.last)
	if e.last.IsZero() {
		ahead = 0
	}
	e.last = now
	if age := r.Shortest(); age > 0 && ahead > age {
		e.log.Warn("clock is far ahead of the newest record: waiting an hour before deleting expired sessions", "clock", now, "ahead", ahead.Round(time.Second))
		return
	}
	gone, err := e.sessions.Retain(ctx, r)
	for _, info := range gone {
		e.log.Info("deleted an expired session", "session", info.Session, "updated", info.Updated)
		e.writeDown(&info)
	}
	if err != nil && ctx.Err() == nil {
		e.log.Error("deleting expired sessions failed", "error", err)
	}
}

// writeDown adds the deletion of a session to the audit log.
func (e *expiry) writeDown(info *storage.SessionInfo) {
	if e.audit == nil {
		return
	}
	err := e.audit.Append(audit.Entry{Action: "delete", Outcome: audit.Done, Via: "retention", Tenant: string(info.Tenant), Session: string(info.Session),
		Reason: "expired; last changed " + info.Newest().UTC().Format(time.RFC3339)})
	if err != nil {
		e.log.Error("audit log cannot be written", "error", err)
	}
}

// RetentionOf returns the retention of a configuration.
func RetentionOf(c *config.Config) session.Retention {
	r := session.Retention{Age: c.Retention.Age, Size: c.Retention.Size}
	if len(c.Retention.Tenants) > 0 {
		r.Tenants = make(map[furl.Tenant]time.Duration)
	}
	for name, age := range c.Retention.Tenants {
		if name == tenants.LocalName {
			name = string(tenants.Local)
		}
		r.Tenants[furl.Tenant(name)] = age
	}
	return r
}
