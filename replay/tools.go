package replay

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/internal/toolscript"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/transcript"
)

// ToolUse says which of the recorded tool definitions the model called, and what the
// others cost.
type ToolUse struct {
	// Defined is the number of definitions, with those of sub-agents, and Tokens
	// their size in the provider's tokens. NeverCalled of them, with
	// NeverCalledTokens, have no call in their session. Deferred definitions are not counted.
	Defined           int `json:"defined"`
	Tokens            int `json:"tokens"`
	NeverCalled       int `json:"never_called"`
	NeverCalledTokens int `json:"never_called_tokens"`
	// Searchable reports whether the provider can search deferred tools for each
	// model of the recording.
	Searchable bool `json:"searchable"`
	// Saved is the share of the input cost as recorded that leaving out the tools that
	// were never called would save, from the first request on. It is null if no price is known.
	Saved *float64 `json:"saved,omitempty"`
	// Each are the tools by their names, those of all sessions.
	Each []DefinedTool `json:"each"`
}

// DefinedTool is a tool whose definition is recorded.
type DefinedTool struct {
	// Name is the tool's name as the model sees it. Server is its MCP server, "" for a tool of the
	// agent; Own is its name there.
	Name   string `json:"name"`
	Server string `json:"server,omitempty"`
	Own    string `json:"own_name,omitempty"`
	// Tokens is the size of the definition in the provider's tokens: the largest of the sessions.
	Tokens int `json:"tokens"`
	// Sessions is the number of sessions that define it, Calls that of its calls.
	Sessions int `json:"sessions"`
	Calls    int `json:"calls"`
	// Cost is what the definition cost in all requests, in US dollars at list prices; null if no
	// price is known.
	Cost *float64 `json:"cost"`
}

// definition is a tool definition in a prompt.
type definition struct {
	group string // the namespace that it is in, "" for none
	name  string
	text  string
}

// full is the name by which the model calls the tool.
func (d definition) full() string {
	if strings.HasPrefix(d.group, "mcp__") {
		return d.group + "__" + d.name
	}
	return d.name
}

// definitionsOf returns the recorded tool definitions of a session that are in its prompts: the
// newest of each name, in the order of the names.
func definitionsOf(rec *transcript.Session) []definition {
	found := make(map[string]definition)
	add := func(raw []byte) {
		for _, d := range definitionsIn(raw, "", nil) {
			found[d.full()] = d
		}
	}
	for i := range rec.Preamble {
		if b := &rec.Preamble[i]; b.Kind == furl.KindOpaque && !b.Deferred {
			add([]byte(b.Text))
		}
	}
	contents, seen := rebuild.ByDigest(rec.Contents), make(map[furl.Digest]bool)
	for _, r := range rec.Log.Records(0) {
		switch body := r.Body.(type) {
		case *furl.Exchange: // of a session of furl's store
			if d := body.Request.Tools; !d.IsZero() && !seen[d] {
				seen[d] = true
				if raw, err := contents(d); err == nil {
					add(raw)
				}
			}
		case *furl.Message: // Codex sends definitions among the messages
			for i := range body.Blocks {
				if b := &body.Blocks[i]; b.Kind == furl.KindOpaque && b.Name == "additional_tools" {
					var list struct{ Tools json.RawMessage }
					if json.Unmarshal([]byte(b.Text), &list) == nil {
						add(list.Tools)
					}
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b definition) int { return strings.Compare(a.full(), b.full()) })
}

// definitionsIn returns the definitions of a tool, or of a list of tools, as clients of the
// providers write them. It leaves out deferred ones, which are not in the prompt.
func definitionsIn(raw []byte, group string, out []definition) []definition {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, tool := range list {
			out = definitionsIn(tool, group, out)
		}
		return out
	}
	var tool struct {
		Type, Name           string
		Function, Custom     struct{ Name string }
		ToolSpec             struct{ Name string }
		Tools                json.RawMessage
		FunctionDeclarations json.RawMessage
		Snake                json.RawMessage `json:"function_declarations"`
		Deferred             bool            `json:"defer_loading"`
	}
	if json.Unmarshal(raw, &tool) != nil || tool.Deferred {
		return out
	}
	switch nested := slices.Concat(tool.FunctionDeclarations, tool.Snake); {
	case len(nested) > 0:
		return definitionsIn(nested, group, out)
	case tool.Type == "namespace" && group == "":
		return definitionsIn(tool.Tools, tool.Name, out)
	}
	name := cmp.Or(tool.Name, tool.Function.Name, tool.Custom.Name, tool.ToolSpec.Name, tool.Type)
	if name == "" {
		return out
	}
	return append(out, definition{group, name, string(raw)})
}

// callsOf counts the calls of a session by the names of the tools, with those of scripts.
func callsOf(rec *transcript.Session) map[string]int {
	calls := make(map[string]int)
	for _, r := range rec.Log.Records(0) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindCall {
				calls[b.Name]++
				inside, _ := toolscript.Inside(b)
				for _, c := range inside {
					calls[c.Name]++
				}
			}
		}
	}
	return calls
}

