package agents

import (
	"slices"
	"strings"
)

// ServerTool is a tool of an MCP server: its own name there.
type ServerTool struct{ Server, Tool string }

// ToolServers returns the MCP servers of tools by the names that an agent gives them; tools of
// the agent itself have none. Claude Code, Codex and Qwen Code name a tool mcp__SERVER__TOOL, Gemini
// CLI mcp_SERVER_TOOL, Copilot CLI SERVER-TOOL, opencode and Kilo Code SERVER_TOOL. In the last
// two forms a server whose name has the separator is named by its first word.
func ToolServers(agent string, tools []string) []ServerTool {
	out := make([]ServerTool, len(tools))
	for i, tool := range tools {
		rest, separator := "", ""
		switch {
		case strings.HasPrefix(tool, "mcp__"):
			rest, separator = tool[len("mcp__"):], "__"
		case agent == "Gemini CLI" && strings.HasPrefix(tool, "mcp_"):
			rest, separator = tool[len("mcp_"):], "_"
		case agent == "Copilot CLI":
			rest, separator = tool, "-"
		case (agent == "opencode" || agent == "Kilo Code") && !slices.Contains(opencodeTools, tool):
			rest, separator = tool, "_"
		}
		if server, own, ok := strings.Cut(rest, separator); ok && separator != "" {
			out[i] = ServerTool{server, own}
		}
	}
	return out
}

// opencodeTools are tools of opencode and Kilo Code whose names look like those of a server.
var opencodeTools = []string{"apply_patch", "plan_enter", "plan_exit", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}

// UnusedTools are tools of an MCP server that are not needed.
type UnusedTools struct {
	Server string
	// Names are the tools as the model sees them, Own their names at the server. All says that
	// these are all tools of the server.
	Names, Own []string
	All        bool
}

// WithoutTools returns the setting with which an agent does not send the definitions of tools of
// MCP servers: where it belongs, and its text; "" for agents of which none is known. The settings
// were tried with the releases that docs/use/replay.md names.
func WithoutTools(agent string, unused []UnusedTools) (where, setting string) {
	switch agent {
	case "Claude Code":
		var deny []string
		for _, u := range unused {
			if u.All {
				deny = append(deny, "mcp__"+u.Server)
			} else {
				deny = append(deny, u.Names...)
			}
		}
		return "~/.claude/settings.json", asJSON(map[string]any{"permissions": map[string]any{"deny": deny}})
	case "Codex":
		var lines []string
		for _, u := range unused {
			if u.All {
				lines = append(lines, "[mcp_servers."+asJSON(u.Server)+"] enabled = false")
			} else {
				lines = append(lines, "[mcp_servers."+asJSON(u.Server)+"] disabled_tools = "+asJSON(u.Own))
			}
		}
		return "~/.codex/config.toml", strings.Join(lines, "; ")
	case "opencode":
		deny := make(map[string]string)
		for _, u := range unused {
			if u.All {
				deny[u.Server+"_*"] = "deny"
				continue
			}
			for _, name := range u.Names {
				deny[name] = "deny"
			}
		}
		return "~/.config/opencode/opencode.json", asJSON(map[string]any{"permission": deny})
	case "Gemini CLI":
		var excluded []string
		servers := make(map[string]any)
		for _, u := range unused {
			if u.All {
				excluded = append(excluded, u.Server)
			} else {
				servers[u.Server] = map[string]any{"excludeTools": u.Own}
			}
		}
		settings := make(map[string]any)
		if len(excluded) > 0 {
			settings["mcp"] = map[string]any{"excluded": excluded}
		}
		if len(servers) > 0 {
			settings["mcpServers"] = servers
		}
		return "~/.gemini/settings.json", asJSON(settings)
	case "Copilot CLI":
		var names []string
		for _, u := range unused {
			for _, name := range u.Names {
				names = append(names, ShellQuote(name))
			}
		}
		return "the command line", "--excluded-tools " + strings.Join(names, " ")
	}
	return "", ""
}

// DefersTools says how an agent defers the definitions of MCP tools until the model searches for
// one; "" if it cannot.
func DefersTools(agent string) string {
	switch agent {
	case "Claude Code":
		return "Claude Code defers all tools of MCP servers unless ENABLE_TOOL_SEARCH is false or a server has alwaysLoad."
	case "Codex":
		return "Codex defers all tools of MCP servers with gpt-5.5 and newer models."
	}
	return ""
}

func asJSON(v any) string {
	return strings.ReplaceAll(string(mcpJSON(v)), `","`, `", "`)
}
