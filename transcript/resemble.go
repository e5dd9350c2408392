package transcript

import (
	"fmt"
	"slices"
	"strings"
)

// shape is what an object of a known format has. Detection decides by other,
// stricter rules; shapes only explain why a file was not recognised.
type shape struct {
	format string
	where  string   // of the objects: a record, or an element of a list
	list   string   // the field with the list; "" if the object itself is meant
	fields []string // that it has
}

// shapes are those of the formats in JSON, and of different versions.
var shapes = []shape{
	{furlOwn.name, "the first line", "", []string{"format", "version", "records", "meta"}},
	{claudeCode.name, "a line", "", []string{"type", "message", "uuid", "parentUuid", "sessionId", "timestamp"}},
	{"codex", "a line", "", []string{"type", "payload", "timestamp"}},
	{"codex", "the object", "", []string{"session", "items"}},
	{"opencode", "the object", "", []string{"info", "messages"}},
	{"pi", "a line", "", []string{"type", "id", "parentId", "timestamp", "message"}},
	{"gemini-cli", "the object", "", []string{"sessionId", "projectHash", "startTime", "lastUpdated", "messages"}},
	{"copilot-cli", "a line", "", []string{"type", "data", "id", "timestamp", "parentId"}},
	{"kimi-code", "a line", "", []string{"type", "agentId", "time", "event"}},
	{"cline", "the object", "", []string{"version", "sessionId", "agent", "origin", "messages"}},
	{"continue", "the object", "", []string{"sessionId", "title", "workspaceDirectory", "history"}},
	{"droid", "a line", "", []string{"type", "id", "parentId", "timestamp", "message"}},
	{"nanocoder", "the object", "", []string{"id", "createdAt", "lastAccessedAt", "workingDirectory", "messages"}},
	{"code-assistant", "the object", "", []string{"id", "created_at", "updated_at", "tool_executions", "message_nodes"}},
	{"swe-agent", "the object", "", []string{"environment", "trajectory", "history", "info"}},
	{"mini-swe-agent", "the object", "", []string{"info", "messages", "trajectory_format"}},
	{"tau2-bench", "the object", "", []string{"timestamp", "info", "tasks", "simulations"}},
	{"tau2-bench", "a run", "", []string{"id", "task_id", "messages", "termination_reason"}},
	{"tau2-bench", "an element of simulations", "simulations", []string{"id", "task_id", "messages", "termination_reason"}},
	{"openai-chat", "a run of tau-bench", "", []string{"task_id", "trial", "reward", "traj"}},
	{"openhands", "an event", "", []string{"id", "timestamp", "source", "action", "args"}},
	{"openhands", "an event", "", []string{"id", "timestamp", "source", "observation", "content"}},
	{"openhands", "an event", "", []string{"id", "timestamp", "source", "kind"}},
	{"openhands", "a run", "", []string{"instance_id", "metadata", "history"}},
	{"openhands", "an element of items", "items", []string{"id", "timestamp", "source", "kind"}},
	{"openhands", "an element of history", "history", []string{"id", "timestamp", "source", "action", "args"}},
	{"openhands", "an element of trajectory", "trajectory", []string{"id", "timestamp", "source", "action", "args"}},
	{"openai-chat", "a message", "", []string{"role", "content"}},
	{"openai-chat", "an element of messages", "messages", []string{"role", "content"}},
	{"openai-chat", "an element of traj", "traj", []string{"role", "content"}},
	{"openai-responses", "an element of input", "input", []string{"type", "role", "content"}},
	{roo.name, "a message", "", []string{"role", "content", "ts"}},
}

// resembling explains for at most this many shapes how a file differs.
const maxResembling = 2

// resembling describes the formats that a file in JSON resembles most: what
// its objects have of them, and what is missing.
func resembling(p *probe) []string {
	type match struct {
		shape
		has, lacks []string
	}
	var found []match
	for _, sh := range shapes {
		var best match
		for _, o := range p.objects {
			if sh.list != "" {
				o = firstIn(o[sh.list])
			}
			m := match{shape: sh}
			for _, f := range sh.fields {
				if o.has(f) {
					m.has = append(m.has, f)
				} else {
					m.lacks = append(m.lacks, f)
				}
			}
			if len(m.has) > len(best.has) {
				best = m
			}
		}
		if n := len(best.has); 2*n > len(sh.fields) || 2*n == len(sh.fields) && n > 1 {
			found = append(found, best)
		}
	}
	// The share of the fields decides, then their number.
	slices.SortStableFunc(found, func(a, b match) int {
		if d := len(b.has)*len(a.fields) - len(a.has)*len(b.fields); d != 0 {
			return d
		}
		return len(b.fields) - len(a.fields)
	})
	var out []string
	seen := make(map[string]bool)
	for _, m := range found {
		if seen[m.format] || len(out) == maxResembling {
			continue
		}
		seen[m.format] = true
		differs := "whose values differ from what this format has"
		if len(m.lacks) > 0 {
			differs = "but not " + strings.Join(m.lacks, ", ")
		}
		out = append(out, fmt.Sprintf("%s (%s has %s, %s)", m.format, m.where, strings.Join(m.has, ", "), differs))
	}
	return out
}

// resemblingText is resembling for text in Markdown.
func resemblingText(text string) []string {
	switch {
	case strings.Contains(text, "_**User") || strings.Contains(text, "_**Assistant**_"):
		return []string{fmt.Sprintf("specstory (a line starts with _**, but the file does not start with %q)", specHead)}
	case strings.HasPrefix(text, "#### ") || strings.Contains(text, "\n#### "):
		return []string{fmt.Sprintf("aider (a line starts with ####, but none with %q)", strings.TrimSpace(aiderHeading))}
	}
	return nil
}
