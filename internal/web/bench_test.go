package web_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// longSession is a session of n messages, of about 200 tokens each, with requests and
// reductions.
func longSession(t testing.TB, n int) (*session.Sessions, *session.Session) {
	t.Helper()
	all, _ := sessiontest.Open(t, session.Options{Policy: "rolling-mask-10", Window: 200_000})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5", Title: "A long session"})
	steps := sessiontest.Steps(t, n/2, 1500)
	for len(steps) > 0 {
		k := min(len(steps), 41)
		sessiontest.AppendAll(t, s, steps[:k-1])
		if _, err := s.Reduce(t.Context(), session.ReduceOptions{}); err != nil {
			t.Fatal(err)
		}
		sessiontest.AppendAll(t, s, steps[k-1:k])
		steps = steps[k:]
	}
	return all, s
}

// BenchmarkSession measures the first view of a session's page by a process that has not
// shown it before, and later views.
func BenchmarkSession(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		all, s := longSession(b, n)
		serve := func(p *web.Page, path string) int {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(b.Context(), "GET", "/furl/sessions/"+string(s.ID())+path, nil)
			p.ServePage(w, r, gateway.Visit{Sessions: all})
			if w.Code != 200 {
				b.Fatalf("status %d: %s", w.Code, w.Body)
			}
			return w.Body.Len()
		}
		b.Run(fmt.Sprintf("first/messages=%d", n), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(serve(web.New(nil), "")), "bytes")
			}
		})
		p := web.New(nil)
		for _, path := range []string{"", "?request=5", "/messages?chunk=3", "/picture", "/requests", "/meter"} {
			if path == "?request=5" && len(s.Records(0)) > 0 {
				if reqs, err := s.Requests(); err != nil || len(reqs) < 5 {
					continue
				}
			}
			b.Run(fmt.Sprintf("next%s/messages=%d", path, n), func(b *testing.B) {
				for b.Loop() {
					b.ReportMetric(float64(serve(p, path)), "bytes")
				}
			})
		}
	}
}
