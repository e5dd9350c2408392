package serving

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/workspace"
)

// furl config check reports the errors with which furl serve would not start.
func TestConfigCheckServes(t *testing.T) {
	t.Setenv("SOME_KEYS", "one,two")
	for _, tc := range []struct{ Text, want, note string }{
		{"", "", ""},
		{"policy: auto:faithful\ngateway: {listen: '127.0.0.1:0', openai: none}", "", ""},
		{"gateway: {listen: '0.0.0.0:7410'}", "without a client key", ""},
		{"gateway: {listen: '0.0.0.0:7410', client_keys_env: SOME_KEYS}", "", ""},
		{"gateway: {listen: '0.0.0.0:7410', client_keys_env: NO_KEYS}", "", "$NO_KEYS"},
		{"gateway: {listen: '0.0.0.0:7410', client_keys_file: keys}", "", ""},
		{"gateway: {listen: '0.0.0.0:7410', client_keys_file: none}", "gateway.client_keys_file: none has no key", ""},
		{"gateway: {listen: '0.0.0.0:7410', client_keys_file: missing}", "gateway.client_keys_file: open ", ""},
		{"gateway: {client_keys_file: keys, operator_key_file: operator, tenants: true}", "", ""},
		{"gateway: {client_keys_file: keys, operator_key_env: NO_KEYS, tenants: true, tenant_by: both}", "", "$NO_KEYS (gateway.operator_key_env)"},
		{"gateway: {client_keys_env: NO_KEYS, tenants: true, tenant_by: key}", "", "$NO_KEYS (gateway.client_keys_env)"},
		{"gateway: {tenants: true, tenant_by: key}", "gateway.tenant_by: key needs client keys", ""},
		{"gateway: {client_keys_file: keys, tenant_by: key}", "gateway.tenant_by has no effect without gateway.tenants: true", ""},
		{"gateway: {client_keys_file: keys, operator_key_file: keys}", "operator key is also a client key", ""},
		{"gateway: {anthropic: none, openai: none, gemini: none}", "no upstream configured", ""},
		{"store: mysql://root@localhost/furl", "postgres:// URL", ""},
		{"catalog: missing.yaml", "missing.yaml", ""},
	} {
		folder := t.TempDir()
		file := filepath.Join(folder, "config.yaml")
		for name, text := range map[string]string{"config.yaml": tc.Text, "keys": "# two\none\n\ntwo\n", "operator": "three\n", "none": "\n# none\n"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, name, err := config.Load(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		note, err := Check(c, name)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.Text, err, tc.want)
		}
		if !strings.Contains(note, tc.note) || (note == "") != (tc.note == "") {
			t.Errorf("%s: the note is %q, want %q", tc.Text, note, tc.note)
		}
	}
}

// The URL of an unsupported database is not a file name.
func TestUnknownDatabase(t *testing.T) {
	f := workspace.Workspace{Place: "mysql://root:hunter2@localhost/furl"}
	for name, err := range map[string]error{"open": second(f.Open(t.Context())), "existing": second(f.Existing(t.Context()))} {
		if err == nil || !strings.Contains(err.Error(), "expected a file or a postgres:// URL") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want an error that expects a file or a postgres:// URL", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A variable that an MCP server of furl chat needs may be set elsewhere.
func TestConfigCheckMCPServers(t *testing.T) {
	const text = `
mcp_servers:
  notes: {command: notes, args: [-v], env: {KEY: "${TEST_TOKEN}"}, dir: /srv, start_timeout: 5s, call_timeout: 1m}
  issues_2: {url: "http://localhost:1/mcp", headers: {authorization: "Bearer ${TEST_TOKEN}"}}
`
	c, err := config.Parse("f.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_TOKEN", "")
	note, err := Check(c, "f.yaml")
	if err != nil || note != "$TEST_TOKEN (mcp_servers.notes) is not set in this shell; the MCP server requires it; $TEST_TOKEN (mcp_servers.issues_2) is not set in this shell; the MCP server requires it" {
		t.Errorf("furl config check: %q, %v", note, err)
	}
}
