package agents

import "testing"

// The names are those that the agents send (docs/use/replay.md has the releases).
func TestToolServers(t *testing.T) {
	for _, c := range []struct{ agent, tool, server, own string }{
		{"Claude Code", "mcp__notes__draw_chart", "notes", "draw_chart"},
		{"Claude Code", "mcp__a__b__c", "a", "b__c"},
		{"Claude Code", "TodoWrite", "", ""},
		{"Claude Code", "mcp__broken", "", ""},
		{"Codex", "mcp__notes__draw_chart", "notes", "draw_chart"},
		{"Codex", "exec_command", "", ""},
		{"Gemini CLI", "mcp_notes_draw_chart", "notes", "draw_chart"},
		{"Gemini CLI", "google_web_search", "", ""},
		{"Copilot CLI", "notes-draw_chart", "notes", "draw_chart"},
		{"Copilot CLI", "session_store_sql", "", ""},
		{"opencode", "notes_draw_chart", "notes", "draw_chart"},
		{"opencode", "apply_patch", "", ""},
		{"opencode", "read_mcp_resource", "", ""},
		{"opencode", "bash", "", ""},
		{"", "notes_draw_chart", "", ""},
	} {
		if got := ToolServers(c.agent, []string{c.tool})[0]; got != (ServerTool{c.server, c.own}) {
			t.Errorf("%s: %s is %q of %q, want %q of %q", c.agent, c.tool, got.Tool, got.Server, c.own, c.server)
		}
	}
}

func TestWithoutTools(t *testing.T) {
	unused := func(prefix, separator string) []UnusedTools {
		return []UnusedTools{
			{Server: "git", Names: []string{prefix + "git" + separator + "log"}, Own: []string{"log"}, All: true},
			{Server: "notes", Names: []string{prefix + "notes" + separator + "a", prefix + "notes" + separator + "b c"}, Own: []string{"a", "b c"}},
		}
	}
	for _, c := range []struct {
		agent  string
		unused []UnusedTools
		where  string
		want   string
	}{
		{"Claude Code", unused("mcp__", "__"), "~/.claude/settings.json", `{"permissions":{"deny":["mcp__git", "mcp__notes__a", "mcp__notes__b c"]}}`},
		{"Codex", unused("mcp__", "__"), "~/.codex/config.toml", `[mcp_servers."git"] enabled = false; [mcp_servers."notes"] disabled_tools = ["a", "b c"]`},
		{"opencode", unused("", "_"), "~/.config/opencode/opencode.json", `{"permission":{"git_*":"deny", "notes_a":"deny", "notes_b c":"deny"}}`},
		{"Gemini CLI", unused("mcp_", "_"), "~/.gemini/settings.json", `{"mcp":{"excluded":["git"]},"mcpServers":{"notes":{"excludeTools":["a", "b c"]}}}`},
		{"Copilot CLI", unused("", "-"), "the command line", `--excluded-tools git-log notes-a 'notes-b c'`},
		{"pi", unused("", "_"), "", ""},
	} {
		if where, got := WithoutTools(c.agent, c.unused); where != c.where || got != c.want {
			t.Errorf("%s: %s in %s, want %s in %s", c.agent, got, where, c.want, c.where)
		}
	}
}
