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

	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
)

// metrics are the gateway's metrics, which docs/operate/gateway.md describes. Labels
// have no values that clients choose, except the names of unknown types: models are
// those of the catalog and "other".
type metrics struct {
	registry *prometheus.Registry

	clients *prometheus.CounterVec // client, result
	limited *prometheus.CounterVec // limit

	requests                                                      *prometheus.CounterVec // format, model, status
	unaudited                                                     prometheus.Counter
	bypassed, dryRuns, hourCache, auxiliary, undecoded            prometheus.Counter
	refused, failed, cut, unread, unrecorded                      prometheus.Counter
	repairs, recovered, thinking, beyondWindow, refetches, panics prometheus.Counter
	recalls                                                       prometheus.Counter
	repairTokens                                                  *prometheus.CounterVec   // kind
	reductions, hidden                                            *prometheus.CounterVec   // stage
	tokens                                                        *prometheus.CounterVec   // model, kind
	cost, costWithout, saved                                      *prometheus.CounterVec   // model
	spent                                                         *prometheus.CounterVec   // on
	breaks                                                        *prometheus.CounterVec   // cause
	stageTime                                                     *prometheus.HistogramVec // stage
	firstByte                                                     *prometheus.HistogramVec // format
	requestTime                                                   *prometheus.HistogramVec // format
}

// Histogram buckets in seconds. furl's part takes milliseconds, a provider's
// seconds.
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
	m.requests = counters("furl_requests_total", "Requests to models, by the status of the response.", "format", "model", "status")
	m.clients = counters("furl_client_requests_total", "Requests by the client's named key, or the way that it was identified, and whether they were accepted.", "client", "result")
	m.limited = counters("furl_requests_limited_total", "Requests that were refused because of a limit of their tenant.", "limit")
	m.unaudited = counter("furl_audit_failures_total", "Accesses that could not be written to the audit log.")
	m.bypassed = counter("furl_requests_bypassed_total", "Requests with X-Furl-Bypass.")
	m.dryRuns = counter("furl_requests_dry_run_total", "Dry runs: requests that were planned and sent unchanged.")
	m.hourCache = counter("furl_requests_cache_1h_total", "Requests whose instructions and tools got cache entries of one hour.")
	m.auxiliary = counter("furl_requests_aside_total", "Auxiliary requests that are not part of a conversation, such as those for titles.")
	m.undecoded = counter("furl_requests_undecoded_total", "Requests that could not be decoded.")
	m.refused = counter("furl_requests_refused_total", "Requests that the gateway refused.")
	m.failed = counter("furl_upstream_failures_total", "Requests to which the provider did not respond.")
	m.cut = counter("furl_answers_cut_total", "Responses of providers that were cut off.")
	m.unread = counter("furl_answers_unread_total", "Replies that could not be decoded.")
	m.unrecorded = counter("furl_answers_unrecorded_total", "Replies that could not be recorded.")
	m.recovered = counter("furl_overflows_recovered_total", "Requests that the provider refused as larger than the context window, and that were sent again with a shorter prompt.")
	m.thinking = counter("furl_thinking_recovered_total", "Requests whose thinking the provider refused and that were sent again without it.")
	m.panics = counter("furl_panics_total", "Panics; the log has their stacks.")
	m.recalls = counter("furl_recalls_total", "Calls of recall tools that the gateway answered.")
	m.reductions = counters("furl_reductions_total", "Reductions, by the stage that made them.", "stage")
	m.hidden = counters("furl_tokens_hidden_total", "Tokens that reductions removed from prompts when they were made.", "stage")
	m.tokens = counters("furl_tokens_total", "Tokens reported by providers.", "model", "kind")
	m.cost = counters("furl_cost_dollars_total", "Cost of the reported tokens in US dollars, by the prices of the catalog.", "model")
	m.costWithout = counters("furl_cost_without_dollars_total", "Estimated cost of the same requests without reductions, in US dollars.", "model")
	m.saved = counters("furl_cost_saved_dollars_total", "Estimated savings of requests that cost less because of reductions, in US dollars.", "model")
	m.spent = counters("furl_cost_spent_dollars_total", "Estimated cost of reductions in US dollars: rewriting the prompt cache, summaries, and keeping the prompt cache alive.", "on")
	m.beyondWindow = counter("furl_requests_beyond_window_total", "Requests that would not have fit the context window without reductions and compactions.")
	m.breaks = counters("furl_cache_breaks_total", "Requests that could not use the prompt cache of the previous request, by cause.", "cause")
	m.repairs = counter("furl_edits_repaired_total", "Requests that showed text of files again because an edit had failed for it.")
	m.repairTokens = counters("furl_repair_tokens_total", "Tokens of these repairs: shown again, and rewritten in the prompt cache because of it.", "kind")
	m.refetches = counter("furl_refetches_total", "Tool calls repeated with the same arguments after their result was hidden.")
	m.stageTime = histogram("furl_stage_seconds", "Duration of furl's stages before a request is sent.", "stage", ownBuckets)
	m.firstByte = histogram("furl_upstream_first_byte_seconds", "Time from sending a request to the first byte of the response.", "format", providerBuckets)
	m.requestTime = histogram("furl_request_seconds", "Time from receiving a request to the end of the response.", "format", providerBuckets)
	m.registerComputed(g)
	m.registry.MustRegister(unknownTypes{g, prometheus.NewDesc("furl_unknown_types_total",
		"Requests with types of blocks or items that furl does not know, by type. Their steps are never hidden.", []string{"type"}, nil)})
	m.registry.MustRegister(planMetrics{g, prometheus.NewDesc("furl_plan_used_ratio",
		"Used share of the limits of a plan or an API key, of the account that has used the most.", []string{"provider", "window"}, nil)})
	return m
}

