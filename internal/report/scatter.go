package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl/replay"
)

// scatter compares what policies cost with what they keep visible. The page's
// script draws Dots.
type scatter struct {
	Title, Summary string
	Dots           []dot // by rising cost
}

// dot is one policy, embedded in the page as JSON.
type dot struct {
	Policy int    `json:"policy"` // the index of its key
	Name   string `json:"name"`
	Best   bool   `json:"best,omitempty"`
	// Cost is the cost as a multiple of that as recorded.
	Cost float64 `json:"cost"`
	// Low and High are its interval, 0 if there is none.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// Kept is the share that was still visible.
	Kept     float64 `json:"kept"`
	CostText string  `json:"costText"`
	KeptText string  `json:"keptText"`
	// Front says that no other policy is better in one of the two and at least
	// as good in the other.
	Front bool `json:"front,omitempty"`
}

// newScatter places the policies by cost and by the share that kept returns.
func newScatter(title string, results []replay.Result, keys map[string]key, best string, kept func(*replay.Result) (int, int)) *scatter {
	s := &scatter{Title: title}
	for i := range results {
		r := &results[i]
		part, whole := kept(r)
		visible, ok := fraction(part, whole)
		if !ok || !comparable(r) || *r.CostShare >= most {
			continue
		}
		k := keys[r.Policy]
		low, high := 0.0, 0.0
		if total := r.Total(); interval(r) != "–" && total != nil && *total > 0 {
			low, high = *r.CostShare*(*r.CostLow+r.OverflowCost) / *total, *r.CostShare*(*r.CostHigh+r.OverflowCost) / *total
		}
		s.Dots = append(s.Dots, dot{
			Policy: k.Index, Name: k.Name, Best: r.Policy == best, Cost: *r.CostShare, Low: low, High: high, Kept: min(max(visible, 0), 1),
			CostText: ratio(r.CostShare) + "×", KeptText: fmt.Sprintf("%s (%s of %s)", share(part, whole), count(part), count(whole)),
		})
	}
	slices.SortStableFunc(s.Dots, func(a, b dot) int { return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(b.Kept, a.Kept)) })
	highest := -1.0
	for i := range s.Dots {
		if d := &s.Dots[i]; d.Kept > highest {
			highest, d.Front = d.Kept, true
		}
	}
	s.summarize()
	return s
}

// summarize writes the dots as sentences for screen readers.
func (s *scatter) summarize() {
	var b strings.Builder
	fmt.Fprintf(&b, "Scatter chart of cost and %s.", strings.ToLower(s.Title))
	for _, d := range s.Dots {
		fmt.Fprintf(&b, " %s: %s, %s.", d.Name, d.CostText, d.KeptText)
	}
	s.Summary = b.String()
}
