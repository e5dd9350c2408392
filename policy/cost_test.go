package policy

import (
	"math"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

func TestCost(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, text(30)) // 34 tokens
	for range 7 {
		s.step("read", text(96)) // 6 and 100 tokens
	}
	model := furl.Model{
		Prices:  furl.Prices{Input: 10, CacheRead: 1, CacheWrite: 12.5, CacheWrite1h: 20, Output: 50},
		Caching: furl.Caching{Lifetime: 5 * time.Minute, MinPrefix: 100},
	}
	// Masking the first two results frees 91 tokens of each. In front of the
	// first of them stand 34+6; after it, itself included, what is left.
	const freed, stays = 182, 776 - 182 - 40
	// Each later step has 106. The sixth message is the result of the third step, the
	// last with entries of one hour.
	const after = 4 * 106
	const hour = stays - after
	longTo, _ := s.log.State().Message(6)
	for _, tt := range []struct {
		name string
		edit func(*furl.Budget)
		want furl.Cost
	}{
		{"X4 warm cache", func(*furl.Budget) {}, furl.Cost{Rewrite: stays * 11.5, PerRequest: freed * 1}},
		{"X4 cold cache", func(b *furl.Budget) { b.Now = b.LastUse.Add(6 * time.Minute) }, furl.Cost{PerRequest: freed * 1}},
		{"X4 no cache", func(b *furl.Budget) { b.Model.Caching = furl.Caching{} }, furl.Cost{PerRequest: freed * 10}},
		{"X4 too short to be cached", func(b *furl.Budget) { b.Model.Caching.MinPrefix = 9000 }, furl.Cost{PerRequest: freed * 10}},
		{"X4 an hour, then five minutes", func(b *furl.Budget) { b.LongTo = longTo }, furl.Cost{Rewrite: hour*19 + after*11.5, PerRequest: freed * 1}},
		{"X4 five minutes expired, the hour not", func(b *furl.Budget) { b.LongTo, b.Now = longTo, b.LastUse.Add(6*time.Minute) },
			furl.Cost{Rewrite: hour * 19, PerRequest: freed * 1}},
		{"X4 both expired", func(b *furl.Budget) { b.LongTo, b.Now = longTo, b.LastUse.Add(61*time.Minute) }, furl.Cost{PerRequest: freed * 1}},
		{"X4 no breakpoint for messages", func(b *furl.Budget) { b.Uncached = true }, furl.Cost{PerRequest: freed * 10}},
		{"X4 no price", func(b *furl.Budget) { b.Model.Prices = furl.Prices{} }, furl.Cost{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := s.budget(0)
			b.Model, b.LastUse, b.Now = model, s.at, s.at.Add(time.Minute)
			tt.edit(&b)
			plan, err := must(t, "rolling-mask-5").Plan(t.Context(), s.log.State(), b)
			if err != nil {
				t.Fatal(err)
			}
			got := plan.Reductions[0].Cost
			for _, c := range [][2]float64{{got.Rewrite, tt.want.Rewrite}, {got.PerRequest, tt.want.PerRequest}, {got.Own, tt.want.Own}} {
				if math.Abs(c[0]*1e6-c[1]) > 1e-6 {
					t.Errorf("cost %+v, want %+v (per million)", got, tt.want)
				}
			}
		})
	}
	v := s.view()
	red := &furl.Reduction{Summary: &furl.Summary{Usage: furl.Usage{Input: 100, Output: 10}}}
	if got, want := costOf(v, v, furl.Budget{Model: model}, red).Own, 1500e-6; math.Abs(got-want) > 1e-9 {
		t.Errorf("a summary of its own costs %v, want %v", got, want)
	}
}