// unknownTypes collects the requests with unknown types. Package session bounds the
// number of types and their names.
type unknownTypes struct {
	g    *Gateway
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (u unknownTypes) Describe(to chan<- *prometheus.Desc) { to <- u.desc }

// Collect implements prometheus.Collector.
func (u unknownTypes) Collect(to chan<- prometheus.Metric) {
	for typ, n := range u.g.sessions.Stats().UnknownTypes {
		to <- prometheus.MustNewConstMetric(u.desc, prometheus.CounterValue, float64(n), typ)
	}
}

// registerComputed registers the metrics that are computed when they are collected.
func (m *metrics) registerComputed(g *Gateway) {
	gauge := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	counter := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, f))
	}
	gauge("furl_requests_under_way", "Requests to models in flight.", func() float64 { return float64(g.inFlight.Load()) })
	gauge("furl_sessions_in_memory", "Sessions in memory.", func() float64 {
		return float64(g.sessions.Stats().Sessions)
	})
	gauge("furl_sessions_in_memory_bytes", "Estimated memory of the sessions in memory, in bytes.", func() float64 {
		return float64(g.sessions.Stats().Bytes)
	})
	g.summaries.registerCounters(func(name, help string, n *atomic.Int64) {
		counter(name, help, func() float64 { return float64(n.Load()) })
	})
	counter("furl_summaries_late_total", "Summaries that were written and never used, because the messages they replace were already hidden or gone.", func() float64 {
		return float64(g.sessions.Stats().LateSummaries)
	})
	counter("furl_summaries_wasted_dollars_total", "Cost of summaries that failed or were never used, in US dollars.", g.wastedCost)
	counter("furl_store_errors_total", "Store errors while serving requests.", func() float64 { return float64(g.sessions.Stats().StoreErrors) })
	counter("furl_exchanges_failed_total", "Requests that furl could not prepare and sent unchanged.", func() float64 { return float64(exchange.Of(g.sessions).Failures()) })
	gauge("furl_keep_alive_held", "Requests held in memory to keep the prompt caches of paused sessions alive.", func() float64 { return float64(g.keeper.held()) })
	counter("furl_keep_alive_pings_total", "Requests that kept a prompt cache alive.", func() float64 { return float64(g.keeper.sent.Load()) })
	counter("furl_keep_alive_failed_total", "Requests that should have kept a prompt cache alive and failed.", func() float64 { return float64(g.keeper.failed.Load()) })
	if cert := g.o.Certificate; cert != nil {
		gauge("furl_certificate_expires_seconds", "When the certificate of the gateway expires, in seconds since 1970.", func() float64 { return float64(cert().NotAfter.Unix()) })
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "furl_build_info", Help: "Always 1; the label is furl's version."}, []string{"version"})
	build.WithLabelValues(cmp.Or(g.o.Version, "unknown")).Set(1)
	m.registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// unrecordedCount returns the number of replies that could not be recorded.
