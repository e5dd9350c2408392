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
// needs, and each next reply has calls of it. Until the result is there, messages
// of the user contain results only.
//
// Sources: Anthropic, "Server tools", turns that mix server and client tools, and
// "Programmatic tool calling" (2026-11); anthropic-sdk-typescript issue 1090.
func (v *validator) serverTools() *protocol.Refusal {
	list := v.req.Messages
	s := serverCalls{list: list}
	for i := range list {
		if reply := list[i].Role == furl.RoleAssistant; reply && (i == 0 || list[i-1].Role != furl.RoleAssistant) {
			s.reply++
		} else if !reply {
			if r := s.missing(s.forgotten); r != nil {
				return r
			}
		}
		for j := range list[i].Blocks {
			b := &list[i].Blocks[j]
			switch {
			case b.Kind != furl.KindOpaque || !isServerTool(b):
				if list[i].Role == furl.RoleUser && b.Kind != furl.KindResult {
					if r := s.missing(func(openCall) bool { return true }); r != nil {
						return r
					}
				}
				s.goOn(b.Caller)
				continue
			case isServerCall(b):
				if s.open == nil {
					s.open = make(map[string]openCall)
				}
				s.goOn(b.Caller)
				s.open[b.ID] = openCall{i, j, s.reply}
				continue
			}
			call, ok := s.open[b.ID]
			if !ok {
				use := "server_tool_use"
				if b.Name == "mcp_tool_result" {
					use = "mcp_tool_use"
				}
				return refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `%s` blocks: %s. "+
					"Each `%s` block must have a corresponding `%s` block before it.", i, j, b.Name, b.ID, b.Name, use)
			}
			delete(s.open, b.ID)
			s.goOn(list[call.msg].Blocks[call.block].Caller)
		}
	}
	return s.missing(s.forgotten)
}

// serverCalls are the calls run by the provider that have no result yet.
type serverCalls struct {
	list  []furl.Message
	reply int // number of the reply, which is a run of assistant messages, from 1
	open  map[string]openCall
}

type openCall struct {
	msg, block int
	reply      int // the latest reply that has the call, or calls of its program
}

// goOn notes that the reply goes on with the program of a call, and with those that
// have called it.
func (s *serverCalls) goOn(id string) {
	for range maxCallers {
		c, ok := s.open[id]
		if id == "" || !ok || c.reply == s.reply {
			return
		}
		c.reply = s.reply
		s.open[id] = c
		id = s.list[c.msg].Blocks[c.block].Caller
	}
}

// maxCallers bounds the work for calls that call each other. A program calls tools, and
// few of these are run by the provider too.
const maxCallers = 16

// forgotten reports whether the latest reply has neither the result of a call nor calls
// of its program.
func (s *serverCalls) forgotten(c openCall) bool { return c.reply < s.reply }

// missing refuses the first of the open calls for which is returns true, nil if there is
// none.
func (s *serverCalls) missing(is func(openCall) bool) *protocol.Refusal {
	first, id := openCall{msg: len(s.list)}, ""
	for k, c := range s.open {
		if is(c) && (c.msg < first.msg || c.msg == first.msg && c.block < first.block) {
			first, id = c, k
		}
	}
	if first.msg == len(s.list) {
		return nil
	}
	b := &s.list[first.msg].Blocks[first.block]
	name, result := rawFields(&s.list[first.msg], b).name.Text(), strings.TrimSuffix(b.Name, "use")+"result"
	if b.Name == "server_tool_use" {
		if result = name + "_tool_result"; isSearchTool(name) {
			result = searchResult
		}
	}
	return refuse("messages.%d: `%s` tool use with id `%s` was found without a corresponding `%s` block", first.msg, name, id, result)
}
