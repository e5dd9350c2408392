package agents

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Client says how an agent, or the programs that use an SDK, are connected to furl.
// In its texts, {url} is the address of the gateway.
type Client struct {
	Name  string // as in furl setup and --print-env
	Title string
	// Commands are the names of its programs. None: Name, except for SDKs.
	Commands []string
	// SDK means that it is no program.
	SDK bool
	// Notes are comments for a shell, with lines for configuration files.
	Notes string
	// PrintFiles means that the notes include the base URL settings of Files.
	PrintFiles bool
	// Env are variables with which it sends its requests to the gateway. furl run
	// sets them.
	Env []string
	// Manual means that furl run cannot connect it: it reads no address from the
	// environment, or only together with other settings.
	Manual bool
	// Files are its configuration files, which furl setup edits.
	Files []ConfigFile
	// URLNote says how its base URL is set if Files do not set it.
	URLNote string
	// MCPCommand is its command that adds an MCP server, without that server's command.
	MCPCommand []string
}

// Programs returns the names of its programs.
func (c Client) Programs() []string {
	if len(c.Commands) > 0 || c.SDK {
		return c.Commands
	}
	return []string{c.Name}
}

// PrintsEnv reports whether furl serve --print-env knows settings for it.
func (c Client) PrintsEnv() bool { return c.Notes != "" || c.PrintFiles || len(c.Env) > 0 }

// Sets reports whether its configuration files have settings of a part.
func (c Client) Sets(part Part) bool {
	return slices.ContainsFunc(c.Files, func(f ConfigFile) bool {
		return part == PartURL && f.Each != nil || part == PartMCP && f.Text != "" ||
			slices.ContainsFunc(f.Settings, func(s Setting) bool { return s.Part == part })
	})
}

// ConfigFile is a configuration file of an agent, in JSON with comments, TOML or YAML
// by its extension.
type ConfigFile struct {
	// Paths returns where the file may be. The first that exists is used, else the
	// first.
	Paths func() []string
	// Optional means that the file is only edited if its folder exists.
	Optional bool
	// Project means that the file is in the folder of a project. furl setup does not
	// edit it.
	Project bool
	// Text is the whole file, with "{furl}" for the program. The file has no settings.
	Text     string
	Settings []Setting
	// Each returns settings that depend on what the file contains, such as one for
	// each model. The file is decoded as by encoding/json.
	Each func(doc any) []Setting
}

// Part is what a setting is for.
type Part string

// The parts of a setup.
const (
	PartURL    Part = "url"
	PartMCP    Part = "mcp"
	PartStatus Part = "status"
)

// Parts lists all parts.
var Parts = []Part{PartURL, PartMCP, PartStatus}

// Setting is one value in a configuration file.
type Setting struct {
	Part Part
	// Path has the keys from the root. "[name=x]" is the element of a list whose
	// member name is x.
	Path []string
	// Value is JSON. The strings "{url}…", "{command}", "{args}" and "{status}" stand
	// for the gateway's address, the program that is furl's MCP server, its arguments,
	// and furl's status line command.
	Value string
	// API is the API whose requests a base URL moves: "anthropic" or "openai". Empty: that
	// of which the path has the name, else openai.
	API string
	// Now is the address to which the requests go while the path has no value, "" if that
	// is the usual one of the API.
	Now string
	// Also reports whether another address than Now is the same provider's. If nil, none is.
	Also func(address string) bool
	// Several means that the file has a base URL for each of several providers. Those to
	// which the gateway does not forward stay.
	Several bool
	// Keep means that an existing value stays.
	Keep bool
	// Wrap returns the setting to use instead if the path has this value. Nil: the
	// value is replaced.
	Wrap func(old any, status string) (Setting, bool)
}

// MCPName is the name of furl's MCP server in configuration files. Agents put it before
// the names of its tools.
const MCPName = "furl"

