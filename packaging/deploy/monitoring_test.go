package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// alerts are the rules of contrib/monitoring/alerts.yaml. A rule file has the same
// form as the operator's PrometheusRule.
func alerts(t *testing.T) []monitoring.Rule {
	t.Helper()
	var file monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(read(t, "monitoring/alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	var rules []monitoring.Rule
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// The expressions of the alerts are valid, and results are series to alert on. gateway
// TestMonitoringFiles compares the metrics with those of a gateway.
func TestAlerts(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range alerts(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr.String())
		if err != nil {
			t.Errorf("%s: %v", rule.Alert, err)
			continue
		}
		if expr.Type() != parser.ValueTypeVector {
			t.Errorf("%s is a %s", rule.Alert, expr.Type())
		}
		if seen[rule.Alert] {
			t.Errorf("two alerts are called %s", rule.Alert)
		}
		seen[rule.Alert] = true
		if s := rule.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, s)
		}
		if rule.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", rule.Alert)
		}
		if rule.For != nil {
			if _, err := time.ParseDuration(string(*rule.For)); err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
			}
		}
		// Labels that the summary names are those of the result.
		for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(rule.Annotations["summary"], -1) {
			if aggregate, ok := grouping(expr); ok && !slices.Contains(aggregate, m[1]) {
				t.Errorf("the summary of %s names the label %s, but the result has only %v", rule.Alert, m[1], aggregate)
			}
		}
	}
}

// grouping returns the labels of an expression's result if it aggregates.
func grouping(expr parser.Expr) (labels []string, ok bool) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if a, isAggregate := n.(*parser.AggregateExpr); isAggregate && !ok {
			labels, ok = a.Grouping, true
		}
		return nil
	})
	return labels, ok
}

// docs/operate/runbook.md has an entry for each alert and for nothing else, and each
// entry says what to look at and what to do.
func TestRunbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		entries[name] = body
	}
	for _, rule := range alerts(t) {
		body, ok := entries[rule.Alert]
		if !ok {
			t.Errorf("the runbook has no entry for %s", rule.Alert)
			continue
		}
		for _, part := range []string{"*Symptom.*", "*Look at.*", "*Cure.*", "\n    "} {
			if !strings.Contains(body, part) {
				t.Errorf("the entry for %s lacks %q", rule.Alert, part)
			}
		}
		if want := "docs/operate/runbook.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook"] != want {
			t.Errorf("the alert %s names the runbook %q, want %q", rule.Alert, rule.Annotations["runbook"], want)
		}
		delete(entries, rule.Alert)
	}
	for name := range entries {
		t.Errorf("the runbook has an entry %q, but there is no such alert", name)
	}
}

// Every expression of the dashboard is valid once Grafana has replaced its variables.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		UID, Title string
		Panels     []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(read(t, "monitoring/dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$job", "furl")
	ids, queries := map[int]bool{}, 0
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is wider than the page", p.Title)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			queries++
			expr := variables.Replace(target.Expr)
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(expr); err != nil || strings.Contains(expr, "$") {
				t.Errorf("%s: %s: %v", p.Title, expr, err)
			}
		}
	}
	if queries < 20 {
		t.Errorf("only %d queries were found", queries)
	}
}