func (m *metrics) unrecordedCount() int64 {
	var out dto.Metric
	if m.unrecorded.Write(&out) != nil {
		return 0
	}
	return int64(out.GetCounter().GetValue())
}

// handler serves the metrics in the Prometheus formats.
func (m *metrics) handler() http.HandlerFunc {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP
}

// prepared counts the stages of a request, and its reductions if the provider has
// accepted it.
func (m *metrics) prepared(x *session.Exchange) {
	for stage, d := range stagesOf(x) {
		m.stageTime.WithLabelValues(stage).Observe(d.Seconds())
	}
	if x.Dry {
		m.dryRuns.Inc()
		return
	}
	if x.Fit == nil || !x.Committed {
		return
	}
	if x.Fit.HourCache {
		m.hourCache.Inc()
	}
	if r := x.Fit.Repair; r != nil {
		m.repairs.Inc()
		m.repairTokens.WithLabelValues("shown").Add(float64(max(0, r.After-r.Before)))
		m.repairTokens.WithLabelValues("rewritten").Add(float64(r.Rewritten))
	}
	for _, red := range x.Fit.Plan.Reductions {
		m.reductions.WithLabelValues(stageLabel(red.Stage)).Inc()
		m.hidden.WithLabelValues(stageLabel(red.Stage)).Add(float64(max(0, red.Before-red.After)))
	}
}

// recoveries counts what an exchange has recovered from. x may be nil.
func (m *metrics) recoveries(x *exchange.Exchange) {
	if x != nil && x.Recovered != nil {
		m.recovered.Inc()
	}
	if x != nil && x.ThinkingLeftOut {
		m.thinking.Inc()
	}
}

// stageLabel returns the label of a stage, bounded because other programs can
// define stages.
func stageLabel(stage string) string {
	stage = oneLine(stage)
	return stage[:min(len(stage), 60)]
}

// replied counts the usage and the costs of a reply.
func (m *metrics) replied(model string, sent *policy.Fit, reply *protocol.Reply) {
	for _, p := range reply.Passes.All(reply.Usage) {
		u := p.Usage
		for kind, n := range map[string]int{
			"input": u.Input, "cache_read": u.CacheRead, "cache_write": u.CacheWrite + u.CacheWrite1h, "output": u.Output,
		} {
			if n > 0 {
				m.tokens.WithLabelValues(model, kind).Add(float64(n))
			}
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
		m.beyondWindow.Inc()
	}
	m.spent.WithLabelValues("summaries").Add(max(0, a.Own))
	if !a.Priced {
		return
	}
	m.cost.WithLabelValues(model).Add(max(0, a.Cost))
	m.costWithout.WithLabelValues(model).Add(max(0, a.Without))
	if a.Without >= a.Cost {
		m.saved.WithLabelValues(model).Add(a.Without - a.Cost)
	} else {
		m.spent.WithLabelValues(spentOn(sent)).Add(a.Cost - a.Without)
	}
}

// spentOn returns why a request cost more than without furl.
func spentOn(sent *policy.Fit) string {
	if sent.HourCache && len(sent.Plan.Reductions) == 0 {
		return "cache_1h"
	}
	return "rewriting"
}

// ended counts a request whose response has ended.
func (m *metrics) ended(format, model string, status int, took time.Duration) {
	class := "none"
	if status >= 100 {
		class = strconv.Itoa(status/100) + "xx"
	}
	m.requests.WithLabelValues(format, model, class).Inc()
	m.requestTime.WithLabelValues(format).Observe(took.Seconds())
}
