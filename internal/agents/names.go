package agents

import (
	"iter"
	"strings"
)

// names are the agents by the product name in their User-Agent or Originator
// header, in lower case. Package transcript uses the same names.
var names = map[string]string{
	"aider":                  "Aider",
	"claude-cli":             "Claude Code",
	"claude-code":            "Claude Code",
	"cline":                  "Cline",
	"codex":                  "Codex",
	"continue":               "Continue",
	"continue-cli":           "Continue",
	"copilot":                "Copilot CLI",
	"copilot-cli":            "Copilot CLI",
	"crush":                  "Crush",
	"charm-crush":            "Crush",
	"geminicli":              "Gemini CLI",
	"gemini-cli":             "Gemini CLI",
	"goose":                  "goose",
	"kilo":                   "Kilo Code",
	"kilo-code":              "Kilo Code",
	"kilocode":               "Kilo Code",
	"kilo code":              "Kilo Code",
	"opencode-kilo-provider": "Kilo Code",
	"kimicli":                "Kimi Code",
	"kimi-cli":               "Kimi Code",
	"kimi-code":              "Kimi Code",
	"kimi-code-cli":          "Kimi Code",
	"mini-swe-agent":         "mini-swe-agent",
	"nanocoder":              "nanocoder",
	"openclaw":               "OpenClaw",
	"opencode":               "opencode",
	"openhands":              "OpenHands",
	"pi":                     "pi",
	"pi-coding-agent":        "pi",
	"qwencode":               "Qwen Code",
	"qwen-code":              "Qwen Code",
	"roo code":               "Roo Code",
	"roo-code":               "Roo Code",
	"roocode":                "Roo Code",
	"swe-agent":              "SWE-agent",
}

// Name returns the name of the agent that a client calls itself by, such as
// "Claude Code" for "claude-cli". It returns other names unchanged.
func Name(client string) string {
	if name, ok := known(client); ok {
		return name
	}
	return client
}

func known(client string) (string, bool) {
	lower := strings.ToLower(client)
	if name, ok := names[lower]; ok {
		return name, true
	}
	for _, from := range []string{"codex_", "codex-", "geminicli-"} { // codex_exec, codex-tui, GeminiCLI-tui, …
		if strings.HasPrefix(lower, from) {
			return names[from[:len(from)-1]], true
		}
	}
	return "", false
}

// signature is a phrase at the start of an agent's instructions.
type signature struct{ phrase, agent string }

// signatures tell agents that send the User-Agent of an SDK or of the agent that
// they were derived from. The first that matches counts: OpenClaw also sends the
// phrase of Claude Code, and Kilo Code is derived from opencode.
var signatures = []signature{
	{"running inside OpenClaw", "OpenClaw"},
	{"You are Kilo,", "Kilo Code"},
	{"You are Kilo Code", "Kilo Code"},
	{"You are Roo,", "Roo Code"},
	{"You are Cline,", "Cline"},
	{"You are Nanocoder", "nanocoder"},
	{"You are an agent in the Continue CLI", "Continue"},
	{"<important_rules>\n  You are in agent mode", "Continue"},
	{"<important_rules>\n  You are in chat mode", "Continue"},
	{"<important_rules>\n  You are in plan mode", "Continue"},
	{"You are Kimi Code", "Kimi Code"},
	{"You are Qwen Code", "Qwen Code"},
	{"operating inside pi, a coding agent harness", "pi"},
	{"You are Claude Code", "Claude Code"},
	{"You are opencode", "opencode"},
}

// Limits of what is read of the instructions of a request: texts, and bytes at the
// start of each.
const (
	signatureTexts = 6
	signatureBytes = 1024
)

// Identify returns the name of the agent that sent a request, by its headers and,
// if they name only an SDK, by the start of its instructions. Without a known agent
// it returns the first product in User-Agent. header returns the value of a header;
// instructions yields the system texts of the request.
func Identify(header func(name string) string, instructions iter.Seq[string]) string {
	for _, name := range []string{"X-KiloCode-Version", "X-KiloCode-TaskId", "X-KiloCode-EditorName"} {
		if header(name) != "" {
			return "Kilo Code"
		}
	}
	for _, name := range []string{"X-Title", "Originator"} {
		if agent, ok := known(header(name)); ok {
			return agent
		}
	}
	if header("X-Interaction-Type") != "" { // Copilot CLI with a provider of one's own
		return "Copilot CLI"
	}
	client := product(header("User-Agent"))
	name, ok := known(client)
	if strings.HasPrefix(header("User-Agent"), "claude-cli/0.") && header("X-Claude-Code-Session-Id") == "" {
		return "Qwen Code" // Claude Code has been at 1.0 or newer since May 2025, and sends its session
	}
	if ok && name != "opencode" && name != "pi" {
		return name
	}
	n := 0
	for text := range instructions {
		if n++; n > signatureTexts {
			break
		}
		text = text[:min(len(text), signatureBytes)]
		for _, s := range signatures {
			if strings.Contains(text, s.phrase) {
				return s.agent
			}
		}
	}
	if ok {
		return name
	}
	return client
}

// product returns the first product name in a User-Agent.
func product(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	name, _, _ = strings.Cut(name, " ")
	if len(name) > 64 {
		return ""
	}
	return name
}
