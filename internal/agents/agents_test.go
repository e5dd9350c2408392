package agents_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/agents"
)

func TestIdentify(t *testing.T) {
	for _, tt := range []struct {
		name         string
		header       http.Header
		instructions []string
		want         string
	}{
		{"nothing", nil, nil, ""},
		{"Claude Code", http.Header{"User-Agent": {"claude-cli/2.1.330 (external, cli)"}}, nil, "Claude Code"},
		{"Qwen Code with Anthropic", http.Header{"User-Agent": {"claude-cli/0.24.4 (external, cli)"}}, nil, "Qwen Code"},
		{"an early Claude Code", http.Header{"User-Agent": {"claude-cli/0.2.9 (external, cli)"}, "X-Claude-Code-Session-Id": {"s"}}, nil, "Claude Code"},
		{"Copilot CLI with a provider of one's own", http.Header{"User-Agent": {"OpenAI/JS 7.59.0"}, "X-Interaction-Type": {"conversation-agent"}}, nil, "Copilot CLI"},
		{"Codex", http.Header{"User-Agent": {"codex_exec/0.169.0 (Debian)"}, "Originator": {"codex_exec"}}, nil, "Codex"},
		{"Codex by its originator", http.Header{"User-Agent": {"reqwest/1.0"}, "Originator": {"codex_exec"}}, nil, "Codex"},
		{"Gemini CLI in a terminal", http.Header{"User-Agent": {"GeminiCLI-tui/0.61.0/gemini-3.1-pro-preview (linux; x64; terminal)"}}, nil, "Gemini CLI"},
		{"Codex in a terminal", http.Header{"User-Agent": {"codex-tui/0.140.0"}}, nil, "Codex"},
		{"opencode", http.Header{"User-Agent": {"opencode/1.18.33 ai-sdk/provider-utils/4.0.23"}}, []string{"You are opencode, a tool."}, "opencode"},
		{"opencode with instructions of its user", http.Header{"User-Agent": {"opencode/1.18.33"}}, []string{"Be short."}, "opencode"},
		{"Kilo Code by a header", http.Header{"User-Agent": {"ai-sdk/openai"}, "X-Kilocode-Version": {"5.1"}}, nil, "Kilo Code"},
		{"Kilo Code by its title", http.Header{"User-Agent": {"OpenAI/JS 5.0"}, "X-Title": {"Kilo Code"}}, nil, "Kilo Code"},
		{"Kilo Code by its own name", http.Header{"User-Agent": {"Kilo-Code/4.0"}}, nil, "Kilo Code"},
		{"Kilo Code as opencode", http.Header{"User-Agent": {"opencode/1.0"}}, []string{"You are Kilo, a highly skilled software engineer"}, "Kilo Code"},
		{"Cline", http.Header{"User-Agent": {"ai-sdk/provider-utils/4.0.23"}}, []string{"You are Cline, a highly skilled software engineer"}, "Cline"},
		{"nanocoder", http.Header{"User-Agent": {"ai-sdk/openai-compatible/2.0"}}, []string{"You are Nanocoder, a terminal-based AI coding agent."}, "nanocoder"},
		{"Continue's command line", http.Header{"User-Agent": {"ls"}}, []string{"You are an agent in the Continue CLI. Given"}, "Continue"},
		{"Continue", http.Header{"User-Agent": {"node-fetch"}}, []string{"<important_rules>\n  You are in agent mode.\n"}, "Continue"},
		{"openclaw", http.Header{"User-Agent": {"OpenAI/JS 6.26.0"}}, []string{"You are Claude Code, Anthropic's official CLI for Claude.\n\nYou are a personal assistant running inside OpenClaw."}, "OpenClaw"},
		{"Kimi Code", http.Header{"User-Agent": {"KimiCLI/1.3"}}, nil, "Kimi Code"},
		{"an SDK", http.Header{"User-Agent": {"OpenAI/Python 2.1"}}, []string{"You help."}, "OpenAI"},
		{"a quote far below", http.Header{"User-Agent": {"OpenAI/Python 2.1"}}, []string{strings.Repeat("x", 2000) + "You are Cline,"}, "OpenAI"},
		{"too long", http.Header{"User-Agent": {strings.Repeat("a", 100)}}, nil, ""},
	} {
		if got := agents.Identify(tt.header.Get, slices.Values(tt.instructions)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Each agent's own variable moves its sessions.
func TestHomes(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("USERPROFILE", "/home/u")
	t.Setenv("XDG_DATA_HOME", "/home/u/.local/share")
	for _, tt := range []struct{ agent, variable, value, want string }{
		{"Kimi Code", "KIMI_CODE_HOME", "", "/home/u/.kimi-code/sessions"},
		{"Kimi Code", "KIMI_CODE_HOME", "/k", "/k/sessions"},
		{"Cline", "CLINE_DIR", "", "/home/u/.cline/data/sessions"},
		{"Cline", "CLINE_DIR", "/c", "/c/data/sessions"},
		{"Cline", "CLINE_DATA_DIR", "/d", "/d/sessions"},
		{"Cline", "CLINE_SESSION_DATA_DIR", "/s", "/s"},
		{"Continue", "CONTINUE_GLOBAL_DIR", "", "/home/u/.continue/sessions"},
		{"Continue", "CONTINUE_GLOBAL_DIR", "/c", "/c/sessions"},
		{"Droid", "FACTORY_HOME_OVERRIDE", "", "/home/u/.factory/sessions"},
		{"Droid", "FACTORY_HOME_OVERRIDE", "/f", "/f/.factory/sessions"},
		{"pi", "PI_CODING_AGENT_DIR", "", "/home/u/.pi/agent/sessions"},
		{"pi", "PI_CODING_AGENT_DIR", "~/p", "/home/u/p/sessions"},
		{"pi", "PI_CODING_AGENT_SESSION_DIR", "/s", "/s"},
		{"Claude Code", "CLAUDE_CONFIG_DIR", "/c", "/c/projects"},
		{"Codex", "CODEX_HOME", "/c", "/c/sessions"},
		{"Qwen Code", "QWEN_HOME", "/q", "/q/projects"},
		{"Qwen Code", "QWEN_RUNTIME_DIR", "/r", "/r/projects"},
		{"Gemini CLI", "GEMINI_CLI_HOME", "/g", "/g/.gemini/tmp"},
		{"Copilot CLI", "COPILOT_HOME", "/c", "/c/session-state"},
		{"nanocoder", "NANOCODER_DATA_DIR", "/n", "/n/sessions"},
		{"opencode", "OPENCODE_DB", "", "/home/u/.local/share/opencode/opencode*.db"},
		{"opencode", "OPENCODE_DB", "my.db", "/home/u/.local/share/opencode/my.db"},
		{"Kilo", "KILO_DB", "/k/my.db", "/k/my.db"},
		{"OpenClaw", "OPENCLAW_STATE_DIR", "", "/home/u/.openclaw*/agents/*/agent/openclaw-agent.sqlite"},
		{"OpenClaw", "OPENCLAW_HOME", " ~/o ", "/home/u/o/.openclaw*/agents/*/agent/openclaw-agent.sqlite"},
		{"OpenClaw", "OPENCLAW_HOME", "undefined", "/home/u/.openclaw*/agents/*/agent/openclaw-agent.sqlite"},
		{"OpenClaw", "OPENCLAW_STATE_DIR", "/s", "/s/agents/*/agent/openclaw-agent.sqlite"},
	} {
		t.Setenv(tt.variable, tt.value)
		if !slices.Contains(agents.Homes(), agents.Home{Agent: tt.agent, Path: filepath.FromSlash(tt.want)}) {
			t.Errorf("%s=%s: no home %s of %s in %v", tt.variable, tt.value, tt.want, tt.agent, agents.Homes())
		}
	}
}

// Each element of a home may be a pattern. Letters with a meaning in patterns are allowed in the folders of users.
func TestPlaces(t *testing.T) {
	home := filepath.Join(t.TempDir(), "[u]")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("XDG_DATA_HOME", "")
	want := []string{".claude/projects", ".local/share/opencode/opencode-dev.db", ".local/share/opencode/opencode.db",
		".openclaw/agents/main/agent/openclaw-agent.sqlite", ".openclaw-work/agents/a/agent/openclaw-agent.sqlite",
		"project/.crush/crush.db", ".vscode-server/data/User/globalStorage/zoocodeorganization.zoo-code/tasks"}
	for i, name := range want {
		want[i] = filepath.Join(home, filepath.FromSlash(name))
		if filepath.Ext(name) == "" {
			if err := os.MkdirAll(want[i], 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(want[i]), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, suffix := range []string{"", "-wal"} {
			if err := os.WriteFile(want[i]+suffix, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	crush := filepath.Join(home, "crush")
	t.Setenv("CRUSH_GLOBAL_DATA", crush)
	projects, err := json.Marshal(map[string]any{"projects": []any{
		map[string]string{"path": filepath.Join(home, "project"), "data_dir": filepath.Join(home, "project", ".crush")},
		map[string]string{"path": filepath.Join(home, "gone"), "data_dir": filepath.Join(home, "gone", ".crush")}, map[string]string{"data_dir": "relative"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(crush, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(crush, "projects.json"), projects, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := agents.Places(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The agents of which docs/use/formats.md says that their sessions are found are known here.
func TestDocumentedHomes(t *testing.T) {
	text, err := os.ReadFile("../../docs/use/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| agent | tried |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 10 {
		t.Fatalf("%d rows", len(rows))
	}
	known := strings.Split(agents.Known(), ", ")
	for _, row := range rows[2:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		if !slices.Contains(known, name) {
			t.Errorf("no home of %q in %v", name, known)
		}
	}
}

func TestName(t *testing.T) {
	for client, want := range map[string]string{"claude-cli": "Claude Code", "codex_cli_rs": "Codex", "Kilo-Code": "Kilo Code", "Claude Code": "Claude Code", "mine": "mine", "": ""} {
		if got := agents.Name(client); got != want {
			t.Errorf("Name(%q) = %q, want %q", client, got, want)
		}
	}
}

func TestWorkingFolder(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"Claude Code", "<env>\nWorking directory: /home/u/a project\nIs directory a git repo: Yes\n</env>", "/home/u/a project"},
		{"Claude Code, newer", "# Environment\n - Primary working directory: /home/u/proj\n - Platform: linux", "/home/u/proj"},
		{"Codex", "<environment_context>\n  <cwd>/srv/x/</cwd>\n  <shell>bash</shell>", "/srv/x"},
		{"Cline", "# Current Working Directory (/home/u/c) Files\nmain.go", "/home/u/c"},
		{"Kimi Code", "## Working Directory\n\nThe current working directory is `C:\\Users\\h\\proj`.", `C:\Users\h\proj`},
		{"Gemini CLI", "I'm currently working in the directory: /g", "/g"},
		{"Gemini CLI 0.61", "My operating system is: linux\n- **Workspace Directories:**\n  - /home/u/quay\n  - /home/u/other\n- **Directory Structure:**", "/home/u/quay"},
		{"bold", "**Working directory:** /b", "/b"},
		{"a folder in a repository", "The working directory is frontend/, as ever.", ""},
		{"control characters", "Working directory: /a\x1b[31m", ""},
		{"nothing after it", "working directory", ""},
		{"too long", "Working directory: /" + strings.Repeat("a", 2000), ""},
		{"too far below", strings.Repeat(" ", 70<<10) + "Working directory: /a", ""},
	} {
		if got := agents.WorkingFolder(slices.Values([]string{"", tt.text})); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestFolder(t *testing.T) {
	for name, want := range map[string]string{
		`/home/u/x/`: "/home/u/x", `/home//u/./x`: "/home/u/x",
		`C:\Users\h\x`: `C:\Users\h\x`, `c:\Users\h\x\`: `C:\Users\h\x`, `c:/Users/h/x`: `C:\Users\h\x`, `C:\Users\h/x/..\x`: `C:\Users\h\x`,
		`C:`: "", `x`: "", `x/y`: "", ``: "", `1:\x`: "",
	} {
		if got := agents.Folder(name); got != want {
			t.Errorf("Folder(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestOwnID(t *testing.T) {
	for _, tt := range []struct{ id, typed, want string }{
		{"abc", "a", "abc"},
		{"", "a", ""},
		{"parent/child", "par", "child"},
		{"parent/child", "parent/ch", "parent/child"},
		{"session_0123", "01", "0123"},
		{"session_0123", "session_01", "session_0123"},
		{"session_0123", "sess", "session_0123"},
	} {
		if got := agents.OwnID(tt.id, tt.typed); got != tt.want {
			t.Errorf("OwnID(%q, %q) = %q, want %q", tt.id, tt.typed, got, tt.want)
		}
	}
}
