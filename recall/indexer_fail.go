package recall

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// What an Indexer cannot do it tries again for as long as it runs, so what it
// says of that must not grow with the sessions there are or with the time.
const (
	maxRow   = 8           // sessions in a row that cannot be indexed: it is the store
	maxNamed = 3           // sessions whose errors are told
	silence  = time.Minute // between two complaints
)

// failures gathers what went wrong with sessions.
type failures struct {
	errs []error
	more int // not in errs
	row  int // since a session that could be indexed
	left int // sessions that were not tried any more
}

func (f *failures) add(err error) {
	if err == nil {
		f.row = 0
		return
	}
	if f.row++; len(f.errs) < maxNamed {
		f.errs = append(f.errs, err)
	} else {
		f.more++
	}
}

func (f *failures) join() error {
	errs := f.errs
	if f.more > 0 {
		errs = append(errs, fmt.Errorf("and %d more sessions", f.more))
	}
	if f.left > 0 {
		errs = append(errs, fmt.Errorf("%d others were not tried", f.left))
	}
	return errors.Join(errs...)
}

// giveUp notes at which session a tenant's were given up.
func (x *Indexer) giveUp(key furl.SessionKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gaveUp[key.Tenant] = key.Session
}

// goOn gives a tenant's sessions from behind the one at which they were given up
// last, and then those before it: the others have their turn, too, where it was
// not the store.
func (x *Indexer) goOn(tenant furl.Tenant, keys []furl.SessionKey) []furl.SessionKey {
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

// complain logs what went wrong, unless that was done a moment ago.
func (x *Indexer) complain(tenant furl.Tenant, err error) {
	if !x.complained.IsZero() && time.Since(x.complained) < silence {
		x.withheld++
		return
	}
	attrs := []any{"tenant", tenant, "err", err}
	if x.withheld > 0 {
		attrs = append(attrs, "withheld", x.withheld)
	}
	x.options.Log.Error("index sessions", attrs...)
	x.complained, x.withheld = time.Now(), 0
}
