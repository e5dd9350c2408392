package gateway

import (
	"cmp"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/session"
)

// metrics are what the gateway counts. docs/operate/gateway.md says what each means.
// No label holds what a client has made up: models are those of the catalogue,
// and "other".
type metrics struct {
	registry *prometheus.Registry

	requests                                 *prometheus.CounterVec // format, model, status
	bypassed, dry, aside, undecoded          prometheus.Counter
	refused, failed, cut, unread, unrecorded prometheus.Counter
	recovered, beyond, refetches, panics     prometheus.Counter
	recalls                                  prometheus.Counter
	reductions, hidden                       *prometheus.CounterVec   // stage
	tokens                                   *prometheus.CounterVec   // model, kind
	cost, without, saved                     *prometheus.CounterVec   // model
	spent                                    *prometheus.CounterVec   // on
	breaks                                   *prometheus.CounterVec   // cause
	took                                     *prometheus.HistogramVec // stage
	firstByte                                *prometheus.HistogramVec // format
	whole                                    *prometheus.HistogramVec // format
}

// Buckets in seconds: furl's part is milliseconds, a provider's seconds.
var (
	ownBuckets      = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30}
	providerBuckets = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}
)

func newMetrics(g *Gateway) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help, label string, buckets []float64) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
		m.registry.MustRegister(h)
		return h
	}
	m.requests = counters("furl_requests_total", "requests to models, by what the client was answered", "format", "model", "status")
	m.bypassed = counter("furl_requests_bypassed_total", "requests that asked to be left alone")
	m.dry = counter("furl_requests_dry_run_total", "requests that were planned and sent as they came")
	m.aside = counter("furl_requests_aside_total", "requests that belong to no conversation")
	m.undecoded = counter("furl_requests_undecoded_total", "requests that could not be read")
	m.refused = counter("furl_requests_refused_total", "requests that the gateway refused")
	m.failed = counter("furl_upstream_failures_total", "requests that did not reach their provider")
	m.cut = counter("furl_answers_cut_total", "answers that were cut off")
	m.unread = counter("furl_answers_unread_total", "answers that could not be read")
	m.unrecorded = counter("furl_answers_unrecorded_total", "answers that could not be recorded")
	m.recovered = counter("furl_overflows_recovered_total", "prompts that were too long and were sent again, shorter")
	m.panics = counter("furl_panics_total", "failures that furl did not foresee; the log has where")
	m.recalls = counter("furl_recalls_total", "calls of recall tools that the gateway answered")
	m.reductions = counters("furl_reductions_total", "reductions by the stage that made them", "stage")
	m.hidden = counters("furl_tokens_hidden_total", "tokens that reductions took out of prompts when they were made", "stage")
	m.tokens = counters("furl_tokens_total", "tokens that providers reported", "model", "kind")
	m.cost = counters("furl_cost_dollars_total", "what reported tokens cost by the catalogue's prices", "model")
	m.without = counters("furl_cost_without_dollars_total", "estimate of what these requests would have cost had nothing been hidden", "model")
	m.saved = counters("furl_cost_saved_dollars_total", "estimate of what requests cost less because of what was hidden", "model")
	m.spent = counters("furl_cost_spent_dollars_total", "estimate of what reductions cost, by writing the cache anew and by summaries", "on")
	m.beyond = counter("furl_requests_beyond_window_total", "requests that would not have fitted their window had nothing been hidden")
	m.breaks = counters("furl_cache_breaks_total", "requests that could not use what the provider had cached of the one before, by cause", "cause")
	m.refetches = counter("furl_refetches_total", "calls repeated with the same arguments after their result was hidden")
	m.took = histogram("furl_stage_seconds", "time that the stages of furl's own part take before a request goes on", "stage", ownBuckets)
	m.firstByte = histogram("furl_upstream_first_byte_seconds", "time from sending a request on to the first byte of its answer", "format", providerBuckets)
	m.whole = histogram("furl_request_seconds", "time from a request's arrival to the end of its answer", "format", providerBuckets)
	m.gauges(g)
	return m
}