// countTools counts the recorded tool definitions of a session and the calls of its tools.
func (s *session) countTools(rec *transcript.Session) {
	s.calls = callsOf(rec)
	for _, d := range definitionsOf(rec) {
		m := furl.Message{Blocks: []furl.Block{{Kind: furl.KindOpaque, Text: d.text}}}
		m.Measure(s.counter)
		t := DefinedTool{Name: d.full(), Tokens: s.scaled(m.Blocks[0].Tokens), Sessions: 1, Calls: s.calls[d.name]}
		if d.group != "" {
			t.Calls += s.calls[d.full()]
			if t.Calls > 0 {
				s.calls[d.full()] = t.Calls
			}
		}
		s.tools = append(s.tools, t)
		s.toolTokens += t.Tokens
	}
}

// fixedCost is what the parts of the prompts cost that come before the messages, in dollars.
type fixedCost struct {
	all      float64 // instructions, tools, and what else is not recorded
	perToken float64 // of tool definitions
}

// add adds a request.
func (c *fixedCost) add(q *request, s split, tools int) {
	c.all += beginningCost(&q.model, s, q.fixed, q.at)
	if tools > 0 {
		c.perToken += beginningCost(&q.model, s, min(tools, q.fixed), q.at) / float64(tools)
	}
}

// beginningCost returns what the first tokens of a prompt cost, as part of a request at a time.
func beginningCost(m *furl.Model, s split, tokens int, at time.Time) float64 {
	p := price.Complete(price.For(m, s.prompt(), at))
	per := p.Input
	switch {
	case s.Read >= tokens:
		per = p.CacheRead
	case s.WriteLong >= tokens:
		per = p.CacheWrite1h
	case s.Write >= tokens:
		per = p.CacheWrite
	}
	return float64(tokens) * per / 1e6
}

// useTools sets Tools, from the sessions of the recording and their runs of policy none, and what
// Report.ToolDiet needs.
func (r *RecordingReport) useTools(sessions []*session, none []*run) {
	use, each := &ToolUse{Searchable: true}, make(map[string]*DefinedTool)
	r.calls = make(map[string]int)
	var saved float64
	priced := false
	for i, s := range sessions {
		for n, q := range s.requests {
			use.Searchable = use.Searchable && q.model.ToolSearch
			r.input += none[i].each[n].dollars
			priced = priced || none[i].each[n].priced
		}
		r.fixed += none[i].fixed.all
		for name, n := range s.calls {
			r.calls[name] += n
		}
		for _, t := range s.tools {
			cost := float64(t.Tokens) * none[i].fixed.perToken
			use.Defined++
			use.Tokens += t.Tokens
			if t.Calls == 0 {
				use.NeverCalled++
				use.NeverCalledTokens += t.Tokens
				saved += cost
			}
			t.Cost = &cost
			if had := each[t.Name]; had != nil {
				had.add(&t)
			} else {
				each[t.Name] = &t
			}
		}
	}
	if use.Defined == 0 {
		return
	}
	if priced && r.input > 0 {
		share := saved / r.input
		use.Saved = &share
	}
	for _, name := range slices.Sorted(maps.Keys(each)) {
		t := each[name]
		if !priced {
			t.Cost = nil
		}
		use.Each = append(use.Each, *t)
	}
	for i, of := range agents.ToolServers(r.client, slices.Sorted(maps.Keys(each))) {
		use.Each[i].Server, use.Each[i].Own = of.Server, of.Tool
	}
	r.Tools = use
}

// add adds the same tool of other sessions.
func (t *DefinedTool) add(o *DefinedTool) {
	t.Tokens = max(t.Tokens, o.Tokens)
	t.Sessions += o.Sessions
	t.Calls += o.Calls
	if t.Cost != nil && o.Cost != nil {
		sum := *t.Cost + *o.Cost
		t.Cost = &sum
	}
}