// Forms of an MCP server's entry.
const (
	mcpPlain = `{"command": "{command}", "args": ["{args}"]}`
	mcpStdio = `{"type": "stdio", "command": "{command}", "args": ["{args}"]}`
	mcpLocal = `{"type": "local", "command": ["{command}", "{args}"], "enabled": true}`
	mcpTools = `{"type": "local", "command": "{command}", "args": ["{args}"], "tools": ["*"]}`
	mcpNamed = `{"name": "furl", "command": "{command}", "args": ["{args}"]}`
)

// Upstream is the API whose requests a base URL moves, as the gateway's flags and keys name
// it.
func (s *Setting) Upstream() string {
	switch {
	case s.API != "":
		return s.API
	case strings.Contains(strings.ToLower(strings.Join(s.Path, " ")), "anthropic"):
		return "anthropic"
	}
	return "openai"
}

func set(part Part, value string, path ...string) Setting {
	return Setting{Part: part, Path: path, Value: value}
}

// mcpServers is the setting in files with an object of MCP servers.
func mcpServers(entry string) Setting { return set(PartMCP, entry, "mcpServers", MCPName) }

// providers are the settings of agents with the configuration of opencode.
var providers = []Setting{
	set(PartURL, `"{url}/v1"`, "provider", "anthropic", "options", "baseURL"),
	set(PartURL, `"{url}/v1"`, "provider", "openai", "options", "baseURL"),
	set(PartMCP, mcpLocal, "mcp", MCPName),
}

// ClientNames returns the names of all clients in order.
func ClientNames() []string { return slices.Sorted(maps.Keys(clients)) }

// ClientNamed finds a client by its name or the name of a program.
func ClientNamed(name string) (Client, bool) {
	c, ok := clients[name]
	if !ok {
		for _, key := range ClientNames() {
			if slices.Contains(clients[key].Programs(), name) {
				c, name, ok = clients[key], key, true
				break
			}
		}
	}
	c.Name = name
	return c, ok
}

