package agents_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/agents"
)

func TestMCP(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("CODEX_HOME", filepath.Join(home, "cx"))
	command := []string{`/opt/a "b"/furl`, "mcp", "--follow"}
	for _, name := range agents.MCPAgents() {
		e, ok := agents.MCP(name, command)
		if !ok || e.Agent == "" || e.File == "" || e.Text == "" {
			t.Errorf("%s: %+v", name, e)
		}
		switch e.Format {
		case "json":
			var tree any
			if err := json.Unmarshal([]byte(e.Text), &tree); err != nil {
				t.Errorf("%s: %v in %s", name, err, e.Text)
			}
			for _, key := range e.Path {
				tree = tree.(map[string]any)[key]
			}
			text, _ := json.Marshal(tree)
			var a, b any
			_, _ = json.Unmarshal(text, &a), json.Unmarshal(e.Value, &b)
			if again, _ := json.Marshal(b); string(again) != string(text) || !strings.Contains(string(text), `"--follow"`) {
				t.Errorf("%s: %s at its path, want %s", name, text, e.Value)
			}
		case "file":
			if !strings.Contains(e.Text, command[0]+" search") {
				t.Errorf("%s: %s", name, e.Text)
			}
		}
	}
	e, _ := agents.MCP("codex", command)
	if want := "[mcp_servers.furl]\ncommand = \"/opt/a \\\"b\\\"/furl\"\nargs = [\"mcp\", \"--follow\"]\n"; e.Text != want || e.File != filepath.Join(home, "cx", "config.toml") {
		t.Errorf("codex: %s in %s, want %s", e.Text, e.File, want)
	}
	if e, _ := agents.MCP("claude", command); e.File != filepath.Join(home, ".claude.json") || strings.Join(e.Command[:8], " ") != "claude mcp add --scope user furl -- "+command[0] {
		t.Errorf("claude: %s, %q", e.File, e.Command)
	}
	if e, _ := agents.MCP("vscode", command); filepath.IsAbs(e.File) {
		t.Errorf("vscode: %s is not in the project", e.File)
	}
	if _, ok := agents.MCP("emacs", command); ok {
		t.Error("an unknown agent has an entry")
	}
}
