// Package agents has presets that do what other agents, or providers, do to a
// context: with their triggers, keeps and texts. docs/use/agents.md has the source and
// the date of each, and where furl deviates. They are for comparing policies: a Set
// makes them by name, but Names does not list them.
package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// presets has these presets with their default options.
var presets = []struct {
	name   string
	preset policy.Preset
}{
	{"clear-tool-uses", ClearToolUses{}},
	{"clear-thinking", ClearThinking{}},
	{"claude-code", ClaudeCode{}},
	{"codex", Codex{}},
	{"pi", Pi{}},
	{"cline", Cline{}},
	{"opencode-prune", OpencodePrune{}},
	{"gemini-masking", GeminiMasking{}},
	{"openhands-summary", OpenHandsSummary{}},
	{"openhands-masking", OpenHandsMasking{}},
	{"openhands-recent", OpenHandsForgetting{}},
	{openHandsAmortized, OpenHandsForgetting{}},
	{"openhands-window", openHandsHalf{}},
}

// Add adds the presets to a set and returns it. The given options replace the defaults of
// their presets. Policies that the set has already stay.
func Add(set *policy.Set, options ...policy.Preset) *policy.Set {
	for _, p := range presets {
		for _, o := range options {
			v := reflect.Indirect(reflect.ValueOf(o)) // pointers to options are presets too
			if v.Type() == reflect.TypeOf(p.preset) {
				p.preset = v.Interface().(policy.Preset)
			}
		}
		if !set.Has(p.name) {
			set.AddUnlisted(p.name, p.preset)
		}
	}
	return set
}

// option is an option with its name in JSON, to be validated.
type option struct {
	name  string
	value int
}

// validate returns an error for the first negative option.
func validate(options ...option) error {
	for _, o := range options {
		if o.value < 0 {
			return fmt.Errorf("invalid %s %d: expected 0 or more", o.name, o.value)
		}
	}
	return nil
}

// when is a stage that runs at some requests only, and when a reduction is forced.
type when struct {
	policy.Stage
	due func(v *furl.View, b furl.Budget) bool
}

func (w when) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if !b.Force && !w.due(v, b) {
		return nil, policy.Nothing
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
func overflowing(v *furl.View, b furl.Budget) bool { return policy.Over(v, b) != "" }

// atSize is a trigger at the size that limit returns for a budget; 0: never.
func atSize(limit func(b *furl.Budget) int) func(*furl.View, furl.Budget) bool {
	return func(_ *furl.View, b furl.Budget) bool {
		n := limit(&b)
		return n > 0 && b.Size >= n
	}
}

// summarizingAt makes the policy of an agent that shows a summary from a size on.
// Without a Summarizer, an extract of the same messages is shown.
func summarizingAt(name string, compact *policy.Compact, limit func(b *furl.Budget) int) furl.Policy {
	return &policy.Pipeline{
		Label:   name,
		Acts:    limit,
		Trigger: atSize(limit),
		Stages:  []policy.Stage{policy.FirstOf{compact, &policy.Extract{Pick: compact.Pick, MaxTokens: extractTokens}}},
	}
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
	var args map[string]json.RawMessage
	_ = json.Unmarshal(call.Args, &args) // other arguments name no command
	if isOneOf(call.Name, readTools...) || string(args["command"]) == `"view"` {
		return policy.PathOf(call)
	}
	return ""
}

// emptyArgs are arguments without content, of the same shape.
func emptyArgs(args json.RawMessage) string {
	if strings.HasPrefix(strings.TrimSpace(string(args)), "{") {
		return "{}"
	}
	return `"` + cleared + `"`
}

// newest is "the newest step" or "the newest 3 steps".
func newest(n int, what string) string {
	if n == 1 {
		return "the newest " + what
	}
	return fmt.Sprintf("the newest %d %ss", n, what)
}

// results counts the results in a unit.
func results(u *furl.Unit) int {
	n := 0
	for i := range u.Blocks {
		if u.Blocks[i].Block.IsResult() {
			n++
		}
	}
	return n
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
