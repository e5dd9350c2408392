package gateway_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// The request for a summary is a span of its own, after that of the request
// that made one due.
func TestSummaryTrace(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		ended := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ended))
		p := &gated{}
		if refuse {
			p.reply = func(*protocol.Request) (sim.Reply, error) {
				return sim.Reply{}, &protocol.Refusal{Status: 401, Type: "authentication_error", Message: "invalid key"}
			}
		}
		st := compacting(t, p, &gateway.Options{Tracer: provider.Tracer("test")})
		st.until(t, newAgent(furl.FormatAnthropic, true), p, 1)
		st.front.Close() // no request is under way any more
		var own, theirs []sdktrace.ReadOnlySpan
		for _, span := range ended.Ended() {
			if _, ok := attributeOf(span, "furl.summary"); ok {
				own = append(own, span)
			} else {
				theirs = append(theirs, span)
			}
		}
		if len(own) != 1 {
			t.Fatalf("%d spans for one summary", len(own))
		}
		span, last := own[0], theirs[len(theirs)-1]
		if span.Parent().SpanID() != last.SpanContext().SpanID() || span.SpanContext().TraceID() != last.SpanContext().TraceID() {
			t.Errorf("its parent is %s, want %s", span.Parent().SpanID(), last.SpanContext().SpanID())
		}
		if span.Name() != "chat claude-sonnet-4-5" || span.SpanKind() != trace.SpanKindClient {
			t.Errorf("it is %q, %s", span.Name(), span.SpanKind())
		}
		want := map[attribute.Key]attribute.Value{
			"gen_ai.operation.name": attribute.StringValue("chat"), "gen_ai.provider.name": attribute.StringValue("anthropic"),
			"gen_ai.request.model": attribute.StringValue("claude-sonnet-4-5"), "gen_ai.conversation.id": attribute.StringValue(string(st.only(t).ID())),
			"http.response.status_code": attribute.IntValue(200),
		}
		if refuse {
			want["http.response.status_code"], want["error.type"] = attribute.IntValue(401), attribute.StringValue("authentication_error")
		}
		for key, value := range want {
			if got, _ := attributeOf(span, key); got != value {
				t.Errorf("%s is %v, want %v", key, got.String(), value.String())
			}
		}
		if failed := span.Status().Code == codes.Error; failed != refuse {
			t.Errorf("the status is %v", span.Status())
		}
		if u, _ := attributeOf(span, "gen_ai.usage.input_tokens"); (u.AsInt64() > 0) == refuse {
			t.Errorf("%d tokens were read", u.AsInt64())
		}
	}
}

func attributeOf(span sdktrace.ReadOnlySpan, key attribute.Key) (attribute.Value, bool) {
	for _, a := range span.Attributes() {
		if a.Key == key {
			return a.Value, true
		}
	}
	return attribute.Value{}, false
}
