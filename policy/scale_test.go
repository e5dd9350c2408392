package policy

import (
	"runtime"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// longSession is a session of so many messages of which about 8,000 words are
// visible. Over its life each result was masked by a reduction of its own, and
// every 20 steps all but the newest were replaced by a marker, so that it has as
// many layers as a policy that acts on every request would have left.
func longSession(t testing.TB, messages int) *session {
	s := newSession(t)
	s.say(furl.RoleUser, text(30))
	reduce := func(stage string, first, last furl.Seq, show furl.Show) {
		s.add(&furl.Reduction{Stage: stage, Items: []furl.Item{{
			Spans: []furl.Span{{First: furl.Pos{Msg: first}, Last: furl.Pos{Msg: last}}}, Show: show,
		}}})
	}
	var calls, results []furl.Seq
	for len(results) < messages/2 {
		s.step("read", text(60))
		last := s.log.State().Len() - 1
		call, _ := s.log.State().Message(last - 1)
		result, _ := s.log.State().Message(last)
		calls, results = append(calls, call), append(results, result)
		n := len(results)
		if n > 80 {
			at := results[n-80]
			reduce("mask", at, at, furl.In{Text: "[hidden]", Tokens: 20})
		}
		if n%20 == 0 && n > 140 {
			m := furl.TextMessage(furl.RoleUser, truncationText(2*(n-120)))
			m.Measure(words{})
			reduce("truncate", calls[0], results[n-120], furl.Mark{Messages: []*furl.Message{m}})
		}
	}
	return s
}

// work is what a step costs: allocations, bytes allocated and time.
type work struct{ allocs, bytes, micros float64 }

// goOn lets a session go on under a policy for so many steps, a plan and a
// view after each, and gives how much of it was visible.
func goOn(s *session, p furl.Policy, steps int) (visible int) {
	for range steps {
		s.step("read", text(60))
		s.plan(p, s.budget(10_000))
		visible += s.view().Tokens
	}
	return visible / steps
}

// measured says what a step of goOn costs.
func measured(s *session, p furl.Policy, steps int) (w work, visible int) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	visible = goOn(s, p, steps)
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	n := float64(steps)
	return work{
		allocs: float64(after.Mallocs-before.Mallocs) / n,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / n,
		micros: float64(took.Microseconds()) / n,
	}, visible
}

// What a plan and a view cost follows from what is visible, not from how long
// the session is. Counted is the memory they take; time is only shown, since
// other things may be going on.
func TestPlanScales(t *testing.T) {
	long := 30_000
	if RaceDetector {
		long = 4_000
	}
	for _, name := range NewSet().Names() {
		if name == "none" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var got [2]work
			for i, messages := range []int{1_000, long} {
				p := must(t, name, Clear100k{Trigger: 8000})
				s := longSession(t, messages)
				goOn(s, p, 100) // to where the policy keeps it
				var visible int
				got[i], visible = measured(s, p, 100)
				t.Logf("%6d messages, %d visible tokens: %.0f allocations, %.0f bytes, %.0f µs", messages, visible, got[i].allocs, got[i].bytes, got[i].micros)
			}
			if got[1].allocs > 2*got[0].allocs || got[1].bytes > 2*got[0].bytes {
				t.Errorf("a step costs %.1f times the allocations and %.1f times the bytes", got[1].allocs/got[0].allocs, got[1].bytes/got[0].bytes)
			}
		})
	}
}
