package gateway

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/furlhq/furl/session"
)

// metrics are counters since the gateway began.
type metrics struct {
	requests, bypassed, aside, undecoded     atomic.Int64
	refused, failed, cut, unread, unrecorded atomic.Int64
	recovered, hidden, dry, panics           atomic.Int64
	recalls                                  atomic.Int64

	mu     sync.Mutex
	stages map[string]int64 // reductions by stage
}

// plan counts what a plan did.
func (m *metrics) plan(x *session.Exchange) {
	p := x.Fit.Plan
	if x.Dry {
		m.dry.Add(1)
		return
	}
	if len(p.Reductions) == 0 {
		return
	}
	m.hidden.Add(int64(max(0, p.Before-p.After)))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stages == nil {
		m.stages = make(map[string]int64)
	}
	for _, red := range p.Reductions {
		m.stages[red.Stage]++
	}
}

// serve writes the counters in the text format of Prometheus.
func (m *metrics) serve(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	process(w)
	counter(w, "furl_requests_total", "requests to models that furl understood", m.requests.Load())
	counter(w, "furl_requests_bypassed_total", "requests that asked to be left alone", m.bypassed.Load())
	counter(w, "furl_requests_dry_run_total", "requests that were planned and sent as they came", m.dry.Load())
	counter(w, "furl_requests_aside_total", "requests that belong to no conversation", m.aside.Load())
	counter(w, "furl_requests_undecoded_total", "requests that could not be read", m.undecoded.Load())
	counter(w, "furl_requests_refused_total", "requests that the gateway refused", m.refused.Load())
	counter(w, "furl_upstream_failures_total", "requests that did not reach their provider", m.failed.Load())
	counter(w, "furl_answers_cut_total", "answers that were cut off", m.cut.Load())
	counter(w, "furl_answers_unread_total", "answers that could not be read", m.unread.Load())
	counter(w, "furl_answers_unrecorded_total", "answers that could not be recorded", m.unrecorded.Load())
	counter(w, "furl_overflows_recovered_total", "prompts that were too long and were sent again, shorter", m.recovered.Load())
	counter(w, "furl_tokens_hidden_total", "tokens that reductions took out of prompts when they were made", m.hidden.Load())
	counter(w, "furl_panics_total", "failures that furl did not foresee; the log has where", m.panics.Load())
	counter(w, "furl_recalls_total", "calls of recall tools that the gateway answered", m.recalls.Load())
	fmt.Fprintf(w, "# HELP furl_reductions_total reductions by stage\n# TYPE furl_reductions_total counter\n")
	m.mu.Lock()
	defer m.mu.Unlock()
	stages := make([]string, 0, len(m.stages))
	for name := range m.stages {
		stages = append(stages, name)
	}
	slices.Sort(stages)
	for _, name := range stages {
		fmt.Fprintf(w, "furl_reductions_total{stage=%q} %d\n", name, m.stages[name])
	}
}

func counter(w io.Writer, name, help string, n int64) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s counter\n%s %d\n", name, help, name, name, n)
}
