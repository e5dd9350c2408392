package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
)

// readySummary is a summary that waits for its place, the record after which
// it was asked for, and the model whose prompt that was.
type readySummary struct {
	red   *furl.Reduction
	at    furl.Seq
	model string // as requests name it
}

// settleSummary records the summary that is ready if now is the time, and gives
// what it recorded: the plan is to be made anew then.
func (s *Session) settleSummary(in Prompt, b furl.Budget, plan *furl.Plan) (*furl.Reduction, error) {
	if s.ready == nil || s.settled {
		return nil, nil
	}
	if _, err := s.log.State().Effect(s.ready.red); errors.Is(err, furl.ErrNotOnPath) {
		return nil, nil // the session may come back to its branch
	}
	if over := s.overtaken(); len(over) > 0 {
		return s.settleLate(in, b, over)
	}
	if len(plan.Reductions) == 0 && plan.Reason == "" && !cold(&b) {
		return nil, nil
	}
	return s.settleNow(b)
}

// settleNow records the summary that is ready, which nothing was faster than.
func (s *Session) settleNow(b furl.Budget) (*furl.Reduction, error) {
	red, err := policy.Commit(s.log.State(), b, s.ready.red)
	if err != nil {
		s.waste(err.Error())
		return nil, nil
	}
	return s.settle(red)
}

// settle records a summary.
func (s *Session) settle(red *furl.Reduction) (*furl.Reduction, error) {
	if _, err := s.add(furl.Furl, red); err != nil {
		return nil, err
	}
	s.settled = true
	return red, nil
}

// withSummary is a plan that was made after a summary that took its place with
// it, as those are told of it who ask what was done: together they are what this
// request is without.
func withSummary(plan *furl.Plan, red *furl.Reduction, before int) *furl.Plan {
	all := *plan
	all.Before = before
	all.Reductions = slices.Insert(slices.Clone(plan.Reductions), 0, red)
	return &all
}

// overtaken gives the reductions that put a mark in the place of what the
// summary represents while it was written.
func (s *Session) overtaken() (over []furl.Seq) {
	st := s.log.State()
	for red := range st.Reductions() {
		if red.Seq > s.ready.at && !red.Undone && marksIn(red.Reduction, s.ready.red) {
			over = append(over, red.Seq)
		}
	}
	return over
}

// marksIn reports whether a reduction has a mark in the place of messages of
// another one. Both are on one path.
func marksIn(red, of *furl.Reduction) bool {
	return slices.ContainsFunc(red.Items, func(item furl.Item) bool {
		_, ok := item.Show.(furl.Mark)
		return ok && touch(item.Spans, spansOf(of))
	})
}

func spansOf(red *furl.Reduction) (spans []furl.Span) {
	for _, item := range red.Items {
		spans = append(spans, item.Spans...)
	}
	return spans
}

// touch reports whether spans of one path have a message in common.
func touch(a, b []furl.Span) bool {
	return slices.ContainsFunc(a, func(x furl.Span) bool {
		return slices.ContainsFunc(b, func(y furl.Span) bool {
			return x.First.Msg <= y.Last.Msg && y.First.Msg <= x.Last.Msg
		})
	})
}

// wanted reports whether somebody has shown again or kept anything of what the
// reductions hide: their lifts would take that back.
func (s *Session) wanted(over []furl.Seq) bool {
	st := s.log.State()
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
		return touch(held, hidden)
	}
	for seq := s.log.Head(); seq != 0; seq = s.log.At(seq).Parent {
		body := s.log.At(seq).Body
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

// settleLate decides about a summary that others were faster than, at the
// first request after it came: the prompt is as short as it will ever be then,
// so that changing it once more costs least. The others are lifted and the
// summary is shown, as if it had been there in time, where that leaves the
// prompt below the size from which the next summary is asked for, and costs no
// more than the summary did, which was paid for in vain otherwise.
func (s *Session) settleLate(in Prompt, b furl.Budget, over []furl.Seq) (*furl.Reduction, error) {
	if b.Force {
		return nil, nil // the provider has just refused the prompt: no time for that
	}
	lifts, red, err := s.late(in, b, over)
	if err != nil {
		s.waste(err.Error())
		return nil, nil
	}
	for _, lift := range lifts {
		if _, err := s.add(furl.Furl, lift); err != nil {
			return nil, err
		}
	}
	return s.settle(red)
}

// late gives what settleLate is to record, or why it is not to.
func (s *Session) late(in Prompt, b furl.Budget, over []furl.Seq) (lifts []*furl.Restoration, red *furl.Reduction, err error) {
	for _, seq := range over {
		r := s.log.At(seq)
		if red, _ := r.Body.(*furl.Reduction); red == nil || r.By != furl.Furl || red.Stage == event.StageClient || red.Summary != nil && red.Summary.Model != "" {
			return nil, nil, errTaken
		}
	}
	if s.wanted(over) {
		return nil, nil, errTaken
	}
	st, err := furl.Fold(s.log, s.log.Head())
	if err != nil {
		return nil, nil, err
	}
	before := st.View(b.Model)
	for i, seq := range over {
		lift := &furl.Restoration{Of: seq, Hold: furl.Release}
		if err := st.Apply(furl.Record{Seq: furl.Seq(s.log.Len() + 1 + i), Parent: st.Head(), At: b.Now, By: furl.Furl, Body: lift}); err != nil {
			return nil, nil, err
		}
		lifts = append(lifts, lift)
	}
	if red, err = policy.Commit(st, b.After(before, st.View(b.Model)), s.ready.red); err != nil {
		return nil, nil, err
	}
	_, acts := s.summaries(&Fit{Model: in.Model, Budget: b})
	switch {
	case float64(red.After) >= soft(&b, acts):
		return nil, nil, fmt.Errorf("with it the prompt has %d tokens again", red.After)
	case !worthIt(&b, red):
		return nil, nil, fmt.Errorf("showing it now costs more than it did: %d tokens are written again", red.After)
	}
	return lifts, red, nil
}

var errTaken = errors.New("its place was taken")

// worthIt reports whether writing a prompt anew for a summary costs no more
// than the summary did; in tokens, where there are no prices.
func worthIt(b *furl.Budget, red *furl.Reduction) bool {
	if cold(b) {
		return true
	}
	p := price.Complete(price.For(&b.Model, red.After))
	if !price.Known(p) {
		return red.After <= red.Summary.Usage.Prompt()+red.Summary.Usage.Output
	}
	return float64(red.After)*(p.CacheWrite-p.CacheRead)/1e6 <= red.Cost.Own
}

// waste lets go of the summary that is ready.
func (s *Session) waste(why string) {
	s.all.log.Info("a summary came too late", "session", s.key.Session, "error", why, "cost", s.ready.red.Cost.Own)
	s.all.mu.Lock()
	s.all.late.n++
	s.all.late.dollars += s.ready.red.Cost.Own
	s.all.mu.Unlock()
	s.setReady(nil)
}
