package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// Traces follow OpenTelemetry's semantic conventions for generative AI: one span
// "chat MODEL" per request to a model. furl's additional attributes start with
// "furl.". No attribute contains message content or credentials.

// requestSpan is the span of a call. The zero value has no span.
type requestSpan struct {
	span  trace.Span // nil: tracing is off
	usage furl.Usage // of all rounds
	// hasError is set once the span has an error. The HTTP status does not
	// replace it.
	hasError bool
}

// traceContext propagates traces from the client and to the provider.
var traceContext propagation.TraceContext

// start starts a span, as a child of the client's span if the request has one.
func (t *requestSpan) start(g *Gateway, r *http.Request, rt *route) *http.Request {
	if g.o.Tracer == nil {
		return r
	}
	ctx := traceContext.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, t.span = g.o.Tracer.Start(ctx, operationName(rt), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", operationName(rt)),
		attribute.String("gen_ai.provider.name", rt.codec.Provider()),
		attribute.String("server.address", rt.up.Host()),
	))
	return r.WithContext(ctx)
}

// operationName returns the operation name of a route. The conventions define none for
// counting tokens.
func operationName(rt *route) string {
	if rt.endpoint.Count {
		return "count_tokens"
	}
	return "chat"
}

// inject sets the trace headers of the forwarded request. Without a span, the
// client's headers are passed through.
func (t *requestSpan) inject(ctx context.Context, header http.Header) {
	if t.span != nil {
		traceContext.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

func (t *requestSpan) set(attrs ...attribute.KeyValue) {
	if t.span != nil {
		t.span.SetAttributes(attrs...)
	}
}

// decoded records the parameters of the request.
func (t *requestSpan) decoded(req *protocol.Request, rt string) {
	if t.span == nil {
		return
	}
	model := oneLine(req.Model)
	t.span.SetName(rt + " " + model)
	t.set(attribute.String("gen_ai.request.model", model), attribute.Bool("gen_ai.request.stream", req.Stream))
	if req.MaxTokens > 0 {
		t.set(attribute.Int("gen_ai.request.max_tokens", req.MaxTokens))
	}
}

// prepared records what furl changed in the request, and how long each stage took.
func (t *requestSpan) prepared(x *session.Exchange) {
	if t.span == nil {
		return
	}
	for stage, d := range stagesOf(x) {
		t.span.AddEvent("furl."+stage, trace.WithAttributes(attribute.Float64("furl.duration", d.Seconds())))
	}
	if x.Session != nil {
		t.set(attribute.String("gen_ai.conversation.id", string(x.Session.ID())))
	}
	if x.Dry {
		t.set(attribute.Bool("furl.dry_run", true))
	}
	if x.Fit == nil {
		return
	}
	plan := x.Fit.Plan
	t.set(attribute.Int("furl.tokens.before", plan.Before), attribute.Int("furl.tokens.after", plan.After),
		attribute.Int("furl.reductions", len(plan.Reductions)), attribute.Int("furl.thinking.left_out", x.Fit.View.Dropped))
	for _, red := range plan.Reductions[:min(len(plan.Reductions), maxReductionEvents)] {
		t.span.AddEvent("furl.reduction", trace.WithAttributes(
			attribute.String("furl.stage", red.Stage), attribute.Int("furl.tokens.freed", red.Before-red.After),
			attribute.Float64("furl.cost.rewrite", red.Cost.Rewrite), attribute.Float64("furl.cost.saves", red.Cost.PerRequest),
		))
	}
	if x.Reduced { // by the conventions, set only if true
		t.set(attribute.Bool("gen_ai.conversation.compacted", true))
	}
}

// maxReductionEvents is the largest number of reductions that a span lists.
const maxReductionEvents = 16

// firstByte records the time to the first byte of the provider's response.
func (t *requestSpan) firstByte(d time.Duration) {
	t.set(attribute.Float64("gen_ai.response.time_to_first_chunk", d.Seconds()))
}

// replied records a reply.
func (t *requestSpan) replied(sent *policy.Fit, reply *protocol.Reply) {
	if t.span == nil {
		return
	}
	for _, p := range reply.Passes.All(reply.Usage) {
		t.usage = t.usage.Add(p.Usage)
	}
	u := t.usage
	t.set(
		attribute.Int("gen_ai.usage.input_tokens", u.Prompt()), attribute.Int("gen_ai.usage.output_tokens", u.Output),
		attribute.Int("gen_ai.usage.cache_read.input_tokens", u.CacheRead),
		attribute.Int("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite+u.CacheWrite1h),
	)
	if u.Reasoning > 0 {
		t.set(attribute.Int("gen_ai.usage.reasoning.output_tokens", u.Reasoning))
	}
	for key, value := range map[string]string{"gen_ai.response.id": reply.ID, "gen_ai.response.model": reply.Model} {
		if value != "" {
			t.set(attribute.String(key, oneLine(value)))
		}
	}
	if reply.Stop != "" {
		t.set(attribute.StringSlice("gen_ai.response.finish_reasons", []string{oneLine(reply.Stop)}))
	}
	if reply.Refusal != nil {
		t.setError(oneLine(reply.Refusal.Type))
	}
	if sent != nil && sent.Account != nil && sent.Account.Break != "" {
		t.set(attribute.String("furl.cache_break", sent.Account.Break))
	}
}

// setError sets the error type of the span.
func (t *requestSpan) setError(kind string) {
	if t.span != nil && kind != "" {
		t.hasError = true
		t.set(attribute.String("error.type", kind))
		t.span.SetStatus(codes.Error, kind)
	}
}

// failed records that the provider did not respond.
func (t *requestSpan) failed(err error) {
	if e, ok := errors.AsType[*upstream.Error](err); ok && e.Timeout {
		t.setError("timeout")
	} else if ok {
		t.setError(string(e.Stage))
	}
}

// end ends the span.
func (t *requestSpan) end(status int) {
	if t.span == nil {
		return
	}
	if status > 0 {
		t.set(attribute.Int("http.response.status_code", status))
	}
	if status >= 400 && !t.hasError {
		t.setError(strconv.Itoa(status))
	}
	t.span.End()
}

// startSummary starts the span of a request for a summary, as a child of the
// request that made it due, and sets the trace headers. The parent may have ended.
func (t *requestSpan) startSummary(ctx context.Context, a *summarizer, header http.Header) context.Context {
	if a.g.o.Tracer == nil {
		return ctx
	}
	model := oneLine(a.requestModel)
	ctx, t.span = a.g.o.Tracer.Start(ctx, "chat "+model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", a.rt.codec.Provider()),
		attribute.String("gen_ai.request.model", model),
		attribute.String("gen_ai.conversation.id", string(a.session.Session)),
		attribute.String("server.address", a.rt.up.Host()),
		attribute.Bool("furl.summary", true),
	))
	t.inject(ctx, header)
	return ctx
}

// endSummary ends the span of a request for a summary.
func (t *requestSpan) endSummary(status int, reply *protocol.Reply, err error) {
	switch {
	case reply != nil:
		t.replied(nil, reply)
	case errors.Is(err, context.Canceled):
		t.setError("canceled")
	case errors.Is(err, context.DeadlineExceeded):
		t.setError("timeout")
	default:
		t.failed(err)
	}
	t.end(status)
}
