package open

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/storage"
)

// PendingSummary is a summary that is not recorded yet: it is ready, or it waits for
// approval.
type PendingSummary struct {
	// Red is the reduction. At is the record after which it was requested, and Model the
	// model of that request, as requests name it.
	Red   *furl.Reduction
	At    furl.Seq
	Model string
	// If it waits for approval: since when, and the text that a person wants instead.
	Since  time.Time
	Edited string
	// redactions is how many the session had when it was requested.
	redactions int
}

// recordReadySummary records the ready summary if this plan is the time for it, and
// returns the reduction. The caller must then plan again.
func (c *Change) recordReadySummary(in Prompt, b furl.Budget, plan *furl.Plan) (*furl.Reduction, error) {
	if c.s.ready == nil || c.summaryRecorded || c.PolicySettings().Off {
		return nil, nil
	}
	if c.asksFirst() {
		return nil, c.holdReady()
	}
	if _, err := c.log.State().Effect(c.s.ready.Red); errors.Is(err, furl.ErrNotOnPath) {
		return nil, nil // the session may return to its branch
	}
	if over := c.OvertakenBy(c.s.ready); len(over) > 0 {
		return c.recordLate(in, b, over)
	}
	if len(plan.Reductions) == 0 && plan.Reason == "" && !cold(&b) {
		return nil, nil
	}
	return c.recordReady(b)
}

// recordReady records the ready summary, which no other reduction has overtaken.
func (c *Change) recordReady(b furl.Budget) (*furl.Reduction, error) {
	red, err := policy.Commit(c.log.State(), b, c.s.ready.Red)
	if err != nil {
		c.s.discardReady(err.Error())
		return nil, nil
	}
	return c.recordSummary(red)
}

// recordSummary records a summary and marks it as recorded.
func (c *Change) recordSummary(red *furl.Reduction) (*furl.Reduction, error) {
	if _, err := c.Append(furl.Furl, red); err != nil {
		return nil, err
	}
	c.summaryRecorded = true
	return red, nil
}

// withReduction returns a plan with a reduction that was recorded before it, for reports:
// together they are the reductions of the request.
func withReduction(plan *furl.Plan, red *furl.Reduction, before int) *furl.Plan {
	all := *plan
	all.Before = before
	all.Reductions = slices.Insert(slices.Clone(plan.Reductions), 0, red)
	return &all
}

// OvertakenBy returns the reductions that have replaced messages of the summary by a
// marker while it was written.
func (c *Change) OvertakenBy(r *PendingSummary) (over []furl.Seq) {
	st := c.log.State()
	for red := range st.Reductions() {
		if red.Seq > r.At && !red.Undone && hasMarkerIn(red.Reduction, r.Red) {
			over = append(over, red.Seq)
		}
	}
	return over
}

// hasMarkerIn reports whether a reduction replaces messages of another one by a marker.
// Both are on one path.
func hasMarkerIn(red, of *furl.Reduction) bool {
	return slices.ContainsFunc(red.Items, func(item furl.Item) bool {
		_, ok := item.Show.(furl.Mark)
		return ok && overlap(item.Spans, spansOf(of))
	})
}

func spansOf(red *furl.Reduction) (spans []furl.Span) {
	for _, item := range red.Items {
		spans = append(spans, item.Spans...)
	}
	return spans
}

// overlap reports whether spans of one path share a message.
func overlap(a, b []furl.Span) bool {
	return slices.ContainsFunc(a, func(x furl.Span) bool {
		return slices.ContainsFunc(b, func(y furl.Span) bool {
			return x.First.Msg <= y.Last.Msg && y.First.Msg <= x.Last.Msg
		})
	})
}

// restoredOrPinned reports whether blocks hidden by the reductions were restored or pinned.
// Undoing the reductions would undo that too.
func (c *Change) restoredOrPinned(over []furl.Seq) bool {
	st := c.log.State()
	spans := func(seq furl.Seq) []furl.Span {
		if red, ok := st.Reduction(seq); ok {
			return spansOf(red.Reduction)
		}
		return nil
	}
	var hidden []furl.Span
	for _, seq := range over {
		hidden = append(hidden, spans(seq)...)
	}
	wants := func(body furl.Body) bool {
		res, ok := body.(*furl.Restoration)
		if !ok {
			return false
		}
		held := res.Spans
		if res.Of != 0 && res.Hold != furl.Release {
			held = spans(res.Of)
		}
		return overlap(held, hidden)
	}
	for seq := c.log.Head(); seq != 0; seq = c.log.At(seq).Parent {
		body := c.log.At(seq).Body
		if wants(body) {
			return true
		}
		if t, ok := body.(*furl.Takeover); ok {
			for _, body := range t.Taken() {
				if wants(body) {
					return true
				}
			}
		}
	}
	return false
}

