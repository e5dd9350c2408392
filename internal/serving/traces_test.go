package serving

import (
	"testing"

	"github.com/furlhq/furl/internal/config"
)

// Tracing is off unless the configuration or the environment turns it on.
func TestWantsTraces(t *testing.T) {
	type env map[string]string
	for _, tt := range []struct {
		name string
		c    config.Telemetry
		env  env
		want bool
	}{
		{"nothing said", config.Telemetry{}, nil, false},
		{"configured", config.Telemetry{Traces: "otlp"}, nil, true},
		{"endpoint configured", config.Telemetry{Endpoint: "http://localhost:4318"}, nil, true},
		{"endpoint, but none", config.Telemetry{Traces: "none", Endpoint: "http://localhost:4318"}, nil, false},
		{"environment", config.Telemetry{}, env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, true},
		{"environment for traces", config.Telemetry{}, env{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, true},
		{"exporter", config.Telemetry{}, env{"OTEL_TRACES_EXPORTER": "otlp"}, true},
		{"no exporter", config.Telemetry{}, env{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, false},
		{"another exporter", config.Telemetry{}, env{"OTEL_TRACES_EXPORTER": "console", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, false},
		{"disabled", config.Telemetry{Traces: "otlp"}, env{"OTEL_SDK_DISABLED": "true"}, false},
		{"environment, but none configured", config.Telemetry{Traces: "none"}, env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, false},
	} {
		if got := wantsTraces(tt.c, func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%s: traces are wanted %t, want %t", tt.name, got, tt.want)
		}
	}
}
