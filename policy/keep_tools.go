package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/toolscript"
)

// ToolOptions say the results of which tools stay, with their calls, as long as the
// request fits the window without them. They are options of every policy. Names are
// compared without regard to case, and may be patterns as of [path.Match], such as
// "mcp__jira__*".
type ToolOptions struct {
	// ExcludeTools replaces furl's own list: the tools by which agents ask the user,
	// show a plan for approval, load a skill, save a memory or write a list of tasks (of
	// these the newest call only), and reads of files with instructions, such as
	// AGENTS.md. If nil, that list; if empty, no tool.
	ExcludeTools []string `json:"exclude_tools,omitempty"`
	// KeepTools are further tools.
	KeepTools []string `json:"keep_tools,omitempty"`
}

// Validate returns an error for the first name that is no pattern.
func (o ToolOptions) Validate() error {
	for _, list := range []struct {
		option string
		names  []string
	}{{"exclude_tools", o.ExcludeTools}, {"keep_tools", o.KeepTools}} {
		for _, name := range list.names {
			if _, err := path.Match(name, ""); err != nil || strings.TrimSpace(name) == "" {
				return fmt.Errorf("invalid %s %q: expected the name of a tool, or a pattern such as mcp__jira__*", list.option, name)
			}
		}
	}
	return nil
}

// Plus returns the options with those of o2 added: its ExcludeTools replace those of o.
func (o ToolOptions) Plus(o2 ToolOptions) ToolOptions {
	if o2.ExcludeTools != nil {
		o.ExcludeTools = o2.ExcludeTools
	}
	o.KeepTools = slices.Concat(o.KeepTools, o2.KeepTools)
	return o
}

// commonOptions are the options that every policy has.
type commonOptions struct {
	ToolOptions
	EditOptions
}

// keeping returns a policy of this package with the options added to those of its pipelines.
// Policies of other types stay as they are.
func keeping(p furl.Policy, o commonOptions) furl.Policy {
	switch p := p.(type) {
	case *Pipeline:
		own := *p
		own.ToolOptions = own.Plus(o.ToolOptions)
		own.RepairEdits = cmp.Or(o.RepairEdits, own.RepairEdits)
		return &own
	case *asking:
		own := *p
		own.Pipeline = keeping(p.Pipeline, o).(*Pipeline)
		return &own
	case *recallOr:
		return &recallOr{keeping(p.Policy, o), keeping(p.without, o)}
	}
	return p
}

// What the user decided, by the names of the tools in today's agents (docs/use/configuration.md
// has whose they are). Of tools that write a list of tasks, the newest call has all of it.
var (
	decisionTools = []string{
		"ask", "ask_user", "askuser", "ask_user_question", "askuserquestion", "ask_followup_question", "ask_question", "question", "request_user_input",
		"skill", "use_skill", "load_skill", "activate_skill", "read_skill",
		"save_memory", "memory", "remember", "update_memory", "store_memory",
	}
	planTools = []string{"exitplanmode", "exit_plan_mode", "exitspecmode", "plan_exit", "plan_mode_respond", "submit_plan", "present_plan"}
	listTools = []string{"todowrite", "todo_write", "todoread", "todo_read", "todo", "todos", "write_todos", "update_todo_list", "manage_todo_list", "update_plan", "tasklist", "task_list"}
	// instructionFiles are read for their rules, not to be edited.
	instructionFiles = []string{"agents.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", "skill.md", "memory.md", "copilot-instructions.md", ".cursorrules", ".clinerules"}
)

// decidedShare is the share of the window that such results may take, the newest first.
const decidedShare = 0.1

// prefer returns the state as if a person had kept the results that stay by the options.
func (o *ToolOptions) prefer(s *furl.State, b *furl.Budget) *furl.State {
	kept := furl.Memo(s, newToolCalls).kept(s, o)
	if len(kept) == 0 {
		return s
	}
	slices.SortFunc(kept, func(x, y toolCall) int {
		return cmp.Or(cmp.Compare(y.at, x.at), cmp.Compare(x.spans[0].First.Msg, y.spans[0].First.Msg), cmp.Compare(x.spans[0].First.Block, y.spans[0].First.Block))
	})
	window := b.Window
	if window <= 0 {
		window = b.Size
	}
	room, used := part(window, decidedShare), 0
	var spans []furl.Span
	for i, c := range kept {
		if i > 0 && kept[i-1].spans[0] == c.spans[0] { // a script with several such calls
			continue
		}
		if used += c.tokens; b.Of(used, 0) > room {
			break
		}
		spans = append(spans, c.spans...)
	}
	t, err := s.Preferring(spans)
	if err != nil {
		return s
	}
	return t
}

// toolCalls are the calls of a path by the tool, each read once.
type toolCalls struct {
	messages int // read so far
	byTool   map[string][]toolCall
	byID     map[string]toolCall // the newest call with an id
	// original has those of the first shared messages, which are of the path that a
	// draft continues.
	original *toolCalls
	shared   int
}