// recordLate handles a summary that other reductions have overtaken, at the first
// request after it was written: the prompt is shortest then, so changing it again
// costs least. It undoes the other reductions and records the summary if the prompt
// stays below the size at which the next summary is due, and if that costs no more
// than the summary, which would be wasted otherwise.
func (c *Change) recordLate(in Prompt, b furl.Budget, over []furl.Seq) (*furl.Reduction, error) {
	if b.Force {
		return nil, nil // the provider has just refused the prompt; try with the next request
	}
	lifts, red, err := c.planLate(b, c.s.ready, over)
	if err == nil {
		_, acts := c.summaryStage(&policy.Fit{Model: in.Model, Budget: b})
		switch {
		case float64(red.After) >= dueSize(&b, acts):
			err = fmt.Errorf("the prompt would grow to %d tokens", red.After)
		case !worthIt(&b, red):
			err = fmt.Errorf("rewriting %d tokens of the prompt cache would cost more than the summary", red.After)
		}
	}
	if err != nil {
		c.s.discardReady(err.Error())
		return nil, nil
	}
	for _, lift := range lifts {
		if _, err := c.Append(furl.Furl, lift); err != nil {
			return nil, err
		}
	}
	return c.recordSummary(red)
}

// planLate returns the records that undo the reductions over and record the summary, or
// the reason why that is not possible.
func (c *Change) planLate(b furl.Budget, ready *PendingSummary, over []furl.Seq) (lifts []*furl.Restoration, red *furl.Reduction, err error) {
	for _, seq := range over {
		r := c.log.At(seq)
		if red, _ := r.Body.(*furl.Reduction); red == nil || r.By != furl.Furl || red.Stage == furl.StageClient || red.Summary != nil && red.Summary.Model != "" {
			return nil, nil, errOvertaken
		}
	}
	if c.restoredOrPinned(over) {
		return nil, nil, errOvertaken
	}
	st, err := furl.Fold(c.log, c.log.Head())
	if err != nil {
		return nil, nil, err
	}
	before := st.View(b.Model)
	for i, seq := range over {
		lift := &furl.Restoration{Of: seq, Hold: furl.Release}
		if err := st.Apply(furl.Record{Seq: furl.Seq(c.log.Len() + 1 + i), Parent: st.Head(), At: b.Now, By: furl.Furl, Body: lift}); err != nil {
			return nil, nil, err
		}
		lifts = append(lifts, lift)
	}
	if red, err = policy.Commit(st, b.After(before, st.View(b.Model)), ready.Red); err != nil {
		return nil, nil, err
	}
	return lifts, red, nil
}

var errOvertaken = errors.New("another reduction already replaces its messages")

// worthIt reports whether rewriting the prompt cache for a summary costs no more than
// the summary did; in tokens if there are no prices.
func worthIt(b *furl.Budget, red *furl.Reduction) bool {
	if cold(b) {
		return true
	}
	p := price.Complete(price.For(&b.Model, red.After, b.Now))
	if !price.Known(p) {
		return red.After <= red.Summary.Usage.Prompt()+red.Summary.Usage.Output
	}
	return float64(red.After)*(p.CacheWrite-p.CacheRead)/1e6 <= red.Cost.Own
}

// discardReady discards the ready summary.
func (s *Session) discardReady(why string) {
	s.all.log.Info("summary discarded", "session", s.key.Session, "error", why, "cost", s.ready.Red.Cost.Own)
	s.all.mu.Lock()
	s.all.late.n++
	s.all.late.dollars += s.ready.Red.Cost.Own
	s.all.mu.Unlock()
	s.unused.Add(unusedCost(s.ready.Red))
	s.setReady(nil)
}

// unusedCost returns the cost of a summary that is not used.
func unusedCost(red *furl.Reduction) storage.Savings {
	cost := storage.Savings{SummaryCost: red.Cost.Own}
	if sum := red.Summary; sum != nil {
		cost.SummaryTokens = sum.Usage.Prompt() + sum.Usage.Output
	}
	return cost
}
