package price

import (
	"fmt"
	"time"

	"github.com/furlhq/furl"
)

// Request is a request as its provider bills it.
type Request struct {
	// Model is the model of the request without its terms, with the prices of the cache
	// entries that the request asked for (WithLifetime).
	Model *furl.Model
	// Models describes the models of other passes by their names in requests; nil if
	// there are none.
	Models func(name string) furl.Model
	Usage  furl.Usage
	Passes furl.Passes // nil: one, which Usage describes
	Terms  furl.Terms
	At     time.Time
}

// Cost is what a request costs by what it is for, in US dollars.
type Cost struct {
	Fresh, CacheRead, CacheWrite, CacheWrite1h, Output float64
	// Tools are the uses of the provider's own tools.
	Tools float64
}

// Sum is the whole cost.
func (c *Cost) Sum() float64 {
	return c.Fresh + c.CacheRead + c.CacheWrite + c.CacheWrite1h + c.Output + c.Tools
}

// Add adds another cost.
func (c *Cost) Add(d Cost) {
	c.Fresh += d.Fresh
	c.CacheRead += d.CacheRead
	c.CacheWrite += d.CacheWrite
	c.CacheWrite1h += d.CacheWrite1h
	c.Output += d.Output
	c.Tools += d.Tools
}

// Pass is a pass of a request with its prices under the terms of the request, zero if
// unknown.
type Pass struct {
	furl.Pass
	Prices furl.Prices
}

// All returns the passes of the request with their prices. Each is billed at its own
// model's, by the size of its own prompt.
func (r *Request) All() []Pass {
	all := r.Passes.All(r.Usage)
	out := make([]Pass, len(all))
	for i, p := range all {
		m := r.of(&p)
		out[i] = Pass{p, For(m, p.Usage.Prompt(), r.At)}
	}
	return out
}

// of returns the model of a pass under the terms of the request. An advisor has a prompt of
// its own, to which the speed of the request does not apply.
func (r *Request) of(p *furl.Pass) *furl.Model {
	m := r.Model
	if p.Model != "" && r.Models != nil {
		if other := r.Models(p.Model); other.ID != m.ID {
			m = &other
		}
	}
	t := r.Terms
	if !p.OnConversation() {
		t.Speed = ""
	}
	return Under(m, &t)
}

// Cost returns what the request costs. Everything that says what recorded usage has cost
// has it from here. priced reports whether the prices of all passes are known; otherwise
// the cost is 0.
func (r *Request) Cost() (c Cost, priced bool) {
	for _, p := range r.All() {
		if !Known(p.Prices) {
			return Cost{}, false
		}
		c.Add(Split(p.Prices, p.Usage))
	}
	for _, t := range r.Terms.Tools {
		c.Tools += r.Model.Billing.Tools[t.Name] * float64(t.Uses) / 1000
	}
	return c, true
}

// Unpriced lists the terms of the request that have no price for its model in the
// catalogue, such as `service tier "priority"`. They are left out of its cost.
func (r *Request) Unpriced() (list []string) {
	b := &r.Model.Billing
	for _, t := range []struct {
		name, value string
		factors     map[string]float64
	}{{"speed", r.Terms.Speed, b.Speed}, {"geography", r.Terms.Geo, b.Geo}, {"service tier", r.Terms.Tier, b.Tier}} {
		if _, ok := t.factors[t.value]; !ok && t.value != "" {
			list = append(list, fmt.Sprintf("%s %q", t.name, t.value))
		}
	}
	for _, t := range r.Terms.Tools {
		if _, ok := b.Tools[t.Name]; !ok && t.Uses > 0 {
			list = append(list, fmt.Sprintf("tool %q", t.Name))
		}
	}
	return list
}

// Split returns what a usage costs at these prices by what it is for. Unknown prices cost
// nothing.
func Split(p furl.Prices, u furl.Usage) Cost {
	const million = 1e6
	return Cost{
		Fresh:        float64(u.Input) * p.Input / million,
		CacheRead:    float64(u.CacheRead) * p.CacheRead / million,
		CacheWrite:   float64(u.CacheWrite) * p.CacheWrite / million,
		CacheWrite1h: float64(u.CacheWrite1h) * p.CacheWrite1h / million,
		Output:       float64(u.Output) * p.Output / million,
	}
}

// Under returns a model with its prices under the terms of a request. Terms without a
// known price change nothing.
func Under(m *furl.Model, t *furl.Terms) *furl.Model {
	factor := factorOf(m.Billing.Speed, t.Speed) * factorOf(m.Billing.Geo, t.Geo) * factorOf(m.Billing.Tier, t.Tier)
	if factor == 1 {
		return m
	}
	under := *m
	Each(&under, func(p *furl.Prices) {
		p.Input *= factor
		p.CacheRead *= factor
		p.CacheWrite *= factor
		p.CacheWrite1h *= factor
		p.Output *= factor
	})
	return &under
}

func factorOf(factors map[string]float64, term string) float64 {
	if f, ok := factors[term]; ok && term != "" {
		return f
	}
	return 1
}
