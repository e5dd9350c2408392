package token

import "github.com/furlhq/furl"

// Meter estimates the size of the next prompt along one path, in the
// provider's tokens: what was reported for the last request, its reply, and
// what came since. It is fed with the path in order, messages with Message
// and usages with Report where their request stands, before the reply.
//
// When the prompt changes in another way than by growing — a reduction, a
// lift, a rewind — Rebase says what it is now; until the next report the
// estimate is then Calibration's alone. To size a view of the same messages
// without sending it, subtract what it hides:
//
//	size := m.Estimate() - c.Added(m.Whole().Minus(token.PartOfView(view, model)))
//
// A Meter is a value: a copy can go on along another branch.
type Meter struct {
	cal      Calibration
	lastOnly bool

	whole   Part // all of the prompt that was counted
	loop    Part // thinking since the user last spoke
	last    furl.Usage
	known   bool // last was reported for the prompt that is now growing
	thought bool // the reply to it has thinking
	before  *furl.Message
	reply   Part // since last, what the model said
	added   Part // since last, everything else
	gone    Part // since last, thinking that the provider has dropped
}

// NewMeter returns a meter for an empty prompt.
func NewMeter(m *furl.Model) Meter {
	return Meter{cal: Prior(m), lastOnly: m.Thinking.LastOnly}
}

// Calibration returns the fit so far.
func (m *Meter) Calibration() Calibration { return m.cal }

// Whole returns what was counted of the prompt as it is now.
func (m *Meter) Whole() Part { return m.whole }

// Record takes the next record of a path: a message, or the usage in an
// exchange with the meter's model. It ignores the others; after a reduction or
// a restoration, call Rebase with what the view then shows.
func (m *Meter) Record(r furl.Record) {
	switch body := r.Body.(type) {
	case *furl.Message:
		m.Message(body)
	case *furl.Exchange:
		m.Report(body.Usage)
	}
}

// Message adds a message, which must have been measured. Messages of the
// assistant belong to the last reply.
func (m *Meter) Message(msg *furl.Message) {
	p := PartOf(msg.Blocks)
	if msg.Role == furl.RoleAssistant {
		p = m.thinking(msg, p)
		m.reply = m.reply.Plus(p)
	} else {
		if m.lastOnly && msg.DropsThinking(m.before) {
			m.drop()
		}
		m.added = m.added.Plus(p)
	}
	m.whole = m.whole.Plus(p)
	m.before = msg
}

// thinking settles how the thinking in a message of the reply p is sized: by
// what was reported for the reply, if anything was, and else as counted.
func (m *Meter) thinking(msg *furl.Message, p Part) Part {
	if !has(msg, furl.KindThinking) {
		return p
	}
	if m.last.Reasoning > 0 && m.known {
		p.Thinking = 0
		if !m.thought {
			p.Reasoning = m.last.Reasoning
		}
	}
	m.thought = true
	m.loop = m.loop.Plus(Part{Thinking: p.Thinking, Reasoning: p.Reasoning})
	return p
}

// drop leaves out the thinking since the user last spoke.
func (m *Meter) drop() {
	m.gone = m.gone.Plus(m.loop)
	m.whole = m.whole.Minus(m.loop)
	m.loop = Part{}
}

// Report takes the usage of the request whose prompt is what was added so
// far. Usages without a prompt are ignored.
func (m *Meter) Report(u furl.Usage) {
	if u.Prompt() <= 0 {
		return
	}
	if m.known {
		known, unknown := m.growth()
		m.cal.ObserveAdded(unknown, u.Prompt()-known)
	}
	m.cal.Observe(m.whole, u.Prompt())
	m.last, m.known, m.thought = u, true, false
	m.reply, m.added, m.gone = Part{}, Part{}, Part{}
}

// Rebase says that the prompt is now this, and not what the last report was
// about. Where p has thinking, what was reported of it since the user last
// spoke is taken to be there still.
func (m *Meter) Rebase(p Part) {
	if p.Thinking == 0 {
		m.loop = Part{}
	}
	p.Reasoning += m.loop.Reasoning
	m.loop.Thinking = p.Thinking
	m.whole, m.known = p, false
	m.reply, m.added, m.gone = Part{}, Part{}, Part{}
}

// Switch goes on with another model. What was learned about the overhead is
// kept, in the other model's tokens; the rest starts from its prior.
func (m *Meter) Switch(to *furl.Model) {
	m.cal = m.cal.in(to)
	m.known, m.lastOnly = false, to.Thinking.LastOnly
}

// Estimate estimates the prompt as it is now.
func (m *Meter) Estimate() int {
	if !m.known {
		return m.cal.Estimate(m.whole)
	}
	known, unknown := m.growth()
	return max(known+m.cal.Added(unknown), 0)
}

// Reply returns the output of the last reported request, after its messages
// were added: as reported, or estimated where that cannot be. A client may
// have written down the count of a reply that had only begun.
func (m *Meter) Reply() int {
	if m.plausible() {
		return m.last.Output
	}
	return m.cal.Added(m.reply)
}

// leastOutput is the least share of a reply's estimated size that its reported
// output must have to be believed.
const leastOutput = 0.7

func (m *Meter) plausible() bool {
	return float64(m.last.Output) >= leastOutput*m.cal.Scale()*float64(m.reply.Tokens+m.reply.Thinking)
}

// growth splits the prompt as it is now into what the provider has reported
// and what is left to estimate.
func (m *Meter) growth() (known int, unknown Part) {
	unknown = m.added.Minus(m.gone)
	if m.plausible() {
		known = m.last.Output
		if !m.thought {
			known -= m.last.Reasoning // not sent back
		}
	} else {
		unknown = unknown.Plus(m.reply)
	}
	known += m.last.Prompt() + unknown.Reasoning
	unknown.Reasoning = 0
	return known, unknown
}
