package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/numbers"
)

// ToolDiet says which tools of which MCP server were called in no recording of their agent, what
// their definitions cost, and how the agent leaves them out. Costs are in US dollars at list
// prices, null if no price is known.
type ToolDiet struct {
	// Recordings is the number of recordings with tool definitions, Unrecorded that of
	// the others. What tools cost in these is not known.
	Recordings int `json:"recordings"`
	Unrecorded int `json:"unrecorded"`
	// FixedShare is the share of the input cost as recorded that instructions and tools cost,
	// with what else is in the prompts and not recorded; of all recordings.
	FixedShare *float64 `json:"instructions_and_tools_share"`
	// Tools is the number of tools, NeverCalled of them were not called.
	Tools       int `json:"tools"`
	NeverCalled int `json:"never_called"`
	// Cost is what all definitions cost, NeverCalledCost the part of those that were not called. The
	// shares are of the input cost of the recordings that have definitions.
	Cost             *float64 `json:"cost"`
	CostShare        *float64 `json:"cost_share"`
	NeverCalledCost  *float64 `json:"never_called_cost"`
	NeverCalledShare *float64 `json:"never_called_share"`
	// Agents are in the order of their names.
	Agents []AgentTools `json:"agents"`
}

// AgentTools are the tools of an agent.
type AgentTools struct {
	Agent string `json:"agent"`
	// Servers are the agent's own tools, then those of its MCP servers, the most expensive
	// unused ones first.
	Servers []ServerTools `json:"servers"`
	// Setting is what makes the agent leave out the tools of MCP servers that were never called,
	// and Where where it belongs; "" if all were called, or none is known for the agent. Defers
	// says how the agent defers tools instead.
	Where   string `json:"setting_file,omitempty"`
	Setting string `json:"setting,omitempty"`
	Defers  string `json:"defers,omitempty"`
}

// ServerTools are the tools of an MCP server, or the agent's own.
type ServerTools struct {
	Server string `json:"server,omitempty"` // "": the agent's own
	Tools  int    `json:"tools"`
	// Tokens is the size of the definitions in a prompt that has them all.
	Tokens int `json:"tokens"`
	// NeverCalled are the names of the tools that were not called, Own their names at the server.
	NeverCalled       []string `json:"never_called"`
	Own               []string `json:"-"`
	NeverCalledTokens int      `json:"never_called_tokens"`
	Cost              *float64 `json:"cost"`
	NeverCalledCost   *float64 `json:"never_called_cost"`
}

// dietOf sums the tools of recordings. It returns nil if nothing is known of the prompts beyond
// their messages.
func dietOf(recordings []RecordingReport) *ToolDiet {
	type tool struct{ agent, name string }
	var d ToolDiet
	var input, fixed, withTools float64
	tools, calls, priced := make(map[tool]*DefinedTool), make(map[tool]int), false
	for i := range recordings {
		r := &recordings[i]
		input += r.input
		fixed += r.fixed
		for name, n := range r.calls {
			calls[tool{r.client, name}] += n
		}
		if r.Tools == nil {
			d.Unrecorded++
			continue
		}
		d.Recordings++
		withTools += r.input
		for _, t := range r.Tools.Each {
			priced = priced || t.Cost != nil
			if t.Cost == nil {
				t.Cost = new(float64)
			}
			key := tool{r.client, t.Name}
			if had := tools[key]; had != nil {
				had.add(&t)
			} else {
				tools[key] = &t
			}
		}
	}
	if d.Recordings == 0 && fixed <= 0 {
		return nil
	}
	if input > 0 && fixed > 0 {
		d.FixedShare = shareOf(fixed, input)
	}
	byAgent := make(map[string]map[string]*ServerTools)
	var cost, never float64
	keys := slices.SortedFunc(maps.Keys(tools), func(a, b tool) int { return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.name, b.name)) })
	for _, key := range keys {
		t := tools[key]
		if byAgent[key.agent] == nil {
			byAgent[key.agent] = make(map[string]*ServerTools)
		}
		s := byAgent[key.agent][t.Server]
		if s == nil {
			s = &ServerTools{Server: t.Server, Cost: new(float64), NeverCalledCost: new(float64), NeverCalled: []string{}}
			byAgent[key.agent][t.Server] = s
		}
		d.Tools++
		s.Tools++
		s.Tokens += t.Tokens
		*s.Cost += *t.Cost
		cost += *t.Cost
		if t.Calls == 0 && calls[key] == 0 {
			d.NeverCalled++
			s.NeverCalled, s.Own = append(s.NeverCalled, t.Name), append(s.Own, t.Own)
			s.NeverCalledTokens += t.Tokens
			*s.NeverCalledCost += *t.Cost
			never += *t.Cost
		}
	}
	if priced {
		d.Cost, d.NeverCalledCost = &cost, &never
		d.CostShare, d.NeverCalledShare = shareOf(cost, withTools), shareOf(never, withTools)
	}
	for _, agent := range slices.Sorted(maps.Keys(byAgent)) {
		d.Agents = append(d.Agents, agentTools(agent, byAgent[agent], priced))
	}
	return &d
}