// clients has the one definition of each client.
var clients = map[string]Client{
	"claude": {
		Title: "Claude Code", Env: []string{"ANTHROPIC_BASE_URL={url}"}, Notes: `# Over Mantle, Claude Platform on AWS or Google Cloud, or Foundry, one of these instead, with
# the cloud's own base URL for the gateway: furl serve --anthropic URL
#   export ANTHROPIC_BEDROCK_MANTLE_BASE_URL={url}
#   export ANTHROPIC_AWS_BASE_URL={url}
#   export ANTHROPIC_GOOGLE_CLOUD_BASE_URL={url}
#   export ANTHROPIC_FOUNDRY_BASE_URL={url}/anthropic
#   unset ANTHROPIC_FOUNDRY_RESOURCE
`,
		Files: []ConfigFile{
			{Paths: at("CLAUDE_CONFIG_DIR", ".claude", "settings.json"), Each: claudeClouds, Settings: []Setting{
				set(PartURL, `"{url}"`, "env", "ANTHROPIC_BASE_URL"),
				{Part: PartStatus, Path: []string{"statusLine"}, Value: `{"type": "command", "command": "{status}", "padding": 0, "refreshInterval": 10}`, Wrap: wrapStatusLine},
			}},
			// This file is in the home folder, not in .claude, unless the folder was moved.
			{Paths: at("CLAUDE_CONFIG_DIR", "", ".claude.json"), Settings: []Setting{mcpServers(mcpStdio)}},
		},
		MCPCommand: []string{"claude", "mcp", "add", "--scope", "user", MCPName, "--"},
	},
	"codex": {
		Title: "Codex", PrintFiles: true,
		Files: []ConfigFile{{Paths: at("CODEX_HOME", ".codex", "config.toml"), Each: codexProvider, Settings: []Setting{
			// The built-in provider keeps the sign-in and compacts on the server.
			set(PartURL, `"{url}/v1"`, "openai_base_url"),
			set(PartMCP, mcpPlain, "mcp_servers", MCPName),
		}}},
		MCPCommand: []string{"codex", "mcp", "add", MCPName, "--"},
	},
	"opencode": {
		Title: "opencode", PrintFiles: true, Env: []string{"ANTHROPIC_BASE_URL={url}/v1", "OPENAI_BASE_URL={url}/v1"},
		Files: []ConfigFile{{Paths: configHome("OPENCODE_CONFIG", "opencode", "opencode.json", "opencode.jsonc"), Settings: providers}},
	},
	"pi": {
		Title: "pi", Manual: true, PrintFiles: true,
		Files: []ConfigFile{{Paths: at("PI_CODING_AGENT_DIR", ".pi/agent", "models.json"), Settings: []Setting{
			set(PartURL, `"{url}"`, "providers", "anthropic", "baseUrl"),
			set(PartURL, `"{url}/v1"`, "providers", "openai", "baseUrl"),
		}}, {Paths: at("PI_CODING_AGENT_DIR", ".pi/agent", "skills/"+MCPName+"/SKILL.md"), Text: skill}}, // pi has no MCP client
	},
	"cursor": {
		Title: "Cursor", Commands: []string{"cursor", "cursor-agent"}, URLNote: "set the base URL in its settings",
		Files: []ConfigFile{{Paths: at("", ".cursor", "mcp.json"), Settings: []Setting{mcpServers(mcpPlain)}}},
	},
	"vscode": {
		Title: "VS Code", Commands: []string{"code"}, URLNote: "set the base URL in the settings of the extension",
		Files: []ConfigFile{{
			Paths: func() []string { return []string{filepath.Join(".vscode", "mcp.json")} }, Project: true,
			Settings: []Setting{set(PartMCP, mcpStdio, "servers", MCPName)},
		}},
	},
	"gemini": {
		Title: "Gemini CLI", Env: []string{"GOOGLE_GEMINI_BASE_URL={url}", "GOOGLE_VERTEX_BASE_URL={url}"},
		Notes: `# Or the same lines in ~/.gemini/.env. gemini -p also needs security.auth.selectedType "gemini-api-key" or "vertex-ai"
# in ~/.gemini/settings.json, which /auth sets. A sign-in with Google does not use these variables.
`,
		URLNote: "start it with furl run -- gemini, or set the variables that furl serve --print-env gemini prints",
		Files:   []ConfigFile{{Paths: at("GEMINI_CLI_HOME", "", ".gemini/settings.json"), Settings: []Setting{mcpServers(mcpPlain)}}},
	},
	"copilot": {
		Title: "Copilot CLI", Manual: true, Notes: "# For Anthropic: COPILOT_PROVIDER_TYPE=anthropic and the URL without /v1.\n",
		Env:     []string{"COPILOT_PROVIDER_BASE_URL={url}/v1"},
		Files:   []ConfigFile{{Paths: at("COPILOT_HOME", ".copilot", "mcp-config.json"), Settings: []Setting{mcpServers(mcpTools)}}},
		URLNote: "set the variables that furl serve --print-env copilot prints",
	},
	"qwen": {
		Title: "Qwen Code", Env: []string{"OPENAI_BASE_URL={url}/v1"},
		Files:   []ConfigFile{{Paths: at("", ".qwen", "settings.json"), Settings: []Setting{mcpServers(mcpPlain)}}},
		URLNote: "start it with furl run -- qwen, or set the variable that furl serve --print-env qwen prints",
	},
	"cline": {Title: "Cline", Manual: true, Notes: `# Once, for an OpenAI-compatible provider (some versions name it openai-compatible):
#   cline auth -p openai -b {url}/v1 -k KEY -m MODEL
# In VS Code: provider OpenAI Compatible with the base URL {url}/v1,
# or provider Anthropic with the custom base URL {url}
`, Files: []ConfigFile{
		{Paths: file("CLINE_MCP_SETTINGS_PATH", ".cline/data/settings/cline_mcp_settings.json"), Settings: []Setting{mcpServers(mcpPlain)}},
		{Paths: vsCode("saoudrizwan.claude-dev/settings/cline_mcp_settings.json"), Optional: true, Settings: []Setting{mcpServers(mcpPlain)}},
	}, URLNote: "run what furl serve --print-env cline prints"},
	"roo": {
		Title: "Roo Code", Commands: []string{"roo"}, URLNote: "set the base URL in its settings in VS Code",
		Files: []ConfigFile{{Paths: vsCode("rooveterinaryinc.roo-cline/settings/mcp_settings.json"), Settings: []Setting{mcpServers(mcpPlain)}}},
	},
	"continue": {Title: "Continue", Commands: []string{"cn"}, Manual: true, Notes: `# In ~/.continue/config.yaml, or a file for cn --config:
#   models:
#     - {name: claude, provider: anthropic, model: MODEL, apiKey: KEY, apiBase: "{url}/v1/"}
#     - {name: gpt, provider: openai, model: MODEL, apiKey: KEY, apiBase: "{url}/v1/"}
`, Files: []ConfigFile{{
		Paths: at("CONTINUE_GLOBAL_DIR", ".continue", "config.yaml"), Each: continueModels,
		Settings: []Setting{
			{Part: PartMCP, Path: []string{"name"}, Value: `"Local Agent"`, Keep: true},
			{Part: PartMCP, Path: []string{"version"}, Value: `"1.0.0"`, Keep: true},
			set(PartMCP, mcpNamed, "mcpServers", "[name="+MCPName+"]"),
		},
	}}},
	"crush": {
		Title: "Crush", Env: []string{"ANTHROPIC_API_ENDPOINT={url}", "OPENAI_API_ENDPOINT={url}/v1"},
		Files:   []ConfigFile{{Paths: configHome("", "crush", "crush.json"), Settings: []Setting{set(PartMCP, mcpStdio, "mcp", MCPName)}}},
		URLNote: "start it with furl run -- crush, or set the variables that furl serve --print-env crush prints",
	},
	"aider": {Title: "Aider", Env: []string{"ANTHROPIC_API_BASE={url}", "OPENAI_API_BASE={url}/v1"}},
	"kilo": {
		Title: "Kilo Code", Commands: []string{"kilo", "kilocode"}, Notes: `# Or the same JSON in ~/.config/kilo/kilo.jsonc. In VS Code: the base URL in the provider's settings.
`, Env: []string{`KILO_CONFIG_CONTENT={"provider":{"anthropic":{"options":{"baseURL":"{url}/v1"}},"openai":{"options":{"baseURL":"{url}/v1"}}}}`},
		Files: []ConfigFile{{Paths: configHome("", "kilo", "kilo.jsonc", "kilo.json"), Settings: providers}},
	},
	"kimi-code": {Title: "Kimi Code", Commands: []string{"kimi", "kimi-code"}, Manual: true, Notes: `# In ~/.kimi-code/config.toml, for the provider that you use (type anthropic: the URL without /v1):
#   [providers.NAME]
#   base_url = "{url}/v1"
# For a model from the environment, in addition to KIMI_MODEL_NAME and KIMI_MODEL_API_KEY:
#   export KIMI_MODEL_BASE_URL={url}/v1
# The gateway needs the provider's own address: furl serve --openai https://api.moonshot.ai/v1
`, Files: []ConfigFile{
		{Paths: at("KIMI_CODE_HOME", ".kimi-code", "config.toml"), Each: kimiProviders},
		{Paths: at("KIMI_CODE_HOME", ".kimi-code", "mcp.json"), Settings: []Setting{mcpServers(mcpPlain)}},
	}},
	"nanocoder": {Title: "nanocoder", Manual: true, Notes: `# In agents.config.json, for the providers that you use:
#   {"nanocoder": {"providers": [
#     {"name": "OpenAI", "baseUrl": "{url}/v1", "apiKey": "$OPENAI_API_KEY", "models": ["MODEL"]},
#     {"name": "Anthropic", "sdkProvider": "anthropic", "baseUrl": "{url}/v1", "apiKey": "$ANTHROPIC_API_KEY", "models": ["MODEL"]}]}}
# Or that array of providers as JSON in NANOCODER_PROVIDERS, which has precedence.
`, Files: []ConfigFile{
		{Paths: nanocoder("agents.config.json"), Each: nanocoderProviders},
		{Paths: nanocoder(".mcp.json"), Settings: []Setting{mcpServers(mcpPlain)}},
	}},
	"openclaw": {Title: "OpenClaw", Manual: true, Notes: `# Once, for the providers that you use:
#   openclaw config set models.providers.anthropic '{"baseUrl":"{url}","models":[]}' --strict-json --merge
#   openclaw config set models.providers.openai '{"baseUrl":"{url}/v1","models":[]}' --strict-json --merge
`, Files: []ConfigFile{{Paths: file("OPENCLAW_CONFIG_PATH", ".openclaw/openclaw.json"), Settings: []Setting{
		set(PartURL, `"{url}"`, "models", "providers", "anthropic", "baseUrl"),
		{Part: PartURL, Path: []string{"models", "providers", "anthropic", "models"}, Value: `[]`, Keep: true},
		set(PartURL, `"{url}/v1"`, "models", "providers", "openai", "baseUrl"),
		{Part: PartURL, Path: []string{"models", "providers", "openai", "models"}, Value: `[]`, Keep: true},
		set(PartMCP, mcpPlain, "mcp", "servers", MCPName),
	}}}},
	"python": {Title: "the SDKs for Python", SDK: true, Env: []string{"ANTHROPIC_BASE_URL={url}", "OPENAI_BASE_URL={url}/v1", "GOOGLE_GEMINI_BASE_URL={url}"}},
	"node":   {Title: "the SDKs for JavaScript", SDK: true, Env: []string{"ANTHROPIC_BASE_URL={url}", "OPENAI_BASE_URL={url}/v1", "GOOGLE_GEMINI_BASE_URL={url}"}},
}

