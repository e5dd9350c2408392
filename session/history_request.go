package session

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/token"
)

// request adds a request before its exchange is applied.
func (h *History) request(r furl.Record, ex *furl.Exchange) {
	if h.exchange == 0 && h.replying { // the request ended with the start of its reply
		last := len(h.list) - 1
		h.reduced = append(h.list[last].Reductions, h.reduced...)
		h.list = h.list[:last]
	}
	described := h.describe(ex.Model)
	m := described.Model
	if account.WroteHourly(ex.Usage, h.sizes.Hourly) {
		m = price.WithLifetime(m, price.LongLifetime(&m))
	}
	h.update(&m)
	meter := h.sizes.Prompt(ex.Model, &m, func() *furl.View { return h.state.View(m) })
	cal := meter.Calibration()
	sent := account.Sent{
		Model: &m, Models: h.model, Name: ex.Model, Usage: ex.Usage, Passes: ex.Passes, Terms: ex.Terms, Size: ex.Estimated,
		Preamble: ex.Preamble, At: r.At, Dry: account.WasDry(ex.Plan), Hour: account.HadHourCache(ex.Plan),
		Scale: cal.Scale(), PerItem: cal.PerItem(),
		Last: h.sizes.Last, When: h.sizes.When, Between: h.between,
	}
	shown := h.count(ex.Model, &m)
	switch {
	case h.hides && sent.Dry:
		shown.Tokens, shown.Items = h.recorded.Tokens, h.recorded.Items
	case h.hides:
		sent.Window, sent.Hidden = described.Limit, h.hidden
	}
	q := Request{Exchange: r.Seq, Sent: r.Parent, Time: r.At, Imported: r.By == furl.Import, Dry: sent.Dry, Usage: ex.Usage, Passes: ex.Passes, Terms: ex.Terms, Account: sent.Account()}
	if q.Estimated = ex.Usage.Prompt() == 0; q.Estimated && q.Prompt == 0 {
		q.Size = meter.Estimate()
		if h.hides && sent.Dry {
			q.Size = cal.Added(shown) + cal.Overhead()
		}
	}
	billed := price.Request{Model: &m, Models: h.model, Usage: ex.Usage, Passes: ex.Passes, Terms: ex.Terms, At: r.At}
	q.Split, _ = billed.Cost()
	q.Unpriced = billed.Unpriced()
	for _, step := range ex.Plan {
		if step.Stage == event.StageRepair {
			q.Repaired, q.RepairTokens = step.Skipped, step.After-step.Before
		}
	}
	h.add(q, ex.Model, described, cal, shown)
	h.replying = true
}

// infer adds a request whose reply starts with a message without an exchange.
func (h *History) infer(r furl.Record) {
	described := h.describe(h.o.Default)
	m := &described.Model
	h.update(m)
	shown := h.count(h.o.Default, m)
	cal := h.shown.meter.Calibration()
	q := Request{Sent: r.Parent, Time: r.At, Imported: r.By == furl.Import, Size: h.shown.meter.Estimate(), Estimated: true}
	if h.hides {
		q.Hidden = max(0, scaleOf(cal, token.Part{}, 0).Of(h.hidden.Tokens, h.hidden.Items))
	}
	q.Own, q.OwnTokens = h.between.Own, h.between.OwnTokens
	h.between = account.SinceLast{}
	h.add(q, h.o.Default, described, cal, shown)
}

// count returns the size of the view for a model, as counted.
func (h *History) count(name string, m *furl.Model) token.Part {
	c := &h.shown
	switch {
	case !c.begun:
		c.begun, c.edited, c.meter = true, true, token.NewMeter(m)
	case c.model != name:
		c.edited = true
		c.meter.Switch(m)
	}
	c.model = name
	if c.edited {
		c.edited = false
		c.meter.Rebase(token.PartOfView(h.state.View(*m)))
	}
	return c.meter.Whole()
}

// add completes a request and appends it to the list.
func (h *History) add(q Request, model string, m RequestModel, cal token.Calibration, shown token.Part) {
	q.Number, q.Model = len(h.list)+1, model
	q.Window, q.Trigger, q.Target = m.Window, m.Trigger, m.Target
	if q.Size == 0 {
		q.Size = q.Prompt
	}
	q.Prompt = q.Size
	q.PromptWithout, q.PromptMost = account.WithoutSizes(q.Size, q.Hidden, m.Limit)
	q.SizeWithout = q.PromptWithout
	q.Scale = scaleOf(cal, shown, q.Size)
	q.Reductions, h.reduced = h.reduced, nil
	h.list = append(h.list, q)
}

// update computes what furl hides, if that may have changed.
func (h *History) update(m *furl.Model) {
	if !h.edited {
		return
	}
	h.edited, h.hides, h.hidden = false, event.Hides(h.state), account.Counted{}
	if h.hides {
		h.hidden = account.HiddenPart(h.state, h.state.View(*m), h.recorded)
	}
}

// patch updates the sizes for a reduction that shows other texts in place of blocks that
// were shown as recorded, without a view: policies that mask make one before each
// request. It reports whether it did. Other reductions, and thinking, need the view.
func (h *History) patch(red *furl.Reduction) bool {
	client := red.Stage == furl.StageClient
	if h.edited || h.sizes.Edited || h.shown.edited || h.sizes.Model == "" || h.thinks || !h.hides && !client {
		return false
	}
	grown := 0
	for _, item := range red.Items {
		in, ok := item.Show.(furl.In)
		for _, sp := range item.Spans {
			i, found := h.state.Find(sp.First.Msg)
			if !ok || !found || sp.First != sp.Last || h.state.ShownBy(sp.First) != 0 {
				return false
			}
			_, m := h.state.Message(i)
			if sp.First.Block < 0 || sp.First.Block >= len(m.Blocks) {
				return false
			}
			grown += in.Tokens - m.Blocks[sp.First.Block].Tokens
		}
	}
	for _, meter := range []*token.Meter{&h.sizes.Meter, &h.shown.meter} {
		meter.Rebase(meter.Whole().Plus(token.Part{Tokens: grown}))
	}
	if !client {
		h.hidden.Tokens -= grown
	}
	return true
}
