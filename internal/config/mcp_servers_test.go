package config_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/config"
)

func TestMCPServers(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TEST_TOKEN", "planted-key")
	t.Setenv("TEST_EMPTY", "")
	c, err := config.Parse("f.yaml", []byte(`
mcp_servers:
  notes:
    command: ~/bin/notes
    args: [--dir, "${TEST_EMPTY:-/srv}/x$y", 7]
    env: {KEY: "${TEST_TOKEN}", PORT: 7410}
    dir: ~/n
    start_timeout: 90s
  issues: {url: "https://${TEST_EMPTY:-mcp.example}/mcp", headers: {Authorization: "Bearer ${TEST_TOKEN}"}, call_timeout: 2m}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []config.MCPServer
	for _, s := range c.MCPServers {
		s, err := s.Expanded()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	want := []config.MCPServer{
		{
			Name: "notes", Command: filepath.Join(home, "bin/notes"), Args: []string{"--dir", "/srv/x$y", "7"}, Dir: filepath.Join(home, "n"),
			Env: config.Secrets{"KEY": "planted-key", "PORT": "7410"}, StartTimeout: 90 * time.Second,
		},
		{Name: "issues", URL: "https://mcp.example/mcp", Headers: config.Secrets{"Authorization": "Bearer planted-key"}, CallTimeout: 2 * time.Minute},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if c.MCPServers[0].Args[1] != "${TEST_EMPTY:-/srv}/x$y" {
		t.Errorf("expanding has changed the configuration: %v", c.MCPServers[0])
	}
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{fmt.Sprint(got), fmt.Sprintf("%+v", got), fmt.Sprintf("%#v", got), string(data)} {
		if strings.Contains(printed, "planted") || !strings.Contains(printed, "[KEY PORT]") {
			t.Errorf("printed: %s", printed)
		}
	}
}

func TestMCPServersMissing(t *testing.T) {
	t.Setenv("TEST_HOST", "ftp://x")
	t.Setenv("TEST_LINES", "planted\nInjected: yes")
	for file, want := range map[string]string{
		"command: x, args: ['${TEST_NO_A}'], env: {K: '${TEST_NO_B}'}": "mcp_servers.a: the environment variable TEST_NO_A, TEST_NO_B is not set; set it, or write a default as ${TEST_NO_A:-value}",
		"url: '${TEST_HOST}'": "mcp_servers.a.url: expected an http or https address after its variables are replaced",
		"url: 'http://x', headers: {Authorization: 'Bearer ${TEST_LINES}'}": "mcp_servers.a.headers.Authorization: expected one line",
	} {
		c, err := config.Parse("f.yaml", []byte("mcp_servers: {a: {"+file+"}}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.MCPServers[0].Expanded(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

func TestMCPServerErrors(t *testing.T) {
	for file, want := range map[string]string{
		"mcp_servers: planted":                                                   `f.yaml: invalid mcp_servers (line 1): expected names of servers`,
		"mcp_servers:\n  a__b: {command: x}":                                     `f.yaml: invalid name of a server "a__b" (line 2): expected 1 to 32 letters`,
		"mcp_servers:\n  a: {}":                                                  `f.yaml: invalid server "a" (line 2): expected either command or url`,
		"mcp_servers:\n  a: {command: x, url: planted}":                          `f.yaml: invalid server "a" (line 2): expected either command or url`,
		"mcp_servers:\n  a:\n    command: ''":                                    `f.yaml: invalid server "a" (line 2): its command or url is empty`,
		"mcp_servers:\n  a:\n    comand: x":                                      `f.yaml: unknown key "comand" (line 3): did you mean "command"?`,
		"mcp_servers:\n  a:\n    url: ftp://planted":                             `f.yaml: invalid mcp_servers.a.url (line 3): expected an http or https address`,
		"mcp_servers:\n  a:\n    command: x\n    headers: {A: planted}":          `f.yaml: unknown key "headers" of server "a" (line 4): args, env and dir belong to a command, headers to a url`,
		"mcp_servers:\n  a:\n    command: x\n    env: {A: true}":                 `f.yaml: invalid mcp_servers.a.env.A (line 4): expected text in quotes`,
		"mcp_servers:\n  a:\n    command: x\n    env: planted":                   `f.yaml: invalid mcp_servers.a.env (line 4): expected names with values`,
		"mcp_servers:\n  a:\n    command: x\n    env: {A-B: planted}":            `f.yaml: invalid name "A-B" (line 4): expected the name of a variable`,
		"mcp_servers:\n  a:\n    command: x\n    env: {A: 'planted ${B'}":        `f.yaml: invalid mcp_servers.a.env.A (line 4): expected variables as ${VAR} or ${VAR:-default}`,
		"mcp_servers:\n  a:\n    command: x\n    args: planted":                  `f.yaml: invalid mcp_servers.a.args (line 4): expected a list of arguments`,
		"mcp_servers:\n  a:\n    command: x\n    args: [{a: planted}]":           `f.yaml: invalid mcp_servers.a.args (line 4): expected text in quotes, not a mapping`,
		"mcp_servers:\n  a:\n    url: http://x\n    headers: {'a b': planted}":   `f.yaml: invalid name "a b" (line 4): expected the name of a header`,
		"mcp_servers:\n  a:\n    url: http://x\n    headers: {a: \"pla\\nted\"}": `f.yaml: invalid mcp_servers.a.headers.a (line 4): expected one line`,
		"mcp_servers:\n  a:\n    command: x\n    call_timeout: 5":                `f.yaml: invalid mcp_servers.a.call_timeout (line 4): expected a duration such as 30s or 10m`,
	} {
		_, err := config.Parse("f.yaml", []byte(file), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}
