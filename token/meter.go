package token

import "github.com/furlhq/furl"

// Meter estimates the size of the next prompt along one path, in the
// provider's tokens: the usage reported for the last request, its reply, and
// everything added since. The caller adds the path in order: messages with
// Message, and usages with Report at the position of their request, before
// the reply.
//
// If parts of the prompt are hidden or shown again, call Edit with what is left:
// it is subtracted from the last report. If the prompt is another one (a rewind),
// call Rebase with it; until the next report, the estimate is then made by the
// Calibration alone.
//
// A Meter is a value: a copy can continue along another branch.
type Meter struct {
	cal      Calibration
	lastOnly bool

	whole   Part // everything counted in the prompt
	loop    Part // thinking since the last user message
	counted int  // tokens counted of thinking in loop whose size was reported
	last    furl.Usage
	known   bool // last was reported for the current prompt
	thought bool // the reply to it has thinking
	inside  bool // last is of a later pass, whose prompt has a part of the reply
	before  *furl.Message
	reply   Part // since last, messages of the model
	added   Part // since last, everything else
	gone    Part // since last, thinking that the provider has dropped
	edited  bool // the prompt was edited since last, to the size left, and grew since
	left    int
}

// NewMeter returns a meter for an empty prompt.
func NewMeter(m *furl.Model) Meter {
	return Meter{cal: Prior(m), lastOnly: m.Thinking.LastOnly}
}

// Calibration returns the current fit.
func (m *Meter) Calibration() Calibration { return m.cal }

// Whole returns what is counted in the current prompt.
func (m *Meter) Whole() Part { return m.whole }

// Record adds the next record of a path: a message, or the usage in an
// exchange with the meter's model. It ignores other records; after a
// reduction or a restoration, call Rebase with what the view then shows.
func (m *Meter) Record(r furl.Record) {
	switch body := r.Body.(type) {
	case *furl.Message:
		m.Message(body)
	case *furl.Exchange:
		m.Report(body.Usage, body.Passes)
	}
}

// Message adds a message, which must have been measured. Messages of the
// assistant belong to the last reply.
func (m *Meter) Message(msg *furl.Message) {
	p := PartOf(msg.Blocks)
	if msg.Role == furl.RoleAssistant {
		p = m.thinking(msg, p)
		if m.inside {
			m.reply = m.reply.Plus(PartOf(afterProvider(msg.Blocks)))
		} else {
			m.reply = m.reply.Plus(p)
		}
	} else {
		if m.lastOnly && msg.DropsThinking(m.before) {
			m.drop()
		}
		m.added = m.added.Plus(p)
	}
	m.whole = m.whole.Plus(p)
	m.before = msg
}

// afterProvider returns the blocks of a reply after the last one that the provider itself
// added, such as the result of its tool: the last pass wrote them.
func afterProvider(blocks []furl.Block) []furl.Block {
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].Kind == furl.KindOpaque {
			return blocks[i+1:]
		}
	}
	return blocks
}

// thinking sizes the thinking in a message of the reply p: as reported for
// the reply, if it was reported, and otherwise as counted.
func (m *Meter) thinking(msg *furl.Message, p Part) Part {
	if !has(msg, furl.KindThinking) {
		return p
	}
	if m.last.Reasoning > 0 && m.known {
		m.counted += p.Thinking
		p.Thinking = 0
		if !m.thought {
			p.Reasoning = m.last.Reasoning
		}
	}
	m.thought = true
	m.loop = m.loop.Plus(Part{Thinking: p.Thinking, Reasoning: p.Reasoning})
	return p
}

// drop removes the thinking since the last user message.
func (m *Meter) drop() {
	m.gone = m.gone.Plus(m.loop)
	m.whole = m.whole.Minus(m.loop)
	m.loop, m.counted = Part{}, 0
}

// Report adds the usage and the passes of the request whose prompt is everything added so
// far. Usages without a prompt are ignored.
//
// Everything added so far is the prompt of the first pass. The next request has the
// prompt and the output of the last one, unless that was a compaction: what the client
// sends of the conversation after it is not known.
func (m *Meter) Report(u furl.Usage, passes furl.Passes) {
	sent := passes.First(u).Prompt()
	if sent <= 0 || u.Prompt() <= 0 {
		return
	}
	if m.known {
		known, unknown := m.growth()
		m.cal.ObserveAdded(unknown, sent-known)
	}
	m.cal.Observe(m.whole, sent)
	last := passes.Last()
	m.last, m.thought = u, false
	m.known = last < 0 || passes[last].Kind != furl.PassCompaction
	m.inside = sent != u.Prompt()
	m.reply, m.added, m.gone, m.edited = Part{}, Part{}, Part{}, false
}

// Edit replaces the prompt by what an edit leaves of it, p. The estimate then differs from
// the one before by the difference of the two, as a plan of the edit expects
// (furl.Budget.After).
func (m *Meter) Edit(p Part) {
	if !m.known && !m.edited {
		m.Rebase(p)
		return
	}
	before, size := Part{m.whole.Tokens, m.whole.Thinking + m.counted, m.whole.Items, 0}, m.Estimate()
	freed := m.cal.Added(before.Minus(p))
	if all := m.cal.Added(before); freed > size && all > 0 {
		freed = round(float64(size) * float64(freed) / float64(all))
	}
	m.Rebase(p)
	m.edited, m.left = true, size-freed
}

// Rebase replaces the prompt; the last report no longer applies to it. Of the thinking
// reported since the last user message, p is assumed to have the share that it has of what
// was counted.
func (m *Meter) Rebase(p Part) {
	if all := m.counted + m.loop.Thinking; all > 0 {
		share := min(1, float64(p.Thinking)/float64(all))
		m.counted, m.loop.Reasoning = round(float64(m.counted)*share), round(float64(m.loop.Reasoning)*share)
	}
	p.Thinking = max(0, p.Thinking-m.counted)
	p.Reasoning += m.loop.Reasoning
	m.loop.Thinking = p.Thinking
	m.whole, m.known, m.edited = p, false, false
	m.reply, m.added, m.gone = Part{}, Part{}, Part{}
}

// Switch continues with another model. It keeps the overhead, converted to
// the other model's tokens; everything else starts from the model's prior.
func (m *Meter) Switch(to *furl.Model) {
	m.cal = m.cal.in(to)
	m.known, m.edited, m.lastOnly = false, false, to.Thinking.LastOnly
}

// Estimate estimates the current prompt.
func (m *Meter) Estimate() int {
	switch {
	case m.edited:
		return max(m.left+m.cal.Added(m.added.Plus(m.reply).Minus(m.gone)), 0)
	case !m.known:
		return m.cal.Estimate(m.whole)
	}
	known, unknown := m.growth()
	return max(known+m.cal.Added(unknown), 0)
}

// Reply returns the output of the last reported request, after its messages
// were added: as reported, or estimated if the report is implausible. Clients
// sometimes record the count from the start of a reply.
func (m *Meter) Reply() int {
	if m.plausible() {
		return m.last.Output
	}
	return m.cal.Added(m.reply)
}

// leastOutput is the smallest plausible ratio of a reply's reported output to
// its estimated size.
const leastOutput = 0.7

func (m *Meter) plausible() bool {
	return float64(m.last.Output) >= leastOutput*m.cal.Scale()*float64(m.reply.Tokens+m.reply.Thinking)
}

// growth splits the current prompt into what the provider has reported and
// what must be estimated.
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