func shareOf(part, whole float64) *float64 {
	if whole <= 0 {
		return nil
	}
	share := part / whole
	return &share
}

// agentTools returns the tools of an agent and the setting that leaves out unused ones.
func agentTools(agent string, servers map[string]*ServerTools, priced bool) AgentTools {
	a := AgentTools{Agent: agent}
	var unused []agents.UnusedTools
	list := slices.SortedFunc(maps.Values(servers), func(a, b *ServerTools) int {
		if (a.Server == "") != (b.Server == "") {
			return cmp.Compare(len(a.Server), len(b.Server))
		}
		return cmp.Or(cmp.Compare(*b.NeverCalledCost, *a.NeverCalledCost), cmp.Compare(b.NeverCalledTokens, a.NeverCalledTokens), cmp.Compare(a.Server, b.Server))
	})
	for _, s := range list {
		if s.Server != "" {
			a.Defers = agents.DefersTools(agent)
			if len(s.NeverCalled) > 0 {
				unused = append(unused, agents.UnusedTools{Server: s.Server, Names: s.NeverCalled, Own: s.Own, All: len(s.NeverCalled) == s.Tools})
			}
		}
		if !priced {
			s.Cost, s.NeverCalledCost = nil, nil
		}
		a.Servers = append(a.Servers, *s)
	}
	if len(unused) > 0 {
		a.Where, a.Setting = agents.WithoutTools(agent, unused)
	}
	return a
}

// String says what instructions and tools cost, and how many tools were never called.
func (d *ToolDiet) String() string {
	var text string
	if d.FixedShare != nil {
		text = fmt.Sprintf("Instructions and tools are %.0f%% of the input cost as recorded. ", 100**d.FixedShare)
	}
	if d.Recordings == 0 {
		return text + "Tool definitions are not recorded, so what each tool costs is not known: furl run and furl serve record them."
	}
	if d.NeverCalled == 0 {
		text += fmt.Sprintf("All %s with a definition were called", numbers.Count(d.Tools, "tool"))
	} else {
		text += fmt.Sprintf("%d of %s with a definition were never called", d.NeverCalled, numbers.Count(d.Tools, "tool"))
	}
	if d.NeverCalledShare != nil && d.NeverCalled > 0 {
		text += fmt.Sprintf(": their definitions cost $%.2f, %.1f%% of the input cost", *d.NeverCalledCost, 100**d.NeverCalledShare)
	}
	text += "."
	if d.Unrecorded > 0 {
		text += fmt.Sprintf(" In %s, definitions are not recorded, and what tools cost there is not known.", numbers.Count(d.Unrecorded, "other recording"))
	}
	return text
}
