package cli

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// agentSetup has the settings of each agent for the gateway at {url}. A shell can
// evaluate them; lines for configuration files are comments.
var agentSetup = map[string]string{
	"claude": "export ANTHROPIC_BASE_URL={url}\n",
	"codex": `# In ~/.codex/config.toml:
#   model_provider = "furl"
#   [model_providers.furl]
#   name = "furl"
#   base_url = "{url}/v1"
#   env_key = "OPENAI_API_KEY"
#   wire_api = "responses"
export OPENAI_BASE_URL={url}/v1
`,
	"opencode": `# In opencode.json:
#   {"provider": {"anthropic": {"options": {"baseURL": "{url}/v1"}},
#                 "openai": {"options": {"baseURL": "{url}/v1"}}}}
export ANTHROPIC_BASE_URL={url}/v1
export OPENAI_BASE_URL={url}/v1
`,
	"pi": `# In ~/.pi/agent/models.json:
#   {"providers": {"anthropic": {"baseUrl": "{url}"}, "openai": {"baseUrl": "{url}/v1"}}}
`,
	"copilot": `# For Anthropic: COPILOT_PROVIDER_TYPE=anthropic and the URL without /v1.
export COPILOT_PROVIDER_BASE_URL={url}/v1
`,
	"qwen":   "export OPENAI_BASE_URL={url}/v1\n",
	"cline":  "# cline auth -p openai-compatible -b {url}/v1 -k KEY -m MODEL\n",
	"crush":  "export ANTHROPIC_API_ENDPOINT={url}\nexport OPENAI_API_ENDPOINT={url}/v1\n",
	"aider":  "export ANTHROPIC_API_BASE={url}\nexport OPENAI_API_BASE={url}/v1\n",
	"python": "export ANTHROPIC_BASE_URL={url}\nexport OPENAI_BASE_URL={url}/v1\n",
	"node":   "export ANTHROPIC_BASE_URL={url}\nexport OPENAI_BASE_URL={url}/v1\n",
}

func agentNames() []string { return slices.Sorted(maps.Keys(agentSetup)) }

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
