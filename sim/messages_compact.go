package sim

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
	"github.com/furlhq/furl/protocol"
)

// The provider has two forms of compaction. At a threshold, the reply starts
// with a compaction block that stays at its position; everything before it is
// no longer read. On demand, the reply is only a signed block, which then
// replaces the messages it summarises, at the start of the list.

func isCompaction(b *furl.Block) bool { return b.Kind == furl.KindOpaque && b.Name == "compaction" }

// summary is a compaction that this request causes.
type summary struct {
	text  string
	pause bool // nothing follows it
	alone bool // on demand
	block furl.Block
	usage furl.Usage
}

// findSummary finds the newest summary, where the read part of the list
// starts; everything before it is ignored.
func (c *call) findSummary() {
	parts := c.prompt.parts
	for i := len(parts) - 1; i >= 0 && parts[i].msg >= 0; i-- {
		if !isCompaction(c.block(&parts[i])) {
			continue
		}
		for i--; i >= 0 && parts[i].msg >= 0; i-- {
			parts[i].gone = true
		}
		return
	}
}

// summaryDigest binds thinking to a summary by its text, not by how the
// client writes the block.
func summaryDigest(text string) furl.Digest {
	var d digester
	return d.text("compaction", text)
}

// compacted handles a summary in the request: everything before it is not
// read. It returns what thinking after it is bound to. For a signed summary
// that is the prefix before the summarised messages, so that thinking
// directly after them stays valid.
func (c *call) compacted(at *part, m *furl.Message, b *furl.Block, preamble prefix) (prefix, *protocol.Refusal) {
	path := fmt.Sprintf("messages.%d.content.%d", at.msg, at.block)
	raw := m.Raw[b.Start:b.End]
	if !c.facts.hasBeta(compactOnDemand) && !c.facts.hasBeta(compactThreshold) {
		return preamble, refused(path + ": Input tag 'compaction' found using 'type' does not match any of the expected tags")
	}
	text := stringField(raw, "content")
	after := extend(preamble, summaryDigest(text))
	if sig := stringField(raw, "signature"); sig != "" {
		s, ok := open("compaction", text, sig)
		if !ok {
			return preamble, refused(path + ": Invalid `signature` in `compaction` block")
		}
		after = s.prefix
	} else if secret := stringField(raw, "encrypted_content"); secret != "" {
		if _, ok := open("compaction", text, secret); !ok {
			return preamble, refused(path + ": Invalid `encrypted_content` in `compaction` block")
		}
	}
	return after, nil
}

// compactAt compacts once the prompt is long enough.
func (c *call) compactAt(e *edit) *protocol.Refusal {
	if !c.facts.hasBeta(compactThreshold) {
		return refused("context_management.edits.0.compact_20260112: Extra inputs are not permitted")
	}
	limit := compactTrigger
	if e.Trigger != nil {
		if limit = e.Trigger.Value; limit < leastCompact {
			return refused(fmt.Sprintf("context_management.edits.0.compact_20260112.trigger.value: Input should be greater than or equal to %d", leastCompact))
		}
	}
	if promptcache.Sum(c.prompt.pieces) <= limit || c.route.count != nil {
		return nil
	}
	c.summarize(e.Pause, false)
	return nil
}

// checkCompaction validates a compaction on demand.
func checkCompaction(c *call) *protocol.Refusal {
	f := &c.facts
	if f.compaction == nil {
		return nil
	}
	list := c.req.Messages
	last := list[len(list)-1]
	switch {
	case stringField(f.compaction, "type") != "summarize":
		return refused("compaction.type: Input should be 'summarize'")
	case len(stringField(f.compaction, "instructions")) > maxInstructions:
		return refused(fmt.Sprintf("compaction.instructions: String should have at most %d characters", maxInstructions))
	case f.management != nil:
		return refused("compaction: cannot be combined with `context_management`")
	case len(f.stops) > 0:
		return refused("compaction: cannot be combined with `stop_sequences`")
	case f.toolChoice == "any" || f.toolChoice == "tool":
		return refused("compaction: cannot be combined with a `tool_choice` that forces tool use")
	case last.Role == furl.RoleAssistant && hasCall(&last):
		return refused("compaction: the conversation ends with a `tool_use` block without a `tool_result`")
	}
	if c.route.count == nil {
		c.summarize(false, true)
	}
	return nil
}

const maxInstructions = 16_384

func hasCall(m *furl.Message) bool {
	for i := range m.Blocks {
		if m.Blocks[i].Kind == furl.KindCall {
			return true
		}
	}
	return false
}

// summarize creates the summary. For the rest of the request, it replaces the
// messages.
func (c *call) summarize(pause, alone bool) {
	s := &summary{text: summaryOf(c.req), pause: pause, alone: alone}
	s.usage = c.cacheLookup().Usage() // the summary reads the prompt first
	s.usage.Output = c.outputTokens(&furl.Block{Kind: furl.KindText, Text: s.text})
	c.summary = s
	s.block = c.compactionBlock()
	if alone {
		return
	}
	p := &c.prompt
	for i := range p.parts {
		p.parts[i].gone = p.parts[i].gone || p.parts[i].msg >= 0
	}
	p.prune()
	digest := summaryDigest(s.text)
	p.add(c, &furl.Block{Kind: furl.KindText, Text: s.text}, part{msg: 0, kind: furl.KindOpaque, digest: digest})
	c.facts.bound = binding{prefix: extend(c.facts.preamble, digest)}
}

// compactionBlock returns the summary as a content block.
func (c *call) compactionBlock() furl.Block {
	s := c.summary
	sealed := seal{model: modelMark(c.model.ID), prefix: c.facts.bound.prefix}
	raw := fmt.Appendf(nil, `{"type":"compaction","content":%s,"encrypted_content":%s}`, str(s.text), str(sealed.sign("compaction", s.text)))
	if s.alone {
		raw = fmt.Appendf(nil, `{"type":"compaction","content":%s,"signature":%s}`, str(s.text), str(sealed.sign("compaction", s.text)))
	}
	return furl.Block{Kind: furl.KindOpaque, Name: "compaction", Text: string(raw)}
}

// summarized returns the answer of a request that ends with its summary.
func (c *call) summarized() *answer {
	a := &answer{ID: c.api.newID(c), Stop: "compaction", Blocks: []furl.Block{c.summary.block}, Created: c.at.Unix()}
	c.cacheLookup() // the rest of the prompt is stored in the cache
	c.usage, c.passes = c.summary.usage, furl.Passes{{Kind: furl.PassCompaction, Usage: c.summary.usage}}
	if c.req.Format == furl.FormatResponses {
		a.Usage = c.usage // Anthropic reports it only in usage.iterations
	}
	c.entry.Stop = a.Stop
	return a
}

// iterations reports the cost of each pass of the request; nil if there was
// only one.
func (c *call) iterations() (list []iterationItem) {
	for _, p := range c.passes {
		u := p.Usage
		list = append(list, iterationItem{p.Kind, u.Input, u.CacheWrite + u.CacheWrite1h, u.CacheRead, u.Output})
	}
	return list
}

// compactionDelta returns how a stream sends a summary: the block starts
// empty, and one delta contains all of it.
func compactionDelta(raw string) (start, delta []byte) {
	start = []byte(`{"type":"compaction","content":null}`)
	inside := strings.TrimSuffix(strings.TrimPrefix(raw, `{"type":"compaction",`), "}")
	return start, []byte(`{"type":"compaction_delta",` + inside + `}`)
}
