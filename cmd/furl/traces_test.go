package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/furlhq/furl/sim"
)

// receiver is a collector of traces.
type receiver struct {
	mu       sync.Mutex
	raw      bytes.Buffer // all requests with headers
	resource map[string]*common.AnyValue
	spans    []*traces.Span
	scopes   []string
	bad      error
}

func newReceiver(t *testing.T) (*receiver, string) {
	c := &receiver{}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	return c, srv.URL
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.take(r); err != nil {
		c.bad = err
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := proto.Marshal(&collector.ExportTraceServiceResponse{})
	if err != nil {
		c.bad = err
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer) // the sender may have exited
}

func (c *receiver) take(r *http.Request) error {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s %s of %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	in := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		in = z
	}
	body, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	fmt.Fprint(&c.raw, r.Header)
	c.raw.Write(body)
	var req collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &req); err != nil {
		return err
	}
	for _, rs := range req.ResourceSpans {
		c.resource = attributes(rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			c.scopes = append(c.scopes, ss.Scope.Name)
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	return nil
}

func attributes(list []*common.KeyValue) map[string]*common.AnyValue {
	m := make(map[string]*common.AnyValue)
	for _, kv := range list {
		m[kv.Key] = kv.Value
	}
	return m
}

// Traces reach a collector with the attributes of the conventions, continue the client's
// trace, continue at the provider, and have neither contents nor credentials.
func TestTraces(t *testing.T) {
	for _, by := range []string{"environment", "configuration"} {
		t.Run("by="+by, func(t *testing.T) {
			c, collectorURL := newReceiver(t)
			s := sim.New(&sim.Options{KeepBodies: true})
			provider := httptest.NewServer(s)
			t.Cleanup(provider.Close)
			home := t.TempDir()
			file := filepath.Join(home, "furl.yaml")
			text := ""
			if by == "configuration" {
				text = "telemetry: {endpoint: " + collectorURL + "}\n"
			}
			settings(t, file, text)
			cmd := furlCommand(home, "serve", "--listen", "127.0.0.1:0", "--store", home+"/furl.db", "--config", file, "--anthropic", provider.URL, "--openai", "none")
			if by == "environment" {
				cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collectorURL, "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test", "OTEL_SERVICE_NAME=mine")
			}
			p := start(t, cmd)
			const client = "4bf92f3577b34da6a3ce929d0e0e4736"
			send := func(body string) *http.Response {
				req, err := http.NewRequest(http.MethodPost, p.url+"/v1/messages", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Api-Key", "planted-key-of-a-provider")
				req.Header.Set("Anthropic-Version", "2023-06-01")
				req.Header.Set("Traceparent", "00-"+client+"-00f067aa0ba902b7-01")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if _, err := io.ReadAll(resp.Body); err != nil {
					t.Fatal(err)
				}
				return resp
			}
			resp := send(`{"model":"claude-sonnet-4-5","max_tokens":200,"stream":true,"messages":[{"role":"user","content":"Tell me of planted-words."}]}`)
			send(`{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"This lacks something."}]}`)
			p.tell(t, syscall.SIGTERM)
			<-p.done

			c.mu.Lock()
			defer c.mu.Unlock()
			if c.bad != nil || len(c.spans) != 2 {
				t.Fatalf("%d spans came, %v\n%s", len(c.spans), c.bad, p.log())
			}
			// A span ends when everything is recorded, which may be after the next has
			// started.
			slices.SortFunc(c.spans, func(a, b *traces.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
			span := c.spans[0]
			if span.Name != "chat claude-sonnet-4-5" || span.Kind != traces.Span_SPAN_KIND_CLIENT || fmt.Sprintf("%x %x", span.TraceId, span.ParentSpanId) != client+" 00f067aa0ba902b7" {
				t.Errorf("the span is %s %s, trace %x under %x", span.Name, span.Kind, span.TraceId, span.ParentSpanId)
			}
			got := attributes(span.Attributes)
			for key, want := range map[string]string{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5",
				"gen_ai.response.model": "claude-sonnet-4-5", "gen_ai.conversation.id": resp.Header.Get("X-Furl-Session"),
			} {
				if got[key].GetStringValue() != want {
					t.Errorf("%s is %v, want %q", key, got[key], want)
				}
			}
			// furl also asks the provider about the model, at a time of its own.
			entries := slices.DeleteFunc(s.Requests(), func(e sim.Entry) bool { return e.Method != http.MethodPost })
			for key, want := range map[string]int{
				"gen_ai.request.max_tokens": 200, "http.response.status_code": 200, "furl.reductions": 0,
				"gen_ai.usage.input_tokens": entries[0].Usage.Input, "gen_ai.usage.output_tokens": entries[0].Usage.Output, "gen_ai.usage.cache_read.input_tokens": 0,
			} {
				if v, ok := got[key]; !ok || v.GetIntValue() != int64(want) {
					t.Errorf("%s is %v, want %d", key, v, want)
				}
			}
			if got["gen_ai.response.id"].GetStringValue() == "" || got["gen_ai.response.time_to_first_chunk"].GetDoubleValue() <= 0 || len(got["gen_ai.response.finish_reasons"].GetArrayValue().GetValues()) != 1 {
				t.Errorf("the reply is told as %v", got)
			}
			events := make(map[string]bool)
			for _, e := range span.Events {
				events[e.Name] = true
			}
			for _, stage := range []string{"furl.match", "furl.plan", "furl.encode", "furl.store"} {
				if !events[stage] {
					t.Errorf("no event %s: %v", stage, span.Events)
				}
			}
			if failed := c.spans[1]; failed.Status.GetCode() != traces.Status_STATUS_CODE_ERROR || attributes(failed.Attributes)["error.type"].GetStringValue() == "" {
				t.Errorf("a refused request is told as %v", failed)
			}
			name := map[string]string{"environment": "mine", "configuration": "furl"}[by]
			if c.resource["service.name"].GetStringValue() != name || c.resource["service.version"].GetStringValue() == "" {
				t.Errorf("the service is %v", c.resource)
			}
			if by == "environment" && c.resource["deployment.environment.name"].GetStringValue() != "test" {
				t.Errorf("the environment's attributes are missing: %v", c.resource)
			}
			// The provider's trace continues the span.
			if want := fmt.Sprintf("00-%s-%x-01", client, span.SpanId); entries[0].Header.Get("Traceparent") != want {
				t.Errorf("the provider was told %q, want %q", entries[0].Header.Get("Traceparent"), want)
			}
			if bytes.Contains(c.raw.Bytes(), []byte("planted")) || bytes.Contains(c.raw.Bytes(), []byte("lacks something")) {
				t.Error("there is content or a credential in what the collector got")
			}
		})
	}
}

// A collector that does not respond is not a failure. An unsupported protocol is an
// error.
func TestTracesUnsent(t *testing.T) {
	provider := httptest.NewServer(sim.New(nil))
	t.Cleanup(provider.Close)
	home := t.TempDir()
	cmd := furlCommand(home, "serve", "--listen", "127.0.0.1:0", "--store", home+"/furl.db", "--anthropic", provider.URL, "--openai", "none")
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1/v1/traces")
	p := start(t, cmd)
	resp := post(t, p.url+"/v1/messages", streamed)
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if <-p.done; p.cmd.ProcessState.ExitCode() != 0 || !strings.Contains(p.log(), "sending traces failed") {
		t.Errorf("it ended with %s\n%s", p.cmd.ProcessState, p.log())
	}
	cmd = furlCommand(home, "serve", "--listen", "127.0.0.1:0", "--store", home+"/furl.db")
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
	if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("http/protobuf")) {
		t.Errorf("another protocol gives %v: %s", err, out)
	}
}
