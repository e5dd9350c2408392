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
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// Traces follow OpenTelemetry's conventions for generative AI: one span per
// request to a model, "chat MODEL". What is furl's own is under furl. No
// attribute holds what was said, nor a credential.

// traced is the span of a call. The zero value is none.
type traced struct {
	span  trace.Span // nil: tracing is off
	usage furl.Usage // of all rounds
	// failing says that the span has its fault already, of which the status
	// is the consequence.
	failing bool
}

// traceContext is how a trace goes on from the client and to the provider.
var traceContext propagation.TraceContext

// begin begins a span after that of the client, if it says that it has one.
func (t *traced) begin(g *Gateway, r *http.Request, rt *route) *http.Request {
	if g.o.Tracer == nil {
		return r
	}
	ctx := traceContext.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, t.span = g.o.Tracer.Start(ctx, operation(rt), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", operation(rt)),
		attribute.String("gen_ai.provider.name", rt.codec.Provider()),
		attribute.String("server.address", rt.up.Host()),
	))
	return r.WithContext(ctx)
}

// operation is the convention's word for what a route does. It has none for a
// count.
func operation(rt *route) string {
	if rt.count {
		return "count_tokens"
	}
	return "chat"
}

// carry has the request that goes on tell of the span. Without one, what the
// client says goes on as it came.
func (t *traced) carry(ctx context.Context, header http.Header) {
	if t.span != nil {
		traceContext.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

func (t *traced) set(attrs ...attribute.KeyValue) {
	if t.span != nil {
		t.span.SetAttributes(attrs...)
	}
}

// decoded notes what is asked.
func (t *traced) decoded(req *protocol.Request, rt string) {
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

// prepared notes what furl did before the request went on, and how long each
// stage took.
func (t *traced) prepared(x *session.Exchange) {
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
	if x.Reduced { // the convention has it set only where it is true
		t.set(attribute.Bool("gen_ai.conversation.compacted", true))
	}
}

// maxReductionEvents bounds how many reductions a span lists.
const maxReductionEvents = 16

// firstByte notes the beginning of the provider's answer.
func (t *traced) firstByte(d time.Duration) {
	t.set(attribute.Float64("gen_ai.response.time_to_first_chunk", d.Seconds()))
}

// answered notes what a reply tells.
func (t *traced) answered(sent *session.Fit, reply *protocol.Reply) {
	if t.span == nil {
		return
	}
	t.usage = t.usage.Add(reply.Usage)
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
		t.fault(oneLine(reply.Refusal.Type))
	}
	if sent != nil && sent.Account != nil && sent.Account.Break != "" {
		t.set(attribute.String("furl.cache_break", sent.Account.Break))
	}
}

// fault marks the span as failed, by a word.
func (t *traced) fault(kind string) {
	if t.span != nil && kind != "" {
		t.failing = true
		t.set(attribute.String("error.type", kind))
		t.span.SetStatus(codes.Error, kind)
	}
}

// failed notes that the provider gave no answer.
func (t *traced) failed(err error) {
	if e, ok := errors.AsType[*upstream.Error](err); ok && e.Timeout {
		t.fault("timeout")
	} else if ok {
		t.fault(string(e.Stage))
	}
}

// end ends the span.
func (t *traced) end(status int) {
	if t.span == nil {
		return
	}
	if status > 0 {
		t.set(attribute.Int("http.response.status_code", status))
	}
	if status >= 400 && !t.failing {
		t.fault(strconv.Itoa(status))
	}
	t.span.End()
}

// beginSummary begins the span of a request for a summary, after that of the
// request that made one due, which may be over by then. The header tells the
// provider of it.
func (t *traced) beginSummary(ctx context.Context, a *asker, header http.Header) context.Context {
	if a.g.o.Tracer == nil {
		return ctx
	}
	model := oneLine(a.name)
	ctx, t.span = a.g.o.Tracer.Start(ctx, "chat "+model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", a.rt.codec.Provider()),
		attribute.String("gen_ai.request.model", model),
		attribute.String("gen_ai.conversation.id", string(a.session.Session)),
		attribute.String("server.address", a.rt.up.Host()),
		attribute.Bool("furl.summary", true),
	))
	t.carry(ctx, header)
	return ctx
}

// endSummary ends it.
func (t *traced) endSummary(status int, reply *protocol.Reply, err error) {
	switch {
	case reply != nil:
		t.answered(nil, reply)
	case errors.Is(err, context.Canceled):
		t.fault("canceled")
	case errors.Is(err, context.DeadlineExceeded):
		t.fault("timeout")
	default:
		t.failed(err)
	}
	t.end(status)
}
