package session

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
)

// sizer estimates the requests of a session along its path, by what was
// reported for the earlier ones. It follows the log record by record and can
// be made anew at any time.
type sizer struct {
	at     furl.Seq // the record of the path it has seen last
	begun  bool
	model  string // the meter's, as requests name it
	meter  token.Meter
	edited bool // the prompt has changed in another way than by growing
	last   *furl.Exchange
	when   time.Time // of last
	// preamble is what was counted of instructions and tools when last was
	// sent, as far as this process saw it.
	preamble token.Part
}

// maxReports is how many of the newest exchanges a sizer learns from when it
// is made anew: after so many, a fit hardly moves.
const maxReports = 48

// added follows an append. Anything but the next record of the path, such as
// a rewind, makes the sizer begin anew when it is needed.
func (z *sizer) added(r furl.Record, log *furl.Log, a *shared) {
	if !z.begun || r.Parent != z.at {
		z.begun = false
		return
	}
	z.record(r, log.State(), a)
}

// record takes the next record of the path; st has it applied.
func (z *sizer) record(r furl.Record, st *furl.State, a *shared) {
	z.at = r.Seq
	switch b := r.Body.(type) {
	case *furl.Message:
		z.meter.Message(b)
	case *furl.Reduction, *furl.Restoration, *furl.Takeover:
		z.edited = true
	case *furl.Exchange:
		z.exchange(r, b, st, a)
	}
}

func (z *sizer) exchange(r furl.Record, ex *furl.Exchange, st *furl.State, a *shared) {
	m := a.Model(ex.Model, "")
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
	if !elsewhere(ex, st) {
		z.meter.Report(ex.Usage)
	}
	z.last, z.when = ex, r.At
}

// follow brings the sizer to the head of the log.
func (z *sizer) follow(log *furl.Log, a *shared) {
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
	// Views are needed where something was hidden between two reports, so
	// the path is folded once more.
	st := new(furl.State)
	for i, r := range path {
		if err := st.Apply(r); err != nil {
			break // cannot be: the log has folded it
		}
		if i >= from {
			z.record(r, st, a)
		}
	}
	z.at = log.Head()
}

// budget is what a plan for the view has to go by. extra is what goes with the
// request and is not in the view.
func (z *sizer) budget(v *furl.View, name string, b furl.Budget, preamble, extra token.Part) furl.Budget {
	meter := z.meter
	rebase := z.edited
	switch {
	case z.model == "":
		meter, rebase = token.NewMeter(&b.Model), true
	case z.model != name:
		meter.Switch(&b.Model)
		rebase = true
	}
	if rebase {
		meter.Rebase(token.PartOfView(v))
	}
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

// partOfTail counts what a request has after the path.
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
