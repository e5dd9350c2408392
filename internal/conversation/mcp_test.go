package conversation

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/tool/mcptool"
)

func TestMCPServers(t *testing.T) {
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
	if _, err := mcpServers(c); err == nil || !strings.Contains(err.Error(), "mcp_servers.notes: the environment variable TEST_TOKEN is not set") {
		t.Errorf("without the variable: %v", err)
	}
	t.Setenv("TEST_TOKEN", "key")
	got, err := mcpServers(c)
	if err != nil {
		t.Fatal(err)
	}
	want := []mcptool.Server{
		{Name: "notes", Command: "notes", Args: []string{"-v"}, Env: map[string]string{"KEY": "key"}, Dir: "/srv", StartTimeout: 5 * time.Second, CallTimeout: time.Minute},
		{Name: "issues_2", URL: "http://localhost:1/mcp", Header: http.Header{"Authorization": {"Bearer key"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