// toolCall is a call, with its result where it has one. at is the index of its newest
// message, and tokens are counted. A script is a call of each tool that it calls too.
type toolCall struct {
	tools  []string
	spans  []furl.Span
	at     int
	tokens int
	failed bool
}

func newToolCalls(original *toolCalls, shared int) *toolCalls {
	return &toolCalls{messages: shared, original: original, shared: shared, byTool: make(map[string][]toolCall), byID: make(map[string]toolCall)}
}

// instructionRead is the name under which reads of instructionFiles are listed, with the
// file: no tool has it.
const instructionRead = "\x00read "

func (c *toolCalls) read(s *furl.State, n int) {
	for ; c.messages < n; c.messages++ {
		seq, m := s.Message(c.messages)
		for j := range m.Blocks {
			b := &m.Blocks[j]
			at := furl.Pos{Msg: seq, Block: j}
			switch {
			case b.Kind == furl.KindCall && b.ID != "":
				c.byID[b.ID] = toolCall{listedAs(b), []furl.Span{{First: at, Last: at}}, c.messages, b.Tokens, false}
			case b.IsResult():
				if call, ok := c.call(b.ID); ok {
					call.failed = b.Error
					if call.at = c.messages; !repeats(s, call.spans[0].First, b) {
						call.spans = append(slices.Clip(call.spans), furl.Span{First: at, Last: at})
						call.tokens += b.Tokens
					}
					for _, tool := range call.tools {
						c.byTool[tool] = append(c.byTool[tool], call)
					}
				}
			}
		}
	}
}

// repeats reports whether a result has the longest text of its call, as that of an approved
// plan has: then the call is enough.
func repeats(s *furl.State, call furl.Pos, result *furl.Block) bool {
	i, ok := s.Find(call.Msg)
	if !ok {
		return false
	}
	_, m := s.Message(i)
	return repeatsInput(&m.Blocks[call.Block], result)
}

// minRepeated is the length of a text that counts as repeated, in bytes.
const minRepeated = 200

func repeatsInput(call, result *furl.Block) bool {
	if len(result.Text) < minRepeated {
		return false
	}
	args, _ := arguments(call.Args)
	for _, raw := range args {
		if text := strings.TrimSpace(plain(raw)); len(text) >= minRepeated && 2*len(text) > len(result.Text) && strings.Contains(result.Text, text) {
			return true
		}
	}
	return false
}

// call returns the newest call with an id, also one before the draft.
func (c *toolCalls) call(id string) (toolCall, bool) {
	call, ok := c.byID[id]
	if !ok && c.original != nil {
		call, ok = c.original.call(id)
		ok = ok && call.at < c.shared
	}
	return call, ok
}

// listedAs are the names under which a call is listed: of a script, also those of the
// calls in it.
func listedAs(b *furl.Block) []string {
	names := []string{listedName(b)}
	for _, c := range toolscript.Calls(b) {
		if name := listedName(c); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func listedName(b *furl.Block) string {
	tool := strings.ToLower(b.Name)
	if readsFiles(tool, nil) {
		if file := strings.ToLower(PathOf(b)); slices.Contains(instructionFiles, lastElement(file)) {
			return instructionRead + file
		}
	}
	return tool
}

func lastElement(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// kept returns the calls that stay by the options.
func (c *toolCalls) kept(s *furl.State, o *ToolOptions) (kept []toolCall) {
	newest := make(map[string]toolCall) // by group
	c.each(s, s.Len(), func(tool string, calls []toolCall) {
		group := ""
		switch {
		case matchesTool(o.KeepTools, tool):
		case o.ExcludeTools != nil:
			if !matchesTool(o.ExcludeTools, tool) {
				return
			}
		case slices.Contains(decisionTools, tool):
		case slices.Contains(listTools, tool):
			group = "list"
		case slices.Contains(planTools, tool):
			group = "plan"
		case strings.HasPrefix(tool, instructionRead):
			group = tool
		default:
			return
		}
		if group == "" {
			kept = append(kept, calls...)
			return
		}
		for _, call := range slices.Backward(calls) { // a plan that the user refused has an error
			if !call.failed {
				if call.at >= newest[group].at {
					newest[group] = call
				}
				break
			}
		}
	})
	for _, call := range newest {
		kept = append(kept, call)
	}
	return kept
}

// each calls f with the calls of each tool among the first n messages. A tool may come
// twice: with those of the path that a draft continues, and its own.
func (c *toolCalls) each(s *furl.State, n int, f func(tool string, calls []toolCall)) {
	if c.original != nil {
		c.original.each(s, min(n, c.shared), f)
	}
	c.read(s, n)
	for tool, calls := range c.byTool {
		if i := slices.IndexFunc(calls, func(c toolCall) bool { return c.at >= n }); i >= 0 {
			calls = calls[:i]
		}
		if len(calls) > 0 {
			f(tool, calls)
		}
	}
}

func matchesTool(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(strings.ToLower(p), tool)
		return ok
	})
}
