package replay

import (
	"context"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// A summary that is requested with a text of its own is charged without a cache: all
// of that text is new to the provider.
func TestSummaryApart(t *testing.T) {
	own := func(apart int) float64 {
		ask := &asksOnce{apart: apart}
		rep := play(t, Options{Candidates: []Candidate{{Name: "asker", New: func(z policy.Summarizer) (furl.Policy, error) {
			ask.z = z
			return ask, nil
		}}}}, ledger(t, "toy").recording())
		return rep.Totals[0].Split.Own
	}
	none, some, more := own(0), own(1000), own(2000)
	if none <= 0 || more <= some {
		t.Errorf("own calls cost %v with the conversation, %v with 1,000 tokens apart, %v with 2,000", none, some, more)
	}
	if twice := own(3000) - more; twice < (more-some)*0.99 || twice > (more-some)*1.01 {
		t.Errorf("1,000 tokens more cost %v, then %v", more-some, twice)
	}
}

// asksOnce is a policy that requests one summary and hides nothing.
type asksOnce struct {
	z     policy.Summarizer
	apart int
	asked bool
}

func (*asksOnce) Name() string { return "asker" }

func (p *asksOnce) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	v := s.View(b.Model)
	plan := &furl.Plan{Before: b.Size, After: b.Size, View: v}
	if p.asked {
		return plan, nil
	}
	p.asked = true
	_, err := p.z.Summarize(ctx, policy.SummaryRequest{View: v, Hide: v.Units, Budget: b, Apart: p.apart})
	return plan, err
}
