package recall

import (
	"errors"
	"fmt"
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
