package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// tool is a tool offered by a request.
type tool struct {
	name   string
	schema schema
	script bool // the input is a script that calls other tools
}

// schema is the part of JSON Schema that the agent supports.
type schema struct {
	Type       json.RawMessage   `json:"type"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Items      *schema           `json:"items"`
	Enum       []json.RawMessage `json:"enum"`
	Const      json.RawMessage   `json:"const"`
	AnyOf      []schema          `json:"anyOf"`
	Minimum    *float64          `json:"minimum"`
	MinItems   int               `json:"minItems"`
}

// Kinds of tools, by parts of their names.
var (
	runs   = []string{"bash", "shell", "exec", "command", "terminal", "run"}
	reads  = []string{"read", "view", "cat", "list", "ls", "glob", "grep", "search", "get", "fetch_result", "open"}
	writes = []string{"write", "edit", "delete", "patch", "remove", "create", "update", "todo", "task", "agent", "kill", "web", "plan",
		"submit", "stdin", "install", "image", "ask", "question", "skill"}
)

// takesCommand reports whether a tool has a parameter for a command or a script.
// Agents may have tools that only read or stop what a command has started, such as Copilot
// CLI's read_bash and stop_bash.
func (t *tool) takesCommand() bool {
	for name := range t.schema.Properties {
		if hasAny(strings.ToLower(name), commandWords) {
			return true
		}
	}
	return t.script
}

// commandWords are parts of names of parameters for commands.
var commandWords = []string{"command", "cmd", "script"}

// tools lists the tools that the agent may call, only those of the best kind.
func (a *Agent) tools(req *protocol.Request) []tool {
	var all, good, best []tool
	for _, b := range slices.Concat(req.Preamble, toolsInList(req)) {
		if b.Kind != furl.KindOpaque || b.ID == "" || b.Name != "custom" && b.Name != "function" {
			continue
		}
		if len(a.opts.Only) > 0 && !slices.Contains(a.opts.Only, b.ID) {
			continue
		}
		t, ok := readTool(&b)
		if !ok {
			continue
		}
		all = append(all, t)
		name := strings.ToLower(t.name)
		switch {
		case hasAny(name, writes):
		case hasAny(name, runs):
			best = append(best, t)
		case hasAny(name, reads):
			good = append(good, t)
		}
	}
	if name := stringField(rawjson.Field(req.Body, "tool_choice"), "name"); name != "" {
		if i := slices.IndexFunc(all, func(t tool) bool { return t.name == name }); i >= 0 {
			return all[i : i+1]
		}
	}
	commands := slices.DeleteFunc(slices.Clone(best), func(t tool) bool { return !t.takesCommand() })
	switch {
	case len(a.opts.Only) > 0:
		return all
	case len(commands) > 0:
		return commands
	case len(best) > 0:
		return best
	case len(good) > 0:
		return good
	}
	return all
}

// toolsInList returns the tools that items of the list define, as Codex sends them with
// its default model, in the form of a preamble's.
func toolsInList(req *protocol.Request) (tools []furl.Block) {
	var read func(list []byte, nested bool)
	read = func(list []byte, nested bool) {
		r := rawjson.NewReader(list)
		if r.Kind() != '[' {
			return
		}
		for range r.Elements() {
			raw := r.Raw()
			if typ := stringField(raw, "type"); typ == "namespace" && !nested {
				read(rawjson.Field(raw, "tools"), true)
			} else {
				tools = append(tools, furl.Block{Kind: furl.KindOpaque, ID: stringField(raw, "name"), Name: typ, Text: string(raw)})
			}
		}
	}
	for i := range req.Messages {
		if m := &req.Messages[i]; len(m.Blocks) == 1 && m.Blocks[0].Name == "additional_tools" {
			read(rawjson.Field(m.Raw, "tools"), false)
		}
	}
	return tools
}

// readTool reads a tool's definition in any of the formats. A custom tool has
// no schema and is skipped, except one that runs scripts that call a tool for commands, as
// in Codex 0.171.
func readTool(b *furl.Block) (tool, bool) {
	var def struct {
		Type       string          `json:"type"`
		About      string          `json:"description"`
		Schema     json.RawMessage `json:"input_schema"`
		Parameters json.RawMessage `json:"parameters"`
		JSONSchema json.RawMessage `json:"parametersJsonSchema"`
		Function   struct {
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
		Format json.RawMessage `json:"format"`
		Custom json.RawMessage `json:"custom"`
	}
	if json.Unmarshal([]byte(b.Text), &def) != nil {
		return tool{}, false
	}
	if def.Format != nil || def.Custom != nil {
		return tool{name: b.ID, script: true}, strings.Contains(def.About, "tools.exec_command")
	}
	t := tool{name: b.ID}
	for _, raw := range []json.RawMessage{def.Schema, def.Parameters, def.JSONSchema, def.Function.Parameters} {
		if raw != nil {
			_ = json.Unmarshal(raw, &t.schema) // unsupported parts are ignored
		}
	}
	return t, true
}

// arguments generates the arguments of a call.
func (a *Agent) arguments(t *tool, step int, rng *rand.Rand) []byte {
	if a.opts.Arguments != nil {
		if args := a.opts.Arguments(t.name, step); args != nil {
			return args
		}
	}
	m := maker{lines: a.opts.Lines * min(step, 50), step: step, rng: rng}
	if t.script {
		return str(fmt.Sprintf("const r = await tools.exec_command({cmd: %s});\ntext(r.output);\n", str(m.command())))
	}
	args := make(map[string]any)
	for _, name := range t.schema.Required {
		if p, ok := t.schema.Properties[name]; ok && len(args) < 50 {
			args[name] = m.value(name, &p, 0)
		}
	}
	return object(args)
}

// maker generates arguments.
type maker struct {
	lines, step int
	rng         *rand.Rand
}

const maxSchemaDepth = 6

func (m *maker) value(name string, s *schema, depth int) any {
	switch {
	case depth > maxSchemaDepth:
		return nil
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.Type) == 0 && len(s.AnyOf) > 0:
		return m.value(name, &s.AnyOf[0], depth+1)
	}
	typ := strings.ToLower(string(s.Type)) // upper case in Gemini's own schemas
	switch {
	case strings.Contains(typ, "array"):
		if hasAny(strings.ToLower(name), []string{"command", "cmd"}) {
			return []string{"sh", "-c", m.command()}
		}
		item := schema{Type: json.RawMessage(`"string"`)}
		if s.Items != nil {
			item = *s.Items
		}
		return []any{m.value(name, &item, depth+1)}
	case strings.Contains(typ, "object"):
		obj := make(map[string]any)
		for _, key := range s.Required {
			if p, ok := s.Properties[key]; ok && len(obj) < 50 {
				obj[key] = m.value(key, &p, depth+1)
			}
		}
		return obj
	case strings.Contains(typ, "boolean"):
		return false
	case strings.Contains(typ, "integer"), strings.Contains(typ, "number"):
		if s.Minimum != nil && *s.Minimum > float64(m.step) && *s.Minimum < 1e9 {
			return *s.Minimum
		}
		return m.step
	}
	return m.text(strings.ToLower(name))
}

// text generates a string by the name of its parameter.
func (m *maker) text(name string) string {
	switch {
	case hasAny(name, commandWords):
		return m.command()
	case hasAny(name, []string{"dir", "cwd", "folder"}), name == "path" && m.rng.IntN(2) == 0:
		return "."
	case hasAny(name, []string{"path", "file"}):
		return fmt.Sprintf("notes-%d.txt", m.step%7)
	case hasAny(name, []string{"pattern", "regex", "glob"}):
		return "*"
	case hasAny(name, []string{"url", "uri"}):
		return "http://127.0.0.1/"
	case hasAny(name, []string{"description", "reason", "justification"}):
		return fmt.Sprintf("Step %d", m.step)
	}
	return fmt.Sprintf("%s of step %d", vocabulary[m.rng.IntN(len(vocabulary))], m.step)
}

// command returns a harmless command that prints about the required number of
// lines.
func (m *maker) command() string {
	return fmt.Sprintf("seq 1 %d | sed 's,.*,step-%d/line-&.txt holds part & of the record,'", max(1, m.lines), m.step)
}
