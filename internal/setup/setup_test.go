package setup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/dev/needs"
)

var options = Options{URL: "http://127.0.0.1:7410", Command: []string{"/opt/my tools/furl", "mcp", "--follow"}}

// home is an empty home folder with the folder of records.
func home(t testing.TB) (folder string) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG", "XDG_CONFIG_HOME", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME", "COPILOT_HOME",
		"CLINE_MCP_SETTINGS_PATH", "CONTINUE_GLOBAL_DIR", "KIMI_CODE_HOME", "NANOCODER_CONFIG_DIR", "OPENCLAW_CONFIG_PATH",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	t.Setenv("APPDATA", filepath.Join(dir, "AppData"))
	return filepath.Join(dir, "data", "setup")
}

func client(t testing.TB, name string) agents.Client {
	c, ok := agents.ClientNamed(name)
	if !ok {
		t.Fatalf("no agent %q", name)
	}
	return c
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o640); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return data
}

func apply(t testing.TB, folder, name string, o Options) *Plan {
	t.Helper()
	p, err := New(folder, client(t, name), &o)
	if err == nil {
		err = p.Apply()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func undo(t testing.TB, folder, name string) *Plan {
	t.Helper()
	p, err := Undo(folder, name)
	if err == nil {
		err = p.Apply()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// files are configuration files as users have them, by the end of the path.
var files = map[string][]string{
	".claude/settings.json": {
		`{
    // my settings
    "permissions": {"allow": ["Bash(ls)", "Bash(go test:*)"]},
    "statusLine": {"type": "command", "command": "~/bin/line.sh 'a b'"}, /* mine */ // and more
    "env": {
        "ANTHROPIC_BASE_URL": "https://llm.corp.example/v1",
        "FOO": "1", // last
    },
    "unknown": [1, 2.50, 1e3, null],
}
`,
		`{"model":"opus","env":{},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}`,
		"{\n\t\"env\": {\n\t\t\"A\": \"1\"\n\t}\n\t// the end\n}\n",
		"// all of it\n{ /* nothing yet */ }\n// after\n",
	},
	".claude.json": {
		`{"numStartups":3,"oauthAccount":{"x":"y"},"projects":{"/home/me":{"mcpServers":{}}}}`,
		"{\n  \"mcpServers\": {},\n  \"numStartups\": 3\n}",
		"{\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
	},
	".codex/config.toml": {
		"# Codex\nmodel = \"gpt-5\" # best\n\n[model_providers.azure]\nname=\"a\"\nkey = '''x\n[y]\n'''\n[projects.\"/x\"]\ntrust_level = \"trusted\"",
		"model_provider = 'openai' # mine\n[[hooks]]\nevent = \"a\"\n[hooks.more]\nx = 1979-05-27T07:32:00Z\n[mcp_servers.furl]\ncommand = \"other\" # old\n\n# end\n",
		"[tui]\nnotifications = [ # all\n  \"a]\",\n]\n",
		"a = 1\nb.c = { d = \"#\", e = [ {f = 1} ] }\n",
		"model_provider = \"azure\" # mine\n[model_providers.azure]\nname = \"a\"\nbase_url = \"https://az.example/openai\" # theirs\n",
		"model_provider = \"furl\"\n\n[model_providers.furl]\nname = \"furl\"\nbase_url = \"http://127.0.0.1:7410/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n",
	},
	"opencode/opencode.json": {
		"{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"provider\": {\n    \"anthropic\": {\"options\": {\"timeout\": 600000}},\n  },\n  // later\n}\n",
		`{ "mcp": { "x": { "type": "local", "command": ["y"] } }, "provider": { "openai": { "options": { "baseURL": "https://api.openai.com/v1" } } } }`,
	},
	"kilo/kilo.jsonc":              {"{\n  // kilo\n  \"provider\": {}\n}\n"},
	".pi/agent/models.json":        {"{\n  \"providers\": {\n    \"local\": {\"baseUrl\": \"http://x\"}\n  }\n}\n"},
	".cursor/mcp.json":             {"{\n  \"mcpServers\": {\n  }\n}\n"},
	"skills/furl/SKILL.md":         {"# Mine\n"},
	".gemini/settings.json":        {"{\n  \"theme\": \"Dark\"\n}"},
	".copilot/mcp-config.json":     {`{"mcpServers": {}}`},
	".qwen/settings.json":          {"{\n   \"security\": {\"auth\": {\"selectedType\": \"openai\"}}\n}\n"},
	"cline_mcp_settings.json":      {"{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"b\",\n      \"disabled\": false\n    }\n  }\n}"},
	"mcp_settings.json":            {"{\n  \"mcpServers\": {}\n}"},
	"crush/crush.json":             {`{"$schema":"https://charm.land/crush.json","mcp":{"a":{"type":"http","url":"http://x"}}}`},
	".kimi-code/config.toml":       {"default_model = \"k\"\n[providers.\"managed:kimi-code\"]\ntype = \"kimi\"\nbase_url = \"https://api.kimi.com/coding/v1\" # theirs\napi_key = \"\"\n\n[providers.claude]\ntype = \"anthropic\"\napi_key = \"x\"\n[models.k]\nprovider = \"managed:kimi-code\"\n"},
	".kimi-code/mcp.json":          {"{}"},
	"nanocoder/agents.config.json": {"{\n  \"nanocoder\": {\n    \"providers\": [\n      {\"name\": \"OpenAI\", \"baseUrl\": \"https://api.openai.com/v1\", \"models\": [\"m\"]},\n      {\n        \"name\": \"Claude\",\n        \"sdkProvider\": \"anthropic\"\n      },\n      {\"name\": \"Local\", \"baseUrl\": \"http://192.168.0.2/v1\"}\n    ]\n  }\n}\n"},
	"nanocoder/.mcp.json":          {"{\"mcpServers\": {\"a\": {\"command\": \"b\"}}}\n"},
	".openclaw/openclaw.json":      {"{\n  // gateway\n  \"models\": {\"providers\": {\"anthropic\": {\"baseUrl\": \"https://api.anthropic.com\", \"models\": [{\"id\": \"x\"}]}}},\n  \"mcp\": {}\n}\n"},
	".continue/config.yaml": {
		"name: mine\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: claude\n    provider: anthropic\n    model: claude-sonnet-4-5\n    apiKey: k1 # mine\n  - name: gpt # other\n    provider: openai\n    model: gpt-5\n    apiBase: https://api.openai.com/v1\n  - name: second\n    provider: openai\n    model: gpt-5\n  - name: local\n    provider: ollama\n    model: x\n# end\ncontext:\n  - provider: file\n",
		"name: a\nversion: 1.0.0\nmcpServers:\n- name: other\n  command: x\n",
	},
}

// contents returns the variants of a file: as it is, with CRLF, with a byte order mark,
// without and with a final line end, empty, blank, and missing (nil).
func contents(path string) (list [][]byte) {
	for end, texts := range files {
		if !strings.HasSuffix(filepath.ToSlash(path), end) {
			continue
		}
		for _, text := range texts {
			crlf := strings.ReplaceAll(text, "\n", "\r\n")
			list = append(list, []byte(text), []byte(crlf), slices.Concat(mark, []byte(text)), []byte(strings.TrimRight(text, "\n")), []byte(text+"\n\n"), []byte(strings.TrimRight(crlf, "\r\n")))
		}
	}
	return append(list, []byte{}, []byte("\n"), nil)
}

// Setups that are planned from the same files at the same time are made one after the
// other: a plan that another one has overtaken changes nothing. Undoing puts the files back.
func TestConcurrent(t *testing.T) {
	folder := home(t)
	path := filepath.Join(os.Getenv("HOME"), ".codex", "config.toml")
	before := []byte(files[".codex/config.toml"][0])
	write(t, path, before)
	second := options
	second.Parts = []agents.Part{agents.PartMCP}
	var wait sync.WaitGroup
	for i := range 12 {
		o := options
		if i%2 == 1 {
			o = second
		}
		wait.Go(func() {
			for {
				p, err := New(folder, client(t, "codex"), &o)
				if err == nil {
					err = p.Apply()
				}
				if err == nil {
					return
				}
				if !errors.Is(err, ErrChanged) {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	stale, err := New(folder, client(t, "codex"), &options)
	if err != nil {
		t.Fatal(err)
	}
	undo(t, folder, "codex")
	if got := read(t, path); !bytes.Equal(got, before) {
		t.Errorf("after undo:\n%s", got)
	}
	if err := stale.Apply(); !errors.Is(err, ErrChanged) {
		t.Errorf("apply a plan that another process has overtaken: %v", err)
	}
	if got := read(t, path); !bytes.Equal(got, before) {
		t.Errorf("after a plan that was refused:\n%s", got)
	}
}

// Undoing a setup puts back each file to the byte, and a setup changes no other value.
func TestUndo(t *testing.T) {
	for _, name := range agents.ClientNames() {
		c := client(t, name)
		for at := range c.Files {
			if c.Files[at].Project {
				continue
			}
			t.Run(name, func(t *testing.T) {
				folder := home(t)
				path := c.Files[at].Paths()[0]
				list := contents(path)
				if len(list) < 4 {
					t.Fatalf("no files for %s", path)
				}
				for _, data := range list {
					if err := os.RemoveAll(path); err != nil {
						t.Fatal(err)
					}
					if data != nil {
						write(t, path, data)
					}
					apply(t, folder, name, options)
					after := read(t, path)
					if data != nil && c.Files[at].Each == nil && bytes.Equal(after, data) {
						t.Errorf("%q was not changed", data)
					}
					if c.Files[at].Text == "" && bytes.Contains(data, []byte("\r\n")) && bytes.Count(after, []byte("\n")) != bytes.Count(after, []byte("\r\n")) {
						t.Errorf("mixed line ends: %q", after)
					}
					if p, err := New(folder, c, &options); err != nil || p.Changes() {
						t.Errorf("a second setup would change %q (%v)", after, err)
					}
					if info, err := os.Stat(path); err == nil && data != nil && runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
						t.Errorf("mode %v", info.Mode())
					}
					if p := undo(t, folder, name); len(p.Notes) > 0 {
						t.Errorf("%q: %q", data, p.Notes)
					}
					if got := read(t, path); !bytes.Equal(got, data) || (got == nil) != (data == nil) {
						t.Errorf("after undo:\n%q, want\n%q", got, data)
					}
					if left, _ := os.ReadDir(filepath.Dir(folder)); len(left) > 1 || left[0].Name() != filepath.Base(LockName(folder)) {
						t.Errorf("the data folder has %v", left)
					}
				}
			})
		}
	}
}

// If the user has changed something else since, only furl's values are removed.
func TestUndoAfterOtherChanges(t *testing.T) {
	for _, c := range []struct {
		agent, file, before string
		change              func(string) string
		want                string // "": change(before)
	}{
		{agent: "claude", file: ".claude.json", before: files[".claude.json"][0], change: replace(`"numStartups":3`, `"numStartups":4`)},
		{agent: "claude", file: ".claude.json", before: files[".claude.json"][2], change: replace(`"command": "x"`, `"command": "z"`)},
		{agent: "claude", file: ".claude/settings.json", before: files[".claude/settings.json"][0], change: replace(`"FOO": "1"`, `"FOO": "2", "BAR": "3"`)},
		{agent: "claude", file: ".claude/settings.json", before: files[".claude/settings.json"][2], change: replace(`"A": "1"`, `"A": "0"`)},
		{
			agent: "claude", file: ".claude.json", before: "{\n  \"a\": 1\n}\n", // a member after furl's
			change: func(s string) string { return strings.TrimSuffix(s, "\n}\n") + ",\n  \"b\": 2\n}\n" },
		},
		{
			agent: "gemini", file: ".gemini/settings.json", before: "", // the user's settings in furl's file
			change: func(s string) string {
				if s == "" {
					return "{\n  \"b\": 2\n}\n"
				}
				return strings.TrimSuffix(s, "\n}\n") + ",\n  \"b\": 2\n}\n"
			},
		},
		{
			agent: "gemini", file: ".gemini/settings.json", before: "{\"mcpServers\": {}}", // another server
			change: func(s string) string {
				if i := strings.LastIndex(s, "}}"); !strings.Contains(s, "furl") {
					return s[:i] + `"x": {"command": "y"}` + s[i:]
				} else {
					return s[:i] + `, "x": {"command": "y"}` + s[i:]
				}
			},
		},
		{agent: "codex", file: ".codex/config.toml", before: files[".codex/config.toml"][0], change: replace(`"gpt-5"`, `"gpt-6"`)},
		{agent: "codex", file: ".codex/config.toml", before: files[".codex/config.toml"][1], change: replace(`event = "a"`, `event = "b"`)},
		{
			agent: "codex", file: ".codex/config.toml", before: "a = 1", // no final line end, and a table after furl's
			change: func(s string) string {
				if !strings.HasSuffix(s, "\n") {
					s += "\n"
				}
				return s + "[last]\nx = 1\n"
			},
		},
		{agent: "codex", file: ".codex/config.toml", before: "a = 1\n", change: func(s string) string { return "# first\n" + s + "\n[last]\nx = 1\n" }},
		{agent: "continue", file: ".continue/config.yaml", before: files[".continue/config.yaml"][0], change: replace("k1", "k2")},
		{agent: "continue", file: ".continue/config.yaml", before: files[".continue/config.yaml"][1], change: func(s string) string { return s + "rules:\n  - be kind\n" }},
		{agent: "kimi-code", file: ".kimi-code/config.toml", before: files[".kimi-code/config.toml"][0], change: replace(`"k"`, `"l"`)},
		{
			agent: "codex", file: ".codex/config.toml", before: "a = 1\n", // furl's own value
			change: replace(`7410/v1`, `7411/v1`), want: "a = 1\nopenai_base_url = \"http://127.0.0.1:7411/v1\"\n",
		},
	} {
		for _, crlf := range []bool{false, true} {
			if crlf && c.want+c.before == "" {
				continue
			}
			eol := func(s string) string {
				if crlf {
					return strings.ReplaceAll(s, "\n", "\r\n")
				}
				return s
			}
			edit := func(data []byte) []byte { return []byte(eol(c.change(strings.ReplaceAll(string(data), "\r\n", "\n")))) }
			folder := home(t)
			path := filepath.Join(os.Getenv("HOME"), filepath.FromSlash(c.file))
			write(t, path, []byte(eol(c.before)))
			apply(t, folder, c.agent, options)
			write(t, path, edit(read(t, path)))
			p := undo(t, folder, c.agent)
			want := eol(c.want)
			if want == "" {
				want = string(edit([]byte(c.before)))
			}
			if got := string(read(t, path)); got != want {
				t.Errorf("%s: after undo:\n%q, want\n%q", c.agent, got, want)
			}
			if noted := len(p.Notes) > 0; noted != (c.want != "") {
				t.Errorf("%s: notes %q", c.agent, p.Notes)
			}
		}
	}
}

func replace(old, new string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, old, new) }
}

// A second setup with another address replaces the first; undoing it puts back the
// file before both, and a part that is no longer set is removed.
func TestSetupAgain(t *testing.T) {
	folder := home(t)
	path := filepath.Join(os.Getenv("HOME"), ".codex", "config.toml")
	before := []byte(files[".codex/config.toml"][0])
	write(t, path, before)
	apply(t, folder, "codex", options)
	other := options
	other.URL, other.Parts = "http://127.0.0.1:9999", []agents.Part{agents.PartURL}
	apply(t, folder, "codex", other)
	if got := string(read(t, path)); !strings.Contains(got, "9999/v1") || strings.Contains(got, "7410") || strings.Contains(got, "mcp_servers") {
		t.Errorf("after the second setup:\n%s", got)
	}
	undo(t, folder, "codex")
	if got := read(t, path); !bytes.Equal(got, before) {
		t.Errorf("after undo:\n%q, want\n%q", got, before)
	}
}

// The setup of Codex before openai_base_url was a provider of its own. It is undone to
// the byte, and replaced by a new setup.
func TestSetupOfAnEarlierVersion(t *testing.T) {
	for _, again := range []bool{false, true} {
		folder := home(t)
		path := filepath.Join(os.Getenv("HOME"), ".codex", "config.toml")
		before := []byte(files[".codex/config.toml"][0])
		write(t, path, before)
		earlier := client(t, "codex")
		earlier.Files = []agents.ConfigFile{{Paths: earlier.Files[0].Paths, Settings: []agents.Setting{
			{Part: agents.PartURL, Path: []string{"model_provider"}, Value: `"furl"`},
			{Part: agents.PartURL, Path: []string{"model_providers", "furl"}, Value: `{"name": "furl", "base_url": "{url}/v1", "env_key": "OPENAI_API_KEY", "wire_api": "responses"}`},
		}}}
		p, err := New(folder, earlier, &options)
		if err == nil {
			err = p.Apply()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := string(read(t, path)); !strings.Contains(got, "[model_providers.furl]") {
			t.Fatalf("the earlier setup:\n%s", got)
		}
		if again {
			apply(t, folder, "codex", options)
			if got := string(read(t, path)); !strings.Contains(got, "openai_base_url") || strings.Contains(got, "model_provider =") || strings.Contains(got, "providers.furl") {
				t.Errorf("after the new setup:\n%s", got)
			}
		}
		undo(t, folder, "codex")
		if got := read(t, path); !bytes.Equal(got, before) {
			t.Errorf("after undo:\n%q, want\n%q", got, before)
		}
	}
}

// A provider that Codex is configured for is kept, behind the gateway.
func TestProviderOfCodex(t *testing.T) {
	for before, want := range map[string][]string{
		files[".codex/config.toml"][4]: {"model_provider = \"azure\" # mine\n", "base_url = \"http://127.0.0.1:7410/v1\" # theirs\n"},
		files[".codex/config.toml"][5]: {"model_provider = \"openai\"\n", "openai_base_url = \"http://127.0.0.1:7410/v1\"\n"},
		"model_provider = \"none\"\n":  {"model_provider = \"openai\"\n"},
	} {
		folder := home(t)
		path := filepath.Join(os.Getenv("HOME"), ".codex", "config.toml")
		write(t, path, []byte(before))
		apply(t, folder, "codex", options)
		for _, line := range want {
			if got := string(read(t, path)); !strings.Contains(got, line) {
				t.Errorf("%s\nlacks %s", got, line)
			}
		}
	}
}

// The base URL of a provider is replaced only if the gateway forwards to it. Otherwise its
// credential would be sent elsewhere.
func TestOtherProvidersStay(t *testing.T) {
	codex, kimi, claude := files[".codex/config.toml"][4], files[".kimi-code/config.toml"][0], files[".claude/settings.json"][0]
	foundry := `{"env":{"CLAUDE_CODE_USE_FOUNDRY":"1","ANTHROPIC_FOUNDRY_RESOURCE":"mine"}}`
	mantle := `{"env":{"CLAUDE_CODE_USE_MANTLE":"1"}}`
	nano := files["nanocoder/agents.config.json"][0]
	for _, tt := range []struct {
		agent, file, before string
		anthropic, openai   string // without one: the vendor's
		refused             string // "": no error
		note                string // "": none
		after               string // what the file has then
	}{
		{"codex", ".codex/config.toml", codex, "", "", `model_providers.azure.base_url stays, because its requests go to https://az.example/openai and the gateway forwards to https://api.openai.com, which would get their credential; if the gateway is started with furl serve --openai URL, add --openai with that URL here, or set gateway.openai`, "", "https://az.example/openai"},
		{"codex", ".codex/config.toml", codex, "", "https://az.example/openai/", "", "", `base_url = "http://127.0.0.1:7410/v1" # theirs`},
		{"codex", ".codex/config.toml", codex, "", "https://az.example/openai/v1", "", "", `base_url = "http://127.0.0.1:7410/v1" # theirs`},
		{"codex", ".codex/config.toml", codex, "", "https://az.example", "which would get their credential", "", "https://az.example/openai"},
		{"codex", ".codex/config.toml", codex, "", "none", "the gateway forwards to none", "", "https://az.example/openai"},
		{"codex", ".codex/config.toml", strings.Replace(codex, "https://az.example/openai", "http://localhost:11434/v1", 1), "", "", "if that is an earlier address of the gateway, remove it first", "", "http://localhost:11434/v1"},
		{"codex", ".codex/config.toml", strings.Replace(codex, "https://az.example/openai", "http://localhost:7410/v1", 1), "", "", "", "", "http://127.0.0.1:7410/v1"},
		{"codex", ".codex/config.toml", "openai_base_url = \"https://proxy.example/v1\"\n", "", "", "openai_base_url stays", "", "https://proxy.example/v1"},
		{"claude", ".claude/settings.json", claude, "", "", "env.ANTHROPIC_BASE_URL stays, because its requests go to https://llm.corp.example/v1 and the gateway forwards to https://api.anthropic.com", "", "https://llm.corp.example/v1"},
		{"claude", ".claude/settings.json", claude, "https://llm.corp.example", "", "", "", `"ANTHROPIC_BASE_URL": "http://127.0.0.1:7410"`},
		{"claude", ".claude/settings.json", foundry, "", "", "env.ANTHROPIC_FOUNDRY_BASE_URL stays, because its requests go to https://mine.services.ai.azure.com/anthropic", "", `"mine"`},
		{"claude", ".claude/settings.json", foundry, "https://yours.services.ai.azure.com/anthropic", "", "env.ANTHROPIC_FOUNDRY_BASE_URL stays", "", `"mine"`},
		{"claude", ".claude/settings.json", foundry, "https://mine.services.ai.azure.com/anthropic", "", "", "", `"ANTHROPIC_FOUNDRY_RESOURCE":""`},
		{"claude", ".claude/settings.json", mantle, "", "", "its requests go to https://bedrock-mantle.$AWS_REGION.api.aws/anthropic and", "", "MANTLE"},
		{"claude", ".claude/settings.json", mantle, "https://bedrock-mantle.eu-west-1.api.aws/anthropic", "", "", "", "http://127.0.0.1:7410"},
		{"kimi-code", ".kimi-code/config.toml", kimi, "", "", "", "providers.managed:kimi-code.base_url stays, because its requests go to https://api.kimi.com/coding/v1 and the gateway forwards to https://api.openai.com", "https://api.kimi.com/coding/v1"},
		{"kimi-code", ".kimi-code/config.toml", kimi, "", "https://api.kimi.com/coding/v1", "", "", `base_url = "http://127.0.0.1:7410/v1" # theirs`},
		{"kimi-code", ".kimi-code/config.toml", "[providers.k]\ntype = \"kimi\"\n", "", "", "", "providers.k.base_url stays, because its requests go to https://api.moonshot.ai/v1", "kimi"},
		{"nanocoder", "nanocoder/agents.config.json", nano, "", "", "", "nanocoder.providers.[name=Local].baseUrl stays, because its requests go to http://192.168.0.2/v1", "http://192.168.0.2/v1"},
		{"opencode", "opencode/opencode.json", `{"provider":{"openai":{"options":{"baseURL":"https://openrouter.ai/api/v1"}}}}`, "", "", "provider.openai.options.baseURL stays", "", "openrouter"},
		{"opencode", "opencode/opencode.json", files["opencode/opencode.json"][1], "", "", "", "", `"baseURL": "http://127.0.0.1:7410/v1"`},
	} {
		folder := home(t)
		c := client(t, tt.agent)
		at := slices.IndexFunc(c.Files, func(f agents.ConfigFile) bool { return strings.HasSuffix(filepath.ToSlash(f.Path()), tt.file) })
		path := c.Files[at].Path()
		write(t, path, []byte(tt.before))
		o := options
		o.Anthropic, o.OpenAI = cmp.Or(tt.anthropic, "https://api.anthropic.com"), cmp.Or(tt.openai, "https://api.openai.com")
		p, err := New(folder, c, &o)
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s with %s %s: %v, want %q", tt.agent, tt.anthropic, tt.openai, err, tt.refused)
		}
		if err == nil {
			if notes := strings.Join(p.Notes, "\n"); (notes == "") != (tt.note == "") || !strings.Contains(notes, tt.note) {
				t.Errorf("%s with %s %s: notes %q, want %q", tt.agent, tt.anthropic, tt.openai, notes, tt.note)
			}
			if err := p.Apply(); err != nil {
				t.Fatal(err)
			}
		}
		if got := string(read(t, path)); !strings.Contains(got, tt.after) || tt.refused != "" && got != tt.before {
			t.Errorf("%s with %s %s:\n%s\nlacks %s", tt.agent, tt.anthropic, tt.openai, got, tt.after)
		}
		o.Parts = []agents.Part{agents.PartMCP}
		if _, err := New(folder, c, &o); err != nil {
			t.Errorf("%s, only mcp: %v", tt.agent, err)
		}
	}
}

// Wherever a setup is interrupted, each file has its old or its new content, and
// undoing puts back the old one.
func TestInterrupted(t *testing.T) {
	texts := []string{files[".claude/settings.json"][0], files[".claude.json"][0]}
	for _, again := range []bool{false, true} {
		for step := range 3 {
			folder := home(t)
			names := []string{".claude/settings.json", ".claude.json"}
			for i, name := range names {
				names[i] = filepath.Join(os.Getenv("HOME"), filepath.FromSlash(name))
				write(t, names[i], []byte(texts[i]))
			}
			o := options
			if again {
				apply(t, folder, "claude", o)
				o.URL = "http://127.0.0.1:9999"
			}
			p, err := New(folder, client(t, "claude"), &o)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.save(); err != nil {
				t.Fatal(err)
			}
			for i := range step {
				if err := p.Files[i].write(); err != nil {
					t.Fatal(err)
				}
			}
			undo(t, folder, "claude")
			for i, name := range names {
				if got := string(read(t, name)); got != texts[i] {
					t.Errorf("again %v, step %d: after undo %s has\n%q, want\n%q", again, step, name, got, texts[i])
				}
			}
		}
	}
}

// A link stays, and its target is edited.
func TestLink(t *testing.T) {
	folder := home(t)
	path := filepath.Join(os.Getenv("HOME"), ".gemini", "settings.json")
	target := filepath.Join(os.Getenv("HOME"), "dotfiles", "gemini.json")
	write(t, target, []byte("{}\n"))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	needs.Symlink(t, target, path)
	apply(t, folder, "gemini", options)
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 || !bytes.Contains(read(t, target), []byte("furl")) {
		t.Errorf("%v %v: the target has %s", info, err, read(t, target))
	}
	undo(t, folder, "gemini")
	if got := string(read(t, target)); got != "{}\n" {
		t.Errorf("after undo: %q", got)
	}
}

// A file that furl cannot parse or edit is refused with the line, and stays.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ agent, file, text, want string }{
		{"gemini", ".gemini/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}", "settings.json: line 3: "},
		{"gemini", ".gemini/settings.json", "[]", "line 1: not an object in braces"},
		{"gemini", ".gemini/settings.json", "{\n \"mcpServers\": []}", `line 2: the value of "mcpServers" is not an object`},
		{"gemini", ".gemini/settings.json", "{\"a\": \"\xff\"}", "not UTF-8"},
		{"openclaw", ".openclaw/openclaw.json", "{\n  models: {}\n}", "line 2: "},
		{"codex", ".codex/config.toml", "a = 1\nb = \n", "config.toml: line 2: "},
		{"codex", ".codex/config.toml", "model_provider = \"x\"\nmodel_providers = {x = {base_url = \"http://x\"}}\n", `line 2: "model_providers" is written in braces`},
		{"continue", ".continue/config.yaml", "a: 1\n b: 2\n", "config.yaml: line "},
		{"continue", ".continue/config.yaml", "name: a\nversion: b\nmodels: [{name: x, provider: openai, model: m}]\n", "line 3: "},
		{"continue", ".continue/config.yaml", "a: 1\n---\nb: 2\n", "several documents"},
	} {
		folder := home(t)
		path := filepath.Join(os.Getenv("HOME"), filepath.FromSlash(c.file))
		write(t, path, []byte(c.text))
		_, err := New(folder, client(t, c.agent), &options)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.want)
		}
		if got := string(read(t, path)); got != c.text {
			t.Errorf("%q was changed to %q", c.text, got)
		}
	}
}

// The diff has nothing that may be a credential.
func TestDiffHasNoCredentials(t *testing.T) {
	const secret = "hunter2"
	for _, c := range []struct{ agent, file, text string }{
		{"claude", ".claude/settings.json", `{"statusLine": {"type": "command", "command": "line --key hunter2"}, "env": {"ANTHROPIC_BASE_URL": "https://me:hunter2@x.example/aaaaaaaaaaaa1hunter2/v1?k=hunter2"}} // key: hunter2`},
		{"gemini", ".gemini/settings.json", "{\n  // hunter2hunter2hunter2\n  \"list\": [\"hunter2\", {\"a\": \"hunter2\"}],\n  \"sk-ant-1234567hunter2\": true, /* API_KEY=hunter2 */\n  \"k\": \"hunter2\"\n}"},
		{"codex", ".codex/config.toml", "# api_key = \"hunter2\"\nkey = 'hunter2' # hunter2hunter2\nlist = [ # key=hunter2\n \"hunter2\" ]\ntext = \"\"\"\nhunter2\n\"\"\"\n[t]\nk = { a = \"hunter2\" }"},
		{"continue", ".continue/config.yaml", "name: hunter2\nversion: hunter2 # key: hunter2\nmodels:\n  - name: claude\n    provider: anthropic\n    apiKey: hunter2\n    requestOptions: {headers: {x: hunter2}}\ntext: |\n  hunter2\nlist:\n  - hunter2\n# k: hunter2\n"},
	} {
		folder := home(t)
		write(t, filepath.Join(os.Getenv("HOME"), filepath.FromSlash(c.file)), []byte(c.text))
		p, err := New(folder, client(t, c.agent), &options)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		text.WriteString(strings.Join(p.Notes, "\n"))
		for i := range p.Files {
			text.WriteString(p.Files[i].Diff())
		}
		if err := p.Apply(); err != nil {
			t.Fatal(err)
		}
		if p, err = Undo(folder, c.agent); err != nil {
			t.Fatal(err)
		}
		for i := range p.Files {
			text.WriteString(p.Files[i].Diff())
		}
		if strings.Contains(text.String(), secret) || !strings.Contains(text.String(), "+") {
			t.Errorf("%s: the diff has %q:\n%s", c.agent, secret, text.String())
		}
	}
}

// Each setting is valid JSON and furl serve --print-env can print it.
func TestSnippets(t *testing.T) {
	home(t)
	for _, name := range agents.ClientNames() {
		for _, f := range client(t, name).Files {
			for _, s := range f.Settings {
				if !json.Valid([]byte(s.Resolve(options.URL, options.Command))) {
					t.Errorf("%s: %s is not JSON", name, s.Value)
				}
			}
			if f.Each == nil && f.Text == "" && Snippet(f, agents.PartMCP) == "" {
				t.Errorf("%s: no lines for %s", name, f.Paths()[0])
			}
		}
	}
	if got, want := Snippet(client(t, "codex").Files[0], agents.PartURL), `# In ~/.codex/config.toml:
#   openai_base_url = "{url}/v1"
`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