// wrapStatusLine shows furl's status line after the user's own.
func wrapStatusLine(old any, status string) (Setting, bool) {
	line, _ := old.(map[string]any)
	own, _ := line["command"].(string)
	if own == "" || strings.Contains(own, "status --format claude") {
		return Setting{}, false
	}
	return Setting{Part: PartStatus, Path: []string{"statusLine", "command"}, Value: quoteJSON(status + " --after " + ShellQuote(own))}, true
}

// codexProvider sets the address of the provider that is chosen instead of the built-in
// one. A provider without an address, or furl's of earlier setups, is not kept.
func codexProvider(doc any) []Setting {
	root, _ := doc.(map[string]any)
	chosen, _ := root["model_provider"].(string)
	if chosen == "" || chosen == "openai" {
		return nil
	}
	list, _ := root["model_providers"].(map[string]any)
	provider, _ := list[chosen].(map[string]any)
	if base, _ := provider["base_url"].(string); base == "" || chosen == MCPName {
		return []Setting{set(PartURL, `"openai"`, "model_provider")}
	}
	return []Setting{set(PartURL, `"{url}/v1"`, "model_providers", chosen, "base_url")}
}

// oneOf is the base URL of one of several providers.
func oneOf(api, value string, path ...string) Setting {
	s := set(PartURL, value, path...)
	s.API, s.Several = api, true
	return s
}

