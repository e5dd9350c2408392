package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// The presets of other agents do what these agents, or providers, do to a context:
// with their triggers, keeps and texts. docs/use/agents.md has the source and the
// date of each, and where furl deviates. They are for comparing policies: Names does
// not list them, Agents does.

// agents lists these presets.
func agents() []entry {
	return []entry{
		{"clear-tool-uses", ClearToolUses{}, true},
		{"clear-thinking", ClearThinking{}, true},
		{"claude-code", ClaudeCode{}, true},
		{"codex", Codex{}, true},
		{"pi", Pi{}, true},
		{"cline", Cline{}, true},
		{"opencode-prune", OpencodePrune{}, true},
		{"gemini-masking", GeminiMasking{}, true},
		{openHandsSummary, OpenHandsSummary{}, true},
		{"openhands-masking", OpenHandsMasking{}, true},
		{openHandsRecent, OpenHandsForgetting{}, true},
		{openHandsAmortized, OpenHandsForgetting{}, true},
		{openHandsWindow, openHandsHalf{}, true},
	}
}

// when is a stage that runs at some requests only, and when a reduction is forced.
type when struct {
	Stage
	due func(v *furl.View, b furl.Budget) bool
}

func (w when) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if !b.Force && !w.due(v, b) {
		return nil, Nothing
	}
	return w.Stage.Reduce(ctx, v, b)
}

// afterUser reports whether the view ends with a message of the user: the first
// request for that message.
func afterUser(v *furl.View, _ furl.Budget) bool {
	for i := len(v.Units) - 1; i >= 0; i-- {
		if u := &v.Units[i]; u.Kind != furl.UnitSystem {
			return u.Kind == furl.UnitUser
		}
	}
	return false
}

// overflowing reports whether the provider would refuse the view.
func overflowing(v *furl.View, b furl.Budget) bool { return over(v, b) != "" }

// atSize is a trigger at the size that limit returns for a budget; 0: never.
func atSize(limit func(b *furl.Budget) int) func(*furl.View, furl.Budget) bool {
	return func(_ *furl.View, b furl.Budget) bool {
		n := limit(&b)
		return n > 0 && b.Size >= n
	}
}

// summarizingAt makes the policy of an agent that shows a summary from a size on.
// Without a Summarizer, an extract of the same messages is shown.
func summarizingAt(name string, in *building, compact *Compact, limit func(b *furl.Budget) int) furl.Policy {
	compact.Summarizer, compact.Memory = in.Summarizer, in.WorkingMemory
	p := &Pipeline{
		Label:   name,
		acts:    limit,
		Trigger: atSize(limit),
		Stages:  []Stage{&Extract{Pick: compact.Pick, MaxTokens: extractTokens}},
	}
	return p.withCompact(compact, in)
}

// extractTokens is the longest extract that replaces a summary, in counted tokens.
const extractTokens = 2000

// quarter is the size of a text as several agents estimate it: a quarter of its
// characters, rounded up.
func quarter(text string) int { return (utf8.RuneCountInString(text) + 3) / 4 }

// The names that agents have for the same kinds of tools, in lower case.
var (
	shellTools = []string{"bash", "shell", "run_shell_command", "exec_command", "execute_command", "execute_bash", "local_shell", "terminal"}
	readTools  = []string{"read", "read_file", "readfile", "view", "open_file", "view_file"}
	skillTools = []string{"skill", "activate_skill"}
	askTools   = []string{"ask_user", "askuserquestion", "question"}
	planTools  = []string{"enter_plan_mode", "enterplanmode", "exit_plan_mode", "exitplanmode"}
	noteTools  = []string{"save_memory"}
)

// isOneOf reports whether a tool has one of the names.
func isOneOf(tool string, names ...string) bool {
	return tool != "" && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, tool) })
}

// readPath is the file that a call reads, "" if it is no call of a tool that reads
// files.
func readPath(call *furl.Block) string {
	if call == nil {
		return ""
	}
	args, _ := arguments(call.Args)
	if isOneOf(call.Name, readTools...) || plain(args["command"]) == "view" {
		return firstOf(args, pathKeys)
	}
	return ""
}

// emptyArgs are arguments without content, of the same shape.
func emptyArgs(args json.RawMessage) string {
	if strings.HasPrefix(strings.TrimSpace(string(args)), "{") {
		return "{}"
	}
	return `"` + textCleared + `"`
}

// messagesIn counts the messages of a unit as Anthropic's format has them: all results
// of a step are one message, with the user's words after them.
func messagesIn(u *furl.Unit) int {
	switch {
	case u.Kind == furl.UnitMark:
		return 0
	case u.Kind != furl.UnitStep:
		return min(1, u.Messages)
	case results(u) > 0:
		return 2
	}
	return 1
}
