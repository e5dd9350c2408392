package cli

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// agentSetup says how an agent is connected to the gateway at {url}.
type agentSetup struct {
	title string
	// commands are the names of its programs, if they differ from its key in
	// agentSetups.
	commands []string
	// notes are comments for a shell, with lines for configuration files.
	notes string
	// env are variables with which it sends its requests to the gateway. furl run
	// sets them.
	env []string
	// manual means that furl run cannot connect it: it reads no address from the
	// environment, or only together with other settings.
	manual bool
}

// agentSetups has the agents by their names in --print-env.
var agentSetups = map[string]agentSetup{
	"claude": {title: "Claude Code", env: []string{"ANTHROPIC_BASE_URL={url}"}},
	"codex": {title: "Codex", notes: `# In ~/.codex/config.toml:
#   model_provider = "furl"
#   [model_providers.furl]
#   name = "furl"
#   base_url = "{url}/v1"
#   env_key = "OPENAI_API_KEY"
#   wire_api = "responses"
`, env: []string{"OPENAI_BASE_URL={url}/v1"}},
	"opencode": {title: "opencode", notes: `# In opencode.json:
#   {"provider": {"anthropic": {"options": {"baseURL": "{url}/v1"}},
#                 "openai": {"options": {"baseURL": "{url}/v1"}}}}
`, env: []string{"ANTHROPIC_BASE_URL={url}/v1", "OPENAI_BASE_URL={url}/v1"}},
	"pi": {title: "pi", manual: true, notes: `# In ~/.pi/agent/models.json:
#   {"providers": {"anthropic": {"baseUrl": "{url}"}, "openai": {"baseUrl": "{url}/v1"}}}
`},
	"copilot": {title: "Copilot CLI", manual: true, notes: "# For Anthropic: COPILOT_PROVIDER_TYPE=anthropic and the URL without /v1.\n",
		env: []string{"COPILOT_PROVIDER_BASE_URL={url}/v1"}},
	"qwen": {title: "Qwen Code", env: []string{"OPENAI_BASE_URL={url}/v1"}},
	"cline": {title: "Cline", manual: true, notes: `# Once, for an OpenAI-compatible provider (some versions name it openai-compatible):
#   cline auth -p openai -b {url}/v1 -k KEY -m MODEL
# In VS Code: provider OpenAI Compatible with the base URL {url}/v1,
# or provider Anthropic with the custom base URL {url}
`},
	"continue": {title: "Continue", commands: []string{"cn"}, manual: true, notes: `# In ~/.continue/config.yaml, or a file for cn --config:
#   models:
#     - {name: claude, provider: anthropic, model: MODEL, apiKey: KEY, apiBase: "{url}/v1/"}
#     - {name: gpt, provider: openai, model: MODEL, apiKey: KEY, apiBase: "{url}/v1/"}
`},
	"crush": {title: "Crush", env: []string{"ANTHROPIC_API_ENDPOINT={url}", "OPENAI_API_ENDPOINT={url}/v1"}},
	"aider": {title: "Aider", env: []string{"ANTHROPIC_API_BASE={url}", "OPENAI_API_BASE={url}/v1"}},
	"kilo": {title: "Kilo Code", commands: []string{"kilo", "kilocode"}, notes: `# Or the same JSON in ~/.config/kilo/kilo.jsonc. In VS Code: the base URL in the provider's settings.
`, env: []string{`KILO_CONFIG_CONTENT={"provider":{"anthropic":{"options":{"baseURL":"{url}/v1"}},"openai":{"options":{"baseURL":"{url}/v1"}}}}`}},
	"kimi-code": {title: "Kimi Code", commands: []string{"kimi", "kimi-code"}, manual: true, notes: `# In ~/.kimi-code/config.toml, for the provider that you use (type anthropic: the URL without /v1):
#   [providers.NAME]
#   base_url = "{url}/v1"
# For a model from the environment, in addition to KIMI_MODEL_NAME and KIMI_MODEL_API_KEY:
#   export KIMI_MODEL_BASE_URL={url}/v1
# The gateway needs the provider's own address: furl serve --openai https://api.moonshot.ai/v1
`},
	"nanocoder": {title: "nanocoder", manual: true, notes: `# In agents.config.json, for the providers that you use:
#   {"nanocoder": {"providers": [
#     {"name": "OpenAI", "baseUrl": "{url}/v1", "apiKey": "$OPENAI_API_KEY", "models": ["MODEL"]},
#     {"name": "Anthropic", "sdkProvider": "anthropic", "baseUrl": "{url}/v1", "apiKey": "$ANTHROPIC_API_KEY", "models": ["MODEL"]}]}}
# Or that array of providers as JSON in NANOCODER_PROVIDERS, which has precedence.
`},
	"openclaw": {title: "openclaw", manual: true, notes: `# Once, for the providers that you use:
#   openclaw config set models.providers.anthropic '{"baseUrl":"{url}","models":[]}' --strict-json --merge
#   openclaw config set models.providers.openai '{"baseUrl":"{url}/v1","models":[]}' --strict-json --merge
`},
	"python": {title: "the SDKs for Python", env: []string{"ANTHROPIC_BASE_URL={url}", "OPENAI_BASE_URL={url}/v1"}},
	"node":   {title: "the SDKs for JavaScript", env: []string{"ANTHROPIC_BASE_URL={url}", "OPENAI_BASE_URL={url}/v1"}},
}