// continueModels sets the address of each model of Anthropic and OpenAI.
func continueModels(doc any) (settings []Setting) {
	root, _ := doc.(map[string]any)
	models, _ := root["models"].([]any)
	for _, m := range models {
		model, _ := m.(map[string]any)
		name, _ := model["name"].(string)
		provider, _ := model["provider"].(string)
		if name != "" && (provider == "anthropic" || provider == "openai") {
			settings = append(settings, oneOf(provider, `"{url}/v1/"`, "models", "[name="+name+"]", "apiBase"))
		}
	}
	return settings
}

// nanocoderProviders sets the address of the providers of Anthropic and OpenAI.
func nanocoderProviders(doc any) (settings []Setting) {
	root, _ := doc.(map[string]any)
	root, _ = root["nanocoder"].(map[string]any)
	list, _ := root["providers"].([]any)
	for _, p := range list {
		provider, _ := p.(map[string]any)
		name, _ := provider["name"].(string)
		api := "openai"
		if provider["sdkProvider"] == "anthropic" {
			api = "anthropic"
		}
		if base, _ := provider["baseUrl"].(string); name != "" && (base != "" || api == "anthropic") {
			settings = append(settings, oneOf(api, `"{url}/v1"`, "nanocoder", "providers", "[name="+name+"]", "baseUrl"))
		}
	}
	return settings
}

