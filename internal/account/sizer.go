package account

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
)

// Sizer estimates the sizes of a session's requests by the usage reported for
// earlier ones. It processes the records of the path in order, and can be rebuilt
// at any time.
type Sizer struct {
	at     furl.Seq // the last processed record of the path
	begun  bool
	Model  string // of the meter, by its name in requests
	Meter  token.Meter
	Edited bool // the prompt has changed other than by new messages
	Last   *furl.Exchange
	When   time.Time // of last
	// Hourly says that the latest exchange that wrote to the prompt cache wrote
	// entries of one hour only.
	Hourly bool
	// Preamble is the size of the preamble of last, zero if another process sent
	// it.
	Preamble token.Part
}

// ModelLookup describes a model by its name in requests.
type ModelLookup func(name string) furl.Model

// NewSizer returns the sizer of an empty path, which is given each record of it
// (Sizer.Record).
func NewSizer() Sizer { return Sizer{begun: true, Edited: true} }

// maxReports is how many of the latest exchanges a rebuilt Sizer uses. More hardly
// change the estimates.
const maxReports = 48

// RecordAppended processes an appended record. If it is not the next record of the path, as
// after a rewind, the Sizer is rebuilt when it is needed.
func (z *Sizer) RecordAppended(r furl.Record, log *furl.Log, models ModelLookup) {
	if !z.begun || r.Parent != z.at {
		z.begun = false
		return
	}
	z.Record(r, log.State(), models)
}

// Record processes the next record of the path. st includes it.
func (z *Sizer) Record(r furl.Record, st *furl.State, models ModelLookup) {
	z.at = r.Seq
	switch b := r.Body.(type) {
	case *furl.Message:
		z.Meter.Message(b)
	case *furl.Reduction, *furl.Restoration, *furl.Takeover:
		z.Edited = true
	case *furl.Exchange:
		z.exchange(r, b, st, models)
	}
}

func (z *Sizer) exchange(r furl.Record, ex *furl.Exchange, st *furl.State, models ModelLookup) {
	m := models(ex.Model)
	switch {
	case z.Last == nil && z.Model == "":
		z.Meter, z.Edited = token.NewMeter(&m), true
	case z.Model != ex.Model:
		z.Meter.Switch(&m)
		z.Edited = true
	}
	z.Model = ex.Model
	if z.Edited {
		z.Meter.Rebase(token.PartOfView(st.View(m)))
	}
	z.Edited = false
	if !showedUnreduced(ex, st) {
		z.Meter.Report(ex.Usage, ex.Passes)
	}
	z.Hourly = WroteHourly(ex.Usage, z.Hourly)
	z.Last, z.When = ex, r.At
}

// WroteHourly reports whether a request's cache entries live an hour, by its usage; by
// the one before if it wrote none.
func WroteHourly(u furl.Usage, before bool) bool {
	if u.CacheWrite+u.CacheWrite1h > 0 {
		return u.CacheWrite == 0
	}
	return before
}

// Continues reports whether the sizer has processed the path up to a record, so that
// RecordAppended continues it.
func (z *Sizer) Continues(head furl.Seq) bool { return z.begun && z.at == head }

// Update processes the log up to its head.
func (z *Sizer) Update(log *furl.Log, models ModelLookup) {
	if z.begun && z.at == log.Head() {
		return
	}
	preamble := z.Preamble
	*z = Sizer{begun: true, Edited: true, Preamble: preamble}
	path := log.Path(log.Head())
	from, reports := len(path), 0
	for from > 0 && reports < maxReports {
		from--
		if _, ok := path[from].Body.(*furl.Exchange); ok {
			reports++
		}
	}
	if reports == 0 {
		z.at = log.Head()
		return
	}
	// The path is folded again, because the meter needs the views where blocks
	// were hidden between two reports.
	st := new(furl.State)
	for i, r := range path {
		if err := st.Apply(r); err != nil {
			break // cannot happen: the log has folded it
		}
		if i >= from {
			z.Record(r, st, models)
		}
	}
	z.at = log.Head()
}

// Prompt returns the meter of the next prompt for a model, by its name in requests.
// It asks for the view only if the prompt has changed other than by new messages.
func (z *Sizer) Prompt(name string, m *furl.Model, view func() *furl.View) token.Meter {
	meter := z.Meter
	switch {
	case z.Model == "":
		meter = token.NewMeter(m)
	case z.Model != name:
		meter.Switch(m)
	case !z.Edited:
		return meter
	}
	meter.Edit(token.PartOfView(view()))
	return meter
}

// Budget returns the budget for a plan of the view. extra is the size of messages
// that are sent in addition to the view.
func (z *Sizer) Budget(v *furl.View, name string, b furl.Budget, preamble, extra token.Part) furl.Budget {
	meter := z.Prompt(name, &b.Model, func() *furl.View { return v })
	cal := meter.Calibration()
	b.Scale, b.PerItem = cal.Scale(), cal.PerItem()
	b.Size = meter.Estimate() + cal.Added(extra)
	if cal.Reports() == 0 {
		b.Fixed = cal.Added(preamble)
		b.Size += b.Fixed
	} else {
		b.Fixed = max(0, cal.Overhead())
		if z.Preamble != (token.Part{}) && preamble != (token.Part{}) {
			grown := cal.Added(preamble.Minus(z.Preamble))
			b.Fixed, b.Size = max(0, b.Fixed+grown), b.Size+grown
		}
	}
	b.LastUse = z.When
	if z.Last != nil {
		b.Cold = z.Last.Model != name
	}
	return b
}

// Estimate returns the estimated size of the context after an exchange and the
// messages of its reply.
func (z *Sizer) Estimate() int {
	cal := z.Meter.Calibration()
	if cal.Reports() > 0 {
		return z.Meter.Estimate()
	}
	return z.Meter.Estimate() + cal.Added(z.Preamble)
}
