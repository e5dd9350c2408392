package recall

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// An Indexer tries again as long as it runs, so its errors and logs must not grow
// with the number of sessions or with time.
const (
	maxFailuresInRow = 8           // sessions; then it is probably the store
	maxNamedErrors   = 3           // sessions that an error names
	logInterval      = time.Minute // between two errors in the log
)

// sessionErrors collects the errors of sessions.
type sessionErrors struct {
	errs    []error
	more    int // errors that are not in errs
	inRow   int // errors since the last success
	skipped int // sessions that were not tried
}

func (e *sessionErrors) add(err error) {
	if err == nil {
		e.inRow = 0
		return
	}
	if e.inRow++; len(e.errs) < maxNamedErrors {
		e.errs = append(e.errs, err)
	} else {
		e.more++
	}
}

func (e *sessionErrors) join() error {
	errs := e.errs
	if e.more > 0 {
		errs = append(errs, fmt.Errorf("and %d more sessions", e.more))
	}
	if e.skipped > 0 {
		errs = append(errs, fmt.Errorf("skipped %d other sessions", e.skipped))
	}
	return errors.Join(errs...)
}

// stopAt records the session at which CatchupTenant stopped.
func (x *Indexer) stopAt(key furl.SessionKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gaveUp[key.Tenant] = key.Session
}

// resume returns the sessions of a tenant, starting after the one at which
// CatchupTenant stopped, so that the others are tried even if the store was not
// the cause.
func (x *Indexer) resume(tenant furl.Tenant, keys []furl.SessionKey) []furl.SessionKey {
	x.mu.Lock()
	defer x.mu.Unlock()
	last, ok := x.gaveUp[tenant]
	if !ok {
		return keys
	}
	delete(x.gaveUp, tenant)
	i := slices.IndexFunc(keys, func(key furl.SessionKey) bool { return key.Session == last }) + 1
	return slices.Concat(keys[i:], keys[:i])
}

// logError logs an error of Run, at most one per logInterval.
func (x *Indexer) logError(tenant furl.Tenant, err error) {
	if !x.logged.IsZero() && time.Since(x.logged) < logInterval {
		x.withheld++
		return
	}
	attrs := []any{"tenant", tenant, "err", err}
	if x.withheld > 0 {
		attrs = append(attrs, "withheld", x.withheld)
	}
	x.options.Log.Error("index sessions", attrs...)
	x.logged, x.withheld = time.Now(), 0
}
