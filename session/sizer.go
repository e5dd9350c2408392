package session

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
)

// sizer estimates the sizes of a session's requests by the usage reported for
// earlier ones. It processes the records of the path in order, and can be rebuilt
// at any time.
type sizer struct {
	at     furl.Seq // the last processed record of the path
	begun  bool
	model  string // of the meter, by its name in requests
	meter  token.Meter
	edited bool // the prompt has changed other than by new messages
	last   *furl.Exchange
	when   time.Time // of last
	// hourly says that the latest exchange that wrote to the prompt cache wrote
	// entries of one hour only.
	hourly bool
	// preamble is the size of the preamble of last, zero if another process sent
	// it.
	preamble token.Part
}

// modelLookup describes a model by its name in requests.
type modelLookup func(name string) furl.Model

// models describes models as the sizer of the session needs them.
func (s *Session) models() modelLookup {
	format := s.format()
	return func(name string) furl.Model { return s.all.Model(name, format) }
}

// maxReports is how many of the latest exchanges a rebuilt sizer uses. More hardly
// change the estimates.
const maxReports = 48

// recordAppended processes an appended record. If it is not the next record of the path, as
// after a rewind, the sizer is rebuilt when it is needed.
func (z *sizer) recordAppended(r furl.Record, log *furl.Log, models modelLookup) {
	if !z.begun || r.Parent != z.at {
		z.begun = false
		return
	}
	z.record(r, log.State(), models)
}

// record processes the next record of the path. st includes it.
func (z *sizer) record(r furl.Record, st *furl.State, models modelLookup) {
	z.at = r.Seq
	switch b := r.Body.(type) {
	case *furl.Message:
		z.meter.Message(b)
	case *furl.Reduction, *furl.Restoration, *furl.Takeover:
		z.edited = true
	case *furl.Exchange:
		z.exchange(r, b, st, models)
	}
}

func (z *sizer) exchange(r furl.Record, ex *furl.Exchange, st *furl.State, models modelLookup) {
	m := models(ex.Model)
	switch {
	case z.last == nil && z.model == "":
		z.meter, z.edited = token.NewMeter(&m), true
	case z.model != ex.Model:
		z.meter.Switch(&m)
		z.edited = true
	}
	z.model = ex.Model
	if z.edited {
		z.meter.Rebase(token.PartOfView(st.View(m)))
	}
	z.edited = false
	if !showedUnreduced(ex, st) {
		z.meter.Report(ex.Usage, ex.Passes)
	}
	z.hourly = wroteHourly(ex.Usage, z.hourly)
	z.last, z.when = ex, r.At
}

// wroteHourly reports whether a request's cache entries live an hour, by its usage; by
// the one before if it wrote none.
func wroteHourly(u furl.Usage, before bool) bool {
	if u.CacheWrite+u.CacheWrite1h > 0 {
		return u.CacheWrite == 0
	}
	return before
}

// update processes the log up to its head.
func (z *sizer) update(log *furl.Log, models modelLookup) {
	if z.begun && z.at == log.Head() {
		return
	}
	preamble := z.preamble
	*z = sizer{begun: true, edited: true, preamble: preamble}
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
			z.record(r, st, models)
		}
	}
	z.at = log.Head()
}

// prompt returns the meter of the next prompt for a model, by its name in requests.
// It asks for the view only if the prompt has changed other than by new messages.
func (z *sizer) prompt(name string, m *furl.Model, view func() *furl.View) token.Meter {
	meter := z.meter
	rebase := z.edited
	switch {
	case z.model == "":
		meter, rebase = token.NewMeter(m), true
	case z.model != name:
		meter.Switch(m)
		rebase = true
	}
	if rebase {
		meter.Rebase(token.PartOfView(view()))
	}
	return meter
}

// budget returns the budget for a plan of the view. extra is the size of messages
// that are sent in addition to the view.
func (z *sizer) budget(v *furl.View, name string, b furl.Budget, preamble, extra token.Part) furl.Budget {
	meter := z.prompt(name, &b.Model, func() *furl.View { return v })
	cal := meter.Calibration()
	b.Scale, b.PerItem = cal.Scale(), cal.PerItem()
	b.Size = meter.Estimate() + cal.Added(extra)
	if cal.Reports() == 0 {
		b.Fixed = cal.Added(preamble)
		b.Size += b.Fixed
	} else {
		b.Fixed = max(0, cal.Overhead())
		if z.preamble != (token.Part{}) && preamble != (token.Part{}) {
			grown := cal.Added(preamble.Minus(z.preamble))
			b.Fixed, b.Size = max(0, b.Fixed+grown), b.Size+grown
		}
	}
	b.LastUse = z.when
	if z.last != nil {
		b.Cold = z.last.Model != name
	}
	return b
}

// estimate returns the estimated size of the context after an exchange and the
// messages of its reply.
func (z *sizer) estimate() int {
	cal := z.meter.Calibration()
	if cal.Reports() > 0 {
		return z.meter.Estimate()
	}
	return z.meter.Estimate() + cal.Added(z.preamble)
}

// partOfTail returns the size of the messages that a request has after the path.
func partOfTail(tail []furl.Message, c furl.Counter) token.Part {
	var p token.Part
	for i := range tail {
		m := tail[i]
		m.Blocks = append([]furl.Block(nil), m.Blocks...)
		m.Measure(c)
		p = p.Plus(token.PartOf(m.Blocks))
	}
	return p
}
