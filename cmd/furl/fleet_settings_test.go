package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Gateways of a fleet that have been given different keys and settings by mistake are
// told apart by furl doctor, which names the settings and no values.
func TestFleetSettingsAreCompared(t *testing.T) {
	store, provider := filepath.Join(t.TempDir(), "furl.db"), newFleet(t).provider.URL
	const (
		same = "gateway:\n  tenants: true\n  client_keys_file: clients\n  operator_key_file: operator\n"
		odd  = "policy: tool-age\n" + same + "  max_requests: 7\n  limits: {sessions: 9}\n"
	)
	gateway := func(config, secret, clients string, args ...string) *process {
		t.Helper()
		home := t.TempDir()
		cmd := furlCommand(home, append([]string{"serve", "--listen", "127.0.0.1:0", "--store", store, "--anthropic", provider, "--openai", "none"}, args...)...)
		if err := os.MkdirAll(home+"/data", 0o700); err != nil {
			t.Fatal(err)
		}
		settings(t, home+"/config.yaml", config)
		settings(t, home+"/clients", clients)
		settings(t, home+"/operator", "planted-operator-key\n")
		settings(t, home+"/data/tenants.key", secret)
		return start(t, cmd)
	}
	const secret, clients = "planted-secret-of-tenants\n", "planted-client-key-1\nplanted-client-key-2\n"
	first := gateway(same, secret, clients)
	// The same: other order of keys, and a default that is written out.
	second := gateway("policy: auto\n"+same, secret, "# clients\nplanted-client-key-2\nplanted-client-key-1\n", "--log", "warn")
	third := gateway(odd, "planted-secret-of-others\n", "planted-client-key-1\n", "--dry-run", "--window", "9k")

	if out, err := doctorOf(t, []*process{first, second}); err != nil || !strings.Contains(out, "ok       fleet: 2 gateways have the same keys and settings\n") {
		t.Errorf("two equal gateways: %v\n%s", err, out)
	}
	out, err := doctorOf(t, []*process{first, second, third}, "--json")
	if err == nil {
		t.Error("the doctor reports no problem")
	}
	if strings.Contains(out, "planted") {
		t.Errorf("the output contains a secret:\n%s", out)
	}
	var told struct {
		Findings []struct{ Check, State, Text, Cure, Gateway string }
	}
	if err := json.Unmarshal([]byte(out), &told); err != nil {
		t.Fatal(err)
	}
	var differ []string
	host := func(p *process) string { return strings.TrimPrefix(p.url, "http://") }
	for _, f := range told.Findings {
		if f.State != "problem" {
			continue
		}
		differ = append(differ, f.Check)
		if want := host(first) + ", " + host(second) + " have one value; " + host(third) + " has another"; f.Text != want {
			t.Errorf("%s: %q, want %q", f.Check, f.Text, want)
		}
	}
	if want := []string{"--window", "gateway.client_keys", "gateway.dry_run", "gateway.limits", "policy", "tenants.key"}; !slices.Equal(differ, want) {
		t.Errorf("different are %q, want %q", differ, want)
	}
}

// doctorOf runs furl doctor as the operator of some gateways.
func doctorOf(t *testing.T, gateways []*process, flags ...string) (string, error) {
	t.Helper()
	var urls []string
	for _, g := range gateways {
		urls = append(urls, g.url)
	}
	cmd := furlCommand(t.TempDir(), append([]string{"doctor", "--gateway", strings.Join(urls, ",")}, flags...)...)
	cmd.Env = append(cmd.Env, "FURL_KEY=planted-operator-key")
	out, err := cmd.Output()
	return string(out), err
}
