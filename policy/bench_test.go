package policy

import (
	"context"
	"fmt"
	"testing"

	"github.com/furlhq/furl"
)

// BenchmarkPlan is planning and viewing for one more message on a session that
// the policy has kept in its window from the start. What a plan costs should
// follow from what is visible, not from how long the session is.
func BenchmarkPlan(b *testing.B) {
	for _, name := range []string{"sliding-window", "compaction", "rolling", "graduated", "clear-100k"} {
		for _, messages := range []int{1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, messages), func(b *testing.B) {
				p := must(b, name, Options{Trigger: 8000})
				s := newSession(b)
				s.say(furl.RoleUser, text(30))
				for i := 0; s.log.State().Len() < messages; i++ {
					s.step("read", text(60))
					if i%20 == 0 { // or the benchmark would take minutes to begin
						s.plan(p, s.budget(10_000))
					}
				}
				s.plan(p, s.budget(10_000))
				s.say(furl.RoleUser, "one more")
				b.ReportAllocs()
				for b.Loop() {
					budget := s.budget(10_000)
					if _, err := p.Plan(context.Background(), s.log.State(), budget); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(s.view().Tokens), "visible-tokens")
			})
		}
	}
}