func agentNames() []string { return slices.Sorted(maps.Keys(agentSetups)) }

// text is what --print-env prints: lines that a shell can evaluate.
func (a agentSetup) text(url string) string {
	var text strings.Builder
	text.WriteString(a.notes)
	for _, variable := range a.env {
		name, value, _ := strings.Cut(variable, "=")
		text.WriteString("export " + name + "=" + quoteArg(strings.ReplaceAll(value, "{url}", url)) + "\n")
	}
	return strings.ReplaceAll(text.String(), "{url}", url)
}

// agentOf finds the agent that a command starts, false if it is unknown.
func agentOf(args []string) (name string, setup agentSetup, ok bool) {
	command := commandName(args[0])
	for _, name := range agentNames() {
		setup := agentSetups[name]
		if slices.Contains(setup.commands, command) || len(setup.commands) == 0 && name == command && name != "python" && name != "node" {
			return name, setup, true
		}
	}
	return "", agentSetup{}, false
}

// agentEnv returns the variables with which furl run starts an agent. A variable with
// a configuration that the user has set stays.
func agentEnv(args []string, url string) []string {
	env := []string{"ANTHROPIC_BASE_URL=" + url, "OPENAI_BASE_URL=" + url + "/v1", "FURL_URL=" + url}
	_, setup, ok := agentOf(args)
	if !ok || setup.manual {
		return env
	}
	for _, variable := range setup.env {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(value, "{\"") && os.Getenv(name) != "" || strings.HasSuffix(name, "_BASE_URL") {
			continue
		}
		env = append(env, name+"="+strings.ReplaceAll(value, "{url}", url))
	}
	return env
}

// errGemini is returned for Gemini CLI, whose requests would bypass the gateway.
var errGemini = errors.New("furl serve does not support Gemini's format yet: start Gemini CLI without furl; furl import and furl replay read its sessions")

// isGemini reports whether a command starts Gemini CLI, directly or with npx and the
// like.
func isGemini(args []string) bool {
	switch commandName(args[0]) {
	case "gemini":
		return true
	case "npx", "bunx", "pnpx", "pnpm", "yarn", "npm", "bun":
		return slices.ContainsFunc(args[1:], func(arg string) bool { return strings.HasPrefix(arg, "@google/gemini-cli") })
	}
	return false
}

// commandName is the name of a program without its folder and Windows extension.
func commandName(path string) string {
	name := filepath.Base(path)
	for _, ext := range []string{".exe", ".cmd"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// agentArgs returns the arguments that start an agent. Codex needs flags, because it
// reads its provider from its configuration file.
func agentArgs(args []string, url string) []string {
	if commandName(args[0]) != "codex" {
		return args
	}
	own := []string{
		args[0], "-c", `model_provider="furl"`, "-c", `model_providers.furl.name="furl"`,
		"-c", `model_providers.furl.base_url="` + url + `/v1"`, "-c", `model_providers.furl.wire_api="responses"`,
		"-c", `model_providers.furl.env_key="OPENAI_API_KEY"`,
	}
	return append(own, args[1:]...)
}
