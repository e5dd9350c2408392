package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// expiry deletes the sessions that the configuration's retention gives up, at
// the start and every hour.
//
// A clock that is far ahead makes every session look expired, and deleting
// cannot be undone. So when the clock has moved on by more than the age at which
// sessions expire (since the hour before, or at the start since the newest
// record of the store), nothing is deleted until the next hour. By then a clock
// that was wrong at boot has been set, and sessions that are really that old go
// an hour later than they could have.
type expiry struct {
	sessions  *session.Sessions
	retention func() session.Retention
	now       func() time.Time
	log       *slog.Logger
	last      time.Time // the clock at the last run; at the first, the newest record's time
}

// expiryEvery is the time between two runs.
const expiryEvery = time.Hour

func (s *settings) expiry() *expiry {
	return &expiry{sessions: s.sessions, retention: func() session.Retention { return *s.retention.Load() }, now: time.Now, log: s.log}
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

// newest is the time of the newest record of any tenant, zero if there is none or
// the store cannot be read.
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

// expire deletes what has expired, unless the clock may be wrong.
func (e *expiry) expire(ctx context.Context) {
	r := e.retention()
	now := e.now().Round(0) // what the clock shows, not what has passed
	ahead := now.Sub(e.last)
	if e.last.IsZero() {
		ahead = 0
	}
	e.last = now
	if r.Age > 0 && ahead > r.Age {
		e.log.Warn("expired sessions are deleted in an hour, unless the clock is set back until then: it is far ahead of the newest record", "clock", now, "ahead", ahead.Round(time.Second))
		return
	}
	gone, err := e.sessions.Retain(ctx, r)
	for _, info := range gone {
		e.log.Info("a session was deleted, as the retention says", "session", info.Session, "updated", info.Updated)
	}
	if err != nil && ctx.Err() == nil {
		e.log.Error("the retention could not be kept", "error", err)
	}
}
