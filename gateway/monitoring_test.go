package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// The dashboard, the alerts and the autoscaler in contrib name only metrics and labels
// that a gateway's /metrics has after the demo's session went through it.
func TestMonitoringFiles(t *testing.T) {
	labels := metricsAfterDemo(t)
	name := regexp.MustCompile(`\b((?:furl|go|process)_[a-z_]+)(?:\{([^}]*)\})?`)
	label := regexp.MustCompile(`(\w+)\s*=~?`)
	by := regexp.MustCompile(`by \(([^)]*)\)`)
	for file, least := range map[string]int{"monitoring/dashboard.json": 30, "monitoring/alerts.yaml": 12, "kubernetes/autoscaler.yaml": 1} {
		raw, err := os.ReadFile(filepath.Join("..", "contrib", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for line := range strings.Lines(strings.ReplaceAll(string(raw), `\"`, `"`)) {
			var here []string // the labels that metrics in this line have
			for _, m := range name.FindAllStringSubmatch(line, -1) {
				known, ok := labels[m[1]]
				if !ok {
					t.Errorf("%s: the gateway has no metric %s", file, m[1])
					continue
				}
				found++
				here = append(here, known...)
				for _, l := range label.FindAllStringSubmatch(m[2], -1) {
					// Prometheus adds job and instance.
					if l[1] != "job" && !slices.Contains(known, l[1]) {
						t.Errorf("%s: %s has no label %s, only %v", file, m[1], l[1], known)
					}
				}
			}
			for _, m := range by.FindAllStringSubmatch(line, -1) {
				for l := range strings.SplitSeq(m[1], ",") {
					if l = strings.TrimSpace(l); l != "instance" && here != nil && !slices.Contains(here, l) {
						t.Errorf("%s: no metric has the label %s: %s", file, l, strings.TrimSpace(line))
					}
				}
			}
		}
		if found < least {
			t.Errorf("%s: found only %d metrics", file, found)
		}
	}
}

// metricsAfterDemo returns the metrics in /metrics and their labels. A histogram NAME
// has NAME_bucket with the label le, NAME_sum and NAME_count.
func metricsAfterDemo(t *testing.T) map[string][]string {
	recording := demo.Recording().Sessions[0]
	provider := httptest.NewServer(sim.New(&sim.Options{Player: sim.NewPlayback(recording), Window: 64_000, NoAuth: true}))
	defer provider.Close()
	store := inmem.New()
	defer store.Close()
	all, err := session.New(store, &session.Options{Policy: "auto", Window: 64_000})
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(provider.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	g, err := gateway.New(all, gateway.Upstreams{Anthropic: up}, &gateway.Options{Summaries: gateway.SummaryOptions{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	server := httptest.NewServer(g)
	defer server.Close()
	client := &sim.Client{URL: server.URL, Format: furl.FormatAnthropic, Model: demo.Model}
	if err := client.Follow(t.Context(), recording, 0); err != nil {
		t.Fatal(err)
	}

	resp, err := http.Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for name, family := range families {
		var names []string
		for _, l := range family.Metric[0].Label {
			names = append(names, l.GetName())
		}
		if family.Metric[0].Histogram != nil {
			labels[name+"_sum"], labels[name+"_count"] = names, names
			name, names = name+"_bucket", append(slices.Clone(names), "le")
		}
		labels[name] = names
	}
	return labels
}
