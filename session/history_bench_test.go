package session_test

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// BenchmarkHistory computes the requests of a session of 10,000 messages, of which
// half are replies: all of them at once, and only those of the newest request. It is
// reduced by auto, before each request by rolling-mask-5, or only by the window.
func BenchmarkHistory(b *testing.B) {
	for name, window := range map[string]int{"auto": 200_000, "rolling-mask-5": 1_000_000, "none": 1_000_000} {
		s := longSession(b, name, window, 10_000)
		records, head := s.Records(0), s.Head()
		o := s.HistoryOptions()
		b.Run(name+"/all", func(b *testing.B) {
			var h *session.History
			for b.Loop() {
				h = session.NewHistory(o)
				if _, err := h.Extend(records, head); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(h.Requests())), "requests")
			b.ReportMetric(float64(len(s.Reductions())), "reductions")
		})
		b.Run(name+"/last", func(b *testing.B) {
			n := len(records)
			for n--; ; n-- {
				if _, ok := records[n].Body.(*furl.Exchange); ok {
					break
				}
			}
			before := records[n].Parent
			for b.Loop() {
				b.StopTimer()
				h := session.NewHistory(o)
				if _, err := h.Extend(records[:before], before); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if same, err := h.Extend(records, head); err != nil || same == 0 {
					b.Fatal(same, err)
				}
			}
		})
	}
}

// longSession is a session of n messages, of about 800 bytes each, and a request for
// each reply.
func longSession(b *testing.B, policy string, window, n int) *session.Session {
	b.Helper()
	all := reopen(b, inmem.New(), session.Options{Policy: policy, Window: window})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	msgs := sessiontest.Steps(b, n/2, 1600)[:n]
	for i := 0; i+1 < n; i += 2 {
		if _, err := s.Append(b.Context(), msgs[i]); err != nil {
			b.Fatal(err)
		}
		fit, err := s.Fit(b.Context(), "claude-sonnet-4-5")
		if err != nil {
			b.Fatal(err)
		}
		read := fit.Plan.After * 9 / 10
		reply := &protocol.Reply{ID: fmt.Sprint(i), Usage: furl.Usage{CacheRead: read, CacheWrite: fit.Plan.After - read}, Messages: msgs[i+1 : i+2]}
		if err := s.Observe(b.Context(), fit, reply); err != nil {
			b.Fatal(err)
		}
	}
	return s
}
