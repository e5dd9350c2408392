package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/upstream"
)

// traces sends OpenTelemetry traces to a collector. A nil one sends none.
type traces struct{ provider *sdktrace.TracerProvider }

// newTraces starts the exporter of traces. It returns nil if tracing is off, which is
// the default until the configuration or the environment names a collector.
func newTraces(ctx context.Context, c config.Telemetry, log *slog.Logger) (*traces, error) {
	if !wantsTraces(c, os.Getenv) {
		return nil, nil
	}
	if p := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")); p != "" && p != "http/protobuf" {
		return nil, fmt.Errorf("traces: unsupported OTEL_EXPORTER_OTLP_PROTOCOL %q: set http/protobuf, or turn traces off with telemetry.traces: none", p)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("sending traces failed", "error", upstream.Text(err))
	}))
	var o []otlptracehttp.Option
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("telemetry.endpoint: %w", err)
		}
		if u.Path = strings.TrimSuffix(u.Path, "/"); !strings.HasSuffix(u.Path, "/v1/traces") {
			u.Path += "/v1/traces"
		}
		o = append(o, otlptracehttp.WithEndpointURL(u.String()))
	}
	exporter, err := otlptracehttp.New(ctx, o...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	// The environment's description of the service has precedence over furl's.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "furl"), attribute.String("service.version", workspace.Version()),
	), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return &traces{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}, nil
}

// wantsTraces reports whether tracing is on.
func wantsTraces(c config.Telemetry, getenv func(string) string) bool {
	if off, _ := strconv.ParseBool(getenv("OTEL_SDK_DISABLED")); off || c.Traces == "none" {
		return false
	}
	if c.Traces == "otlp" || c.Endpoint != "" {
		return true
	}
	switch getenv("OTEL_TRACES_EXPORTER") {
	case "otlp":
		return true
	case "":
		return getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
	}
	return false // another exporter, or none
}

// tracer returns the tracer, or nil if tracing is off.
func (t *traces) tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.provider.Tracer("github.com/furlhq/furl/gateway", trace.WithInstrumentationVersion(workspace.Version()))
}

// tracesEnd limits the time to send the last spans.
const tracesEnd = 2 * time.Second

// close sends the remaining spans. It ignores a collector that does not respond.
func (t *traces) close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), tracesEnd)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
	return nil
}
