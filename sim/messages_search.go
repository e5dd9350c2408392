package sim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
)

// Anthropic's search for tools. A deferred definition is not part of the prompt until
// a tool_reference names it; then it is read where the reference is.

// searchLimit is the number of tools that a search returns.
const searchLimit = 5

// searchTypes are the types of the search tool, with its name and the field of its
// input.
var searchTypes = map[string][2]string{
	"tool_search_tool_regex_20251119": {"tool_search_tool_regex", "pattern"},
	"tool_search_tool_bm25_20251119":  {"tool_search_tool_bm25", "query"},
}

// checkSearch refuses a search for tools that the model does not have.
func checkSearch(c *call) *protocol.Refusal {
	for _, raw := range rawjson.Elements(c.facts.tools) {
		typ := stringField(raw, "type")
		if !strings.HasPrefix(typ, "tool_search_tool_") {
			continue
		}
		search, ok := searchTypes[typ]
		switch {
		case !ok || !c.model.ToolSearch:
			return refused(fmt.Sprintf("'%s' does not support tool types: %s.", clipped(c.req.Model), clipped(typ)))
		case stringField(raw, "name") != search[0]:
			// The sim's wording.
			return refused(fmt.Sprintf("tools: the name of a tool of type %s must be %s", typ, search[0]))
		}
	}
	return nil
}

// deferredTools returns the deferred tools of the request by name, and their names in
// order.
func (c *call) deferredTools() (tools map[string]*furl.Block, names []string) {
	for i := range c.req.Preamble {
		b := &c.req.Preamble[i]
		if !b.Deferred {
			continue
		}
		if tools == nil {
			tools = make(map[string]*furl.Block)
		}
		tools[b.ID] = b
		names = append(names, b.ID)
	}
	return tools, names
}

// expandReferences adds the sizes of deferred definitions to the blocks that reference
// them first.
func (p *prompt) expandReferences(c *call) {
	tools, _ := c.deferredTools()
	if len(tools) == 0 {
		return
	}
	for i, at := range p.parts {
		if at.msg < 0 || at.gone || at.kind != furl.KindOpaque && at.kind != furl.KindResult {
			continue
		}
		m := &c.req.Messages[at.msg]
		b := &m.Blocks[at.block]
		for _, name := range anthropic.References(m.Raw[b.Start:b.End]) {
			if tool := tools[name]; tool != nil {
				p.pieces[i].Tokens += c.tokens(tool, furl.Digest{})
				delete(tools, name)
			}
		}
	}
}

// searchTools adds a search before each call of a deferred tool that the model has not
// found yet. Without a search tool, the model cannot find any.
func (c *call) searchTools(a *answer) {
	if c.req.Format != furl.FormatAnthropic {
		return
	}
	tools, names := c.deferredTools()
	var search [2]string
	for _, raw := range rawjson.Elements(c.facts.tools) {
		if s, ok := searchTypes[stringField(raw, "type")]; ok {
			search = s
		}
	}
	if len(tools) == 0 || search[0] == "" {
		return
	}
	found := make(map[string]bool)
	for i := range c.req.Messages {
		m := &c.req.Messages[i]
		for j := range m.Blocks {
			for _, name := range anthropic.References(m.Raw[m.Blocks[j].Start:m.Blocks[j].End]) {
				found[name] = true
			}
		}
	}
	var out []furl.Block
	for _, b := range a.Blocks {
		if b.Kind == furl.KindCall && tools[b.Name] != nil && !found[b.Name] {
			out = append(out, c.search(search, b.Name, tools, names, found)...)
		}
		out = append(out, b)
	}
	a.Blocks = out
}

// search returns the blocks of a search for a tool by its name.
func (c *call) search(search [2]string, name string, tools map[string]*furl.Block, names []string, found map[string]bool) []furl.Block {
	pattern := regexp.MustCompile("(?i)" + regexp.QuoteMeta(name))
	refs := []string{reference(name)}
	found[name] = true
	for _, other := range names {
		if other != name && len(refs) < searchLimit && pattern.MatchString(tools[other].Text) {
			refs = append(refs, reference(other))
			found[other] = true
		}
	}
	id := c.newID("srvtoolu_", 24)
	return []furl.Block{
		{Kind: furl.KindOpaque, Name: "server_tool_use", ID: id,
			Text: fmt.Sprintf(`{"type":"server_tool_use","id":%s,"name":%s,"input":{%s:%s}}`, str(id), str(search[0]), str(search[1]), str(name))},
		{Kind: furl.KindOpaque, Name: "tool_search_tool_result", ID: id,
			Text: fmt.Sprintf(`{"type":"tool_search_tool_result","tool_use_id":%s,"content":{"type":"tool_search_tool_search_result","tool_references":[%s]}}`,
				str(id), strings.Join(refs, ","))},
	}
}

func reference(tool string) string {
	return fmt.Sprintf(`{"type":"tool_reference","tool_name":%s}`, str(tool))
}
