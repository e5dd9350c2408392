package policy

import (
	"context"
	"fmt"
	"testing"

	"github.com/furlhq/furl"
)

// BenchmarkPlan is the first plan for a session of which nothing is hidden
// yet and that is larger than its window: the most that a plan has to do. The
// view it begins with is made anew each time.
func BenchmarkPlan(b *testing.B) {
	for _, name := range NewSet().Names() {
		for _, size := range []struct {
			name   string
			tokens int
		}{{"50k", 50_000}, {"200k", 200_000}, {"1M", 1_000_000}} {
			b.Run(name+"/"+size.name, func(b *testing.B) {
				p := must(b, name)
				s := newSession(b)
				s.say(furl.RoleUser, text(30))
				bytes := 0
				for i := range size.tokens / 400 {
					body := text(360)
					bytes += len(body)
					s.step(fmt.Sprint("read", i%7), body)
				}
				at, _ := s.log.State().Message(2)
				first := &furl.Reduction{Stage: "mask", Items: []furl.Item{{
					Spans: []furl.Span{{First: furl.Pos{Msg: at}, Last: furl.Pos{Msg: at}}}, Show: furl.In{Text: "[hidden]", Tokens: 5},
				}}}
				budget := s.budget(size.tokens * 8 / 10)
				b.SetBytes(int64(bytes))
				b.ReportAllocs()
				for b.Loop() {
					state, err := s.log.State().With(first)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := p.Plan(context.Background(), state, budget); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkNextStep is a step more of a session that a policy keeps in its
// window: what comes in is recorded, planned for and shown. It costs as much
// at 100,000 messages as at 1,000; see TestPlanScales.
func BenchmarkNextStep(b *testing.B) {
	for _, name := range NewSet().Names() {
		for _, messages := range []int{1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, messages), func(b *testing.B) {
				if name == "none" {
					b.Skip("it keeps nothing in any window")
				}
				p := must(b, name, Clear100k{Trigger: 8000})
				s, steps := longSession(b, messages), 0
				goOn(s, p, 100)
				b.ReportAllocs()
				for b.Loop() {
					if steps++; steps%messages == 0 { // as long as it says
						b.StopTimer()
						s = longSession(b, messages)
						goOn(s, p, 100)
						b.StartTimer()
					}
					goOn(s, p, 1)
				}
			})
		}
	}
}