// gauges are read when somebody asks.
func (m *metrics) gauges(g *Gateway) {
	gauge := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	counter := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, f))
	}
	gauge("furl_requests_under_way", "requests to models that are being answered", func() float64 { return float64(g.underWay.Load()) })
	gauge("furl_sessions_in_memory", "sessions that are open", func() float64 {
		return float64(g.sessions.Stats().Sessions)
	})
	gauge("furl_sessions_in_memory_bytes", "estimated memory of the sessions that are open", func() float64 {
		return float64(g.sessions.Stats().Bytes)
	})
	g.summaries.counters(func(name, help string, n *atomic.Int64) {
		counter(name, help, func() float64 { return float64(n.Load()) })
	})
	counter("furl_summaries_late_total", "summaries that were ready and never shown, their place being taken or gone", func() float64 {
		return float64(g.sessions.Stats().LateSummaries)
	})
	counter("furl_summaries_wasted_dollars_total", "what summaries cost that were never shown: of no use, or too late", g.inVain)
	counter("furl_store_errors_total", "failures of the store on the way of requests", func() float64 { return float64(g.sessions.Stats().StoreErrors) })
	counter("furl_exchanges_failed_total", "requests that furl could not prepare", func() float64 { return float64(exchange.Of(g.sessions).Failures()) })
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "furl_build_info", Help: "1, with furl's version"}, []string{"version"})
	build.WithLabelValues(cmp.Or(g.o.Version, "unknown")).Set(1)
	m.registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// unrecordedSoFar counts the answers that could not be recorded.
func (m *metrics) unrecordedSoFar() int64 {
	var out dto.Metric
	if m.unrecorded.Write(&out) != nil {
		return 0
	}
	return int64(out.GetCounter().GetValue())
}

// handler serves the metrics in Prometheus' formats.
func (m *metrics) handler() http.HandlerFunc {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP
}

// prepared counts what was done to a request, and what was hidden in it if the
// provider has accepted it.
func (m *metrics) prepared(x *session.Exchange) {
	for stage, d := range stagesOf(x) {
		m.took.WithLabelValues(stage).Observe(d.Seconds())
	}
	if x.Dry {
		m.dry.Inc()
		return
	}
	if x.Fit == nil || !x.Committed {
		return
	}
	for _, red := range x.Fit.Plan.Reductions {
		m.reductions.WithLabelValues(stageLabel(red.Stage)).Inc()
		m.hidden.WithLabelValues(stageLabel(red.Stage)).Add(float64(max(0, red.Before-red.After)))
	}
}

// stageLabel bounds what a stage of somebody else's can put into a label.
func stageLabel(stage string) string {
	stage = oneLine(stage)
	return stage[:min(len(stage), 60)]
}

// answered counts what a reply told.
func (m *metrics) answered(model string, sent *session.Fit, u furl.Usage) {
	for kind, n := range map[string]int{
		"input": u.Input, "cache_read": u.CacheRead, "cache_write": u.CacheWrite + u.CacheWrite1h, "output": u.Output,
	} {
		if n > 0 {
			m.tokens.WithLabelValues(model, kind).Add(float64(n))
		}
	}
	if sent == nil || sent.Account == nil {
		return
	}
	a := sent.Account
	m.refetches.Add(float64(a.Refetched))
	if a.Break != "" {
		m.breaks.WithLabelValues(a.Break).Inc()
	}
	if a.Over {
		m.beyond.Inc()
	}
	m.spent.WithLabelValues("summaries").Add(max(0, a.Own))
	if !a.Priced {
		return
	}
	m.cost.WithLabelValues(model).Add(max(0, a.Cost))
	m.without.WithLabelValues(model).Add(max(0, a.Without))
	if a.Without >= a.Cost {
		m.saved.WithLabelValues(model).Add(a.Without - a.Cost)
	} else {
		m.spent.WithLabelValues("rewriting").Add(a.Cost - a.Without)
	}
}

// ended counts a request whose answer has ended.
func (m *metrics) ended(format, model string, status int, took time.Duration) {
	class := "none"
	if status >= 100 {
		class = strconv.Itoa(status/100) + "xx"
	}
	m.requests.WithLabelValues(format, model, class).Inc()
	m.whole.WithLabelValues(format).Observe(took.Seconds())
}
