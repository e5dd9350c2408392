package gateway

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/furlhq/furl"
)

// beginSummary begins the span of a request for a summary, behind that of the
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
func (t *traced) endSummary(status int, reply *furl.Reply, err error) {
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
