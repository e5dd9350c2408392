package anthropic

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// tools checks that each call has exactly one result, at the start of the
// next message, and that every result has its call.
func (v *validator) tools() *protocol.Refusal {
	list := v.req.Messages
	p := pairs{list: list, calls: make(map[string]call)}
	for lo := 0; lo < len(list); {
		hi := lo + 1
		for hi < len(list) && list[hi].Role == list[lo].Role {
			hi++
		}
		p.run++
		var r *protocol.Refusal
		if list[lo].Role == furl.RoleAssistant {
			if r = p.missing(); r == nil {
				r = p.assistant(lo, hi)
			}
		} else {
			if r = p.results(lo, hi); r == nil {
				r = p.missing()
			}
		}
		if r != nil {
			return r
		}
		lo = hi
	}
	return p.missing()
}

// pairs walks runs of messages of one role.
type pairs struct {
	list  []furl.Message
	run   int             // number of the run, from 1
	calls map[string]call // by id, of all runs
	open  int             // calls of the newest assistant run without result
	from  int             // first message of that run
}

type call struct {
	run      int // the run that made it
	answered int // the run that has its result, 0 none
	early    bool
}

// assistant records the calls of a run.
func (p *pairs) assistant(lo, hi int) *protocol.Refusal {
	p.open, p.from = 0, lo
	for i := lo; i < hi; i++ {
		for j := range p.list[i].Blocks {
			b := &p.list[i].Blocks[j]
			if b.Kind != furl.KindCall {
				continue
			}
			if _, ok := p.calls[b.ID]; ok {
				return refuse("messages.%d.content.%d: tool_use ids must be unique", i, j)
			}
			p.calls[b.ID] = call{run: p.run}
			p.open++
		}
	}
	return nil
}

// results records the results of a run. A result after other content does not
// count.
func (p *pairs) results(lo, hi int) *protocol.Refusal {
	leading := true
	for i := lo; i < hi; i++ {
		for j := range p.list[i].Blocks {
			b := &p.list[i].Blocks[j]
			if b.Kind != furl.KindResult {
				leading = false
				continue
			}
			c, ok := p.calls[b.ID]
			if !ok || c.run != p.run-1 {
				return refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. "+
					"Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ID)
			}
			if c.answered != 0 {
				return refuse("messages.%d.content.%d: each tool_use must have a single result. "+
					"Found multiple `tool_result` blocks with id: %s", i, j, b.ID)
			}
			c.answered, c.early = p.run, leading
			p.calls[b.ID] = c
			if leading {
				p.open--
			}
		}
	}
	return nil
}

// missing refuses calls of the newest assistant run without a result.
func (p *pairs) missing() *protocol.Refusal {
	if p.open == 0 {
		return nil
	}
	var ids []string
	at := -1
	for i := p.from; i < len(p.list) && p.list[i].Role == furl.RoleAssistant; i++ {
		for j := range p.list[i].Blocks {
			b := &p.list[i].Blocks[j]
			if b.Kind == furl.KindCall && !p.calls[b.ID].early {
				ids = append(ids, b.ID)
				if at < 0 {
					at = i
				}
			}
		}
	}
	return refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
		"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", at, strings.Join(ids, ", "))
}

// serverTools checks that a call run by the provider and its result are both
// present, the call first. They need not be in one message: if the reply also
// calls a tool of the client, the provider runs its own call once it has the
// client's results, and the result begins the next reply. A program that calls
// tools of the client (programmatic tool calling) waits for as many rounds as it
// needs. Until the result is there, messages of the user contain results only.
//
// Sources: Anthropic, "Server tools", turns that mix server and client tools, and
// "Programmatic tool calling" (2026-11); anthropic-sdk-typescript issue 1090.
func (v *validator) serverTools() *protocol.Refusal {
	type place struct{ msg, block int }
	var open map[string]place
	list := v.req.Messages
	missing := func() *protocol.Refusal {
		at, id := place{len(list), 0}, ""
		for k, p := range open {
			if p.msg < at.msg || p.msg == at.msg && p.block < at.block {
				at, id = p, k
			}
		}
		b := &list[at.msg].Blocks[at.block]
		name, result := rawFields(&list[at.msg], b).name.Text(), strings.TrimSuffix(b.Name, "use")+"result"
		if b.Name == "server_tool_use" {
			if result = name + "_tool_result"; isSearchTool(name) {
				result = searchResult
			}
		}
		return refuse("messages.%d: `%s` tool use with id `%s` was found without a corresponding `%s` block", at.msg, name, id, result)
	}
	for i := range list {
		for j := range list[i].Blocks {
			b := &list[i].Blocks[j]
			switch {
			case b.Kind != furl.KindOpaque || !isServerTool(b):
				if len(open) > 0 && list[i].Role == furl.RoleUser && b.Kind != furl.KindResult {
					return missing()
				}
				continue
			case isServerCall(b):
				if open == nil {
					open = make(map[string]place)
				}
				open[b.ID] = place{i, j}
				continue
			}
			if _, ok := open[b.ID]; !ok {
				use := "server_tool_use"
				if b.Name == "mcp_tool_result" {
					use = "mcp_tool_use"
				}
				return refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `%s` blocks: %s. "+
					"Each `%s` block must have a corresponding `%s` block before it.", i, j, b.Name, b.ID, b.Name, use)
			}
			delete(open, b.ID)
		}
	}
	return nil
}