// kimiProviders sets the address of every provider.
func kimiProviders(doc any) (settings []Setting) {
	root, _ := doc.(map[string]any)
	list, _ := root["providers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		provider, _ := list[name].(map[string]any)
		switch provider["type"] {
		case "anthropic":
			settings = append(settings, oneOf("anthropic", `"{url}"`, "providers", name, "base_url"))
		case "kimi":
			s := oneOf("openai", `"{url}/v1"`, "providers", name, "base_url")
			s.Now = "https://api.moonshot.ai/v1"
			settings = append(settings, s)
		case "openai", "openai_legacy", "openai_responses":
			settings = append(settings, oneOf("openai", `"{url}/v1"`, "providers", name, "base_url"))
		}
	}
	return settings
}

// inHome returns a path in the user's home folder, "" if that is unknown.
func inHome(path string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, filepath.FromSlash(path))
}

// at is a file in a folder of the home, or in the folder that a variable names.
func at(variable, folder, name string) func() []string {
	return func() []string {
		dir := cmp.Or(os.Getenv(variable), inHome(folder))
		return []string{filepath.Join(dir, filepath.FromSlash(name))}
	}
}

// file is a file in the home, or the file that a variable names.
func file(variable, name string) func() []string {
	return func() []string { return []string{cmp.Or(os.Getenv(variable), inHome(name))} }
}

// configHome is a file in a folder of XDG_CONFIG_HOME, or the file that a variable
// names.
func configHome(variable, folder string, names ...string) func() []string {
	return func() (paths []string) {
		if name := os.Getenv(variable); name != "" {
			return []string{name}
		}
		dir := os.Getenv("XDG_CONFIG_HOME")
		if !filepath.IsAbs(dir) {
			dir = inHome(".config")
		}
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, folder, name))
		}
		return paths
	}
}

// vsCode is a file of an extension of VS Code.
func vsCode(name string) func() []string {
	return func() []string {
		dir := inHome(".config/Code")
		switch runtime.GOOS {
		case "darwin":
			dir = inHome("Library/Application Support/Code")
		case "windows":
			dir = filepath.Join(os.Getenv("APPDATA"), "Code")
		}
		return []string{filepath.Join(dir, "User", "globalStorage", filepath.FromSlash(name))}
	}
}

// nanocoder is a file in nanocoder's configuration folder.
func nanocoder(name string) func() []string {
	return func() []string {
		dir := os.Getenv("NANOCODER_CONFIG_DIR")
		if dir == "" {
			switch runtime.GOOS {
			case "darwin":
				dir = inHome("Library/Preferences/nanocoder")
			case "windows":
				dir = filepath.Join(os.Getenv("APPDATA"), "nanocoder")
			default:
				dir = filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), inHome(".config")), "nanocoder")
			}
		}
		return []string{filepath.Join(dir, name)}
	}
}
