package replay

import (
	"github.com/furlhq/furl"
)

// hits says what share of a recorded prompt was really read from the cache. The simulation of
// the same prompt says what share should have been. Providers and clients lose entries for
// reasons that a recording does not show, and keep some for longer than documented. A policy's
// request at the same place is assumed to have had the same luck.
type hits struct {
	reported  bool
	billed    split     // as the provider reported it
	simulated split     // the same prompt, simulated
	residual  CostSplit // what was billed, less what fitted returns for the same prompt
}

// fits reports whether runs have the hits of the recording: its requests are not replayed as those
// of another model, or with another cache.
func (o *Options) fits() bool {
	return o.Model == "" && o.CacheLifetime == 0 && o.CacheRead == nil && o.CacheWrite == nil && !o.noMark && !o.renewOne
}

// A read differs from the simulated one if it differs by more than 3% of the prompt and 1,500
// tokens. Smaller differences are those of estimated sizes, and of granules.
func differs(prompt int) int { return max(prompt*3/100, 1500) }

// missed reports whether the provider read notably less than it should have.
func (h *hits) missed() bool {
	return h.reported && h.billed.Read < h.simulated.Read-differs(h.billed.prompt())
}

// lost returns the share of the entries that the provider should have read and did not.
func (h *hits) lost() float64 {
	if !h.missed() {
		return 0
	}
	return 1 - float64(h.billed.Read)/float64(h.simulated.Read)
}

// outlived reports whether the provider read notably more than it should have.
func (h *hits) outlived() bool {
	return h.reported && h.billed.Read > h.simulated.Read+differs(h.billed.prompt())
}

// promptOf returns a reported prompt by billing class.
func promptOf(u furl.Usage) split {
	return split{Read: u.CacheRead, Write: u.CacheWrite, WriteLong: u.CacheWrite1h, Fresh: u.Input}
}

// learn compares the prompt as recorded, simulated, with what was billed for it. It returns what
// it cost as billed and as fitted, in dollars; both are 0 if the provider reported nothing.
func (q *request) learn(s split) (billed, fitted float64) {
	u := q.ex.Usage
	if u.Prompt() == 0 {
		return 0, 0
	}
	h := &q.hits
	h.reported, h.billed, h.simulated = true, promptOf(u), s
	cost, like := q.billedInput(), bill(&q.model, q.fitted(s, false), q.at)
	h.residual = cost.minus(like)
	return cost.Input(), like.Input()
}

// billedInput is what was billed for the prompt.
func (q *request) billedInput() CostSplit {
	u := q.ex.Usage
	u.Output = 0
	return usageCost(&q.model, u, q.at)
}

// input returns what a prompt costs that was simulated as s. The prompt that was recorded costs
// what was billed for it.
func (q *request) input(s split, ownLifetime bool) CostSplit {
	cost := bill(&q.model, q.fitted(s, ownLifetime), q.at)
	if h := &q.hits; h.reported {
		cost.add(h.residual.times(float64(s.prompt()) / float64(max(1, h.simulated.prompt()))))
		cost.CacheRead, cost.CacheWrite, cost.Fresh = max(0, cost.CacheRead), max(0, cost.CacheWrite), max(0, cost.Fresh)
	}
	return cost
}

// fitted returns a simulated prompt with the luck of the recorded one. ownLifetime says that
// the run asks for other lifetimes than the recorded client.
func (q *request) fitted(s split, ownLifetime bool) split {
	h := &q.hits
	if !h.reported {
		return s
	}
	read := s.Read
	switch {
	case h.missed():
		read = min(read, q.place(h.billed.Read, s.prompt()))
	case h.outlived():
		read = max(read, min(q.reach(s), q.place(h.billed.Read, s.prompt())))
	case h.simulated.Read > 0:
		read = min(s.prompt(), int(float64(read)*float64(h.billed.Read)/float64(h.simulated.Read)))
	}
	return q.classes(s, read, ownLifetime)
}

// reach is how much of a prompt the provider can have in its cache, however old: what the
// request shares with the one before it. Requests of other sessions share the instructions and
// tools, and those with the same prompt all of it.
func (q *request) reach(s split) int {
	if s.prompt() == q.hits.simulated.prompt() {
		return s.prompt()
	}
	return max(s.Shared, q.fixed)
}

// place returns where a place of the recorded prompt is in another prompt for the same
// request, in tokens. The instructions and tools are the same; of the messages, the share counts.
func (q *request) place(tokens, prompt int) int {
	all := q.hits.simulated.prompt()
	if tokens <= q.fixed || all <= q.fixed || prompt >= all {
		return min(tokens, prompt)
	}
	return q.fixed + int(float64(tokens-q.fixed)*float64(max(0, prompt-q.fixed))/float64(all-q.fixed))
}

// classes splits what was not read of a prompt as the provider split it for the recorded one.
func (q *request) classes(s split, read int, ownLifetime bool) split {
	billed := &q.hits.billed
	prompt := s.prompt()
	out := split{Read: read, Shared: s.Shared, Broke: s.Broke}
	rest := prompt - read
	written := billed.Write + billed.WriteLong
	asBilled := q.hits.reported && !ownLifetime
	if asBilled && written > 0 {
		out.Fresh = min(rest, billed.Fresh)
		out.WriteLong = int(float64(rest-out.Fresh) * float64(billed.WriteLong) / float64(written))
		out.Write = rest - out.Fresh - out.WriteLong
		return out
	}
	if asBilled && billed.Fresh*100 >= billed.prompt() {
		out.Fresh = rest // the client asked for no cache, or the provider does not report writes
		return out
	}
	simulated := s.Fresh + s.Write + s.WriteLong
	if simulated == 0 {
		out.Write = rest
		return out
	}
	out.Fresh = int(float64(rest) * float64(s.Fresh) / float64(simulated))
	out.WriteLong = int(float64(rest) * float64(s.WriteLong) / float64(simulated))
	out.Write = rest - out.Fresh - out.WriteLong
	return out
}
