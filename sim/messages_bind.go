package sim

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// binding is what the thinking of the next reply is bound to.
type binding struct {
	prefix prefix
	link   [8]byte
}

// transformation is a change by the provider to the input before the model
// read it.
type transformation struct {
	Type   string `json:"type"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// signed is a thinking block of the request with the content of its
// signature.
type signed struct {
	path string
	seal seal
	sig  string
}

// checkBinding checks thinking against its signatures: it must be unchanged
// and, on models that bind it, its prefix must be too. It computes what the
// next reply's thinking is bound to.
func checkBinding(c *call) *protocol.Refusal {
	p := &c.prompt
	var before, preamble prefix
	var link [8]byte
	var newest []signed // of the latest assistant message
	run := latestRun(c.req.Messages)
	c.findSummary()
	for i := range p.parts {
		at := &p.parts[i]
		if at.msg < 0 {
			if at.bound {
				before = extend(before, at.digest)
			}
			preamble = before
			continue
		}
		m := &c.req.Messages[at.msg]
		b := &m.Blocks[at.block]
		switch {
		case at.gone && at.kind != furl.KindThinking:
			continue // before a summary
		case isCompaction(b):
			from, r := c.compacted(at, m, b, preamble)
			if r != nil {
				return r
			}
			before, link = from, [8]byte{}
			continue
		case at.kind != furl.KindThinking:
			before = extend(before, at.digest)
			continue
		}
		s, r := readSigned(at, m, b)
		if r != nil {
			return r
		}
		if at.gone {
			continue // the provider has dropped it
		}
		if at.msg >= run {
			newest = append(newest, s)
		}
		if reason := c.mismatch(&s.seal, before, link); reason != "" {
			if reason == otherPrefix && !c.facts.drop {
				return refused(s.path + ": Invalid `signature` in `thinking` block. The block is bound to a different conversation. " +
					"Thinking blocks must be sent back with everything before them as it was when they were received; " +
					"remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".")
			}
			at.gone = true
			c.facts.dropped = append(c.facts.dropped, transformation{"thinking_dropped", s.path, reason})
			continue
		}
		link = linkTo(s.sig)
	}
	if r := wholeLatest(newest); r != nil {
		return r
	}
	c.facts.bound, c.facts.preamble = binding{before, link}, preamble
	c.entry.ThinkingDropped = len(c.facts.dropped)
	return nil
}

const (
	otherPrefix = "prefix_binding_mismatch"
	otherModel  = "model_binding_mismatch"
)

// mismatch says why thinking does not fit its position, "" if it does.
// Earlier thinking may be missing, but not in between.
func (c *call) mismatch(s *seal, before prefix, link [8]byte) string {
	switch {
	case s.model != modelMark(c.model.ID):
		return otherModel
	case !c.model.Thinking.Binds:
		return ""
	case s.prefix != before, link != [8]byte{} && s.link != link:
		return otherPrefix
	}
	return ""
}

// latestRun is the index of the first message of the latest assistant
// message, as the provider joins them; past the end if there is none.
func latestRun(list []furl.Message) int {
	end := len(list)
	for end > 0 && list[end-1].Role != furl.RoleAssistant {
		end--
	}
	if end == 0 {
		return len(list)
	}
	for end > 0 && list[end-1].Role == furl.RoleAssistant {
		end--
	}
	return end
}

func readSigned(at *part, m *furl.Message, b *furl.Block) (signed, *protocol.Refusal) {
	s := signed{path: fmt.Sprintf("messages.%d.content.%d", at.msg, at.block)}
	raw := m.Raw[b.Start:b.End]
	var ok bool
	if stringField(raw, "type") == redacted {
		s.sig = stringField(raw, "data")
		if s.seal, ok = open(redacted, "", s.sig); !ok {
			return s, refused(s.path + ": Invalid `data` in `redacted_thinking` block")
		}
		return s, nil
	}
	if rawjson.Field(raw, "signature") == nil {
		return s, refused(s.path + ".thinking.signature: Field required")
	}
	s.sig = stringField(raw, "signature")
	if s.seal, ok = open("thinking", stringField(raw, "thinking"), s.sig); !ok {
		return s, refused(s.path + ": Invalid `signature` in `thinking` block")
	}
	return s, nil
}

const redacted = "redacted_thinking"

// wholeLatest refuses thinking of the latest reply that is incomplete or
// reordered.
func wholeLatest(blocks []signed) *protocol.Refusal {
	if len(blocks) == 0 {
		return nil
	}
	reply := blocks[len(blocks)-1].seal.reply
	first := len(blocks)
	for first > 0 && blocks[first-1].seal.reply == reply {
		first--
	}
	blocks = blocks[first:]
	for i, s := range blocks {
		if int(s.seal.index) != i || int(s.seal.of) != len(blocks) {
			return refused(s.path + ": `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. " +
				"These blocks must remain as they were in the original response.")
		}
	}
	return nil
}

// seal signs the thinking of an answer.
func (messages) seal(c *call, a *answer) {
	total := 0
	for i := range a.Blocks {
		if a.Blocks[i].Kind == furl.KindThinking {
			total++
		}
	}
	var d digester
	bound := c.facts.bound
	mark := c.replyMark()
	n := 0
	for i := range a.Blocks {
		b := &a.Blocks[i]
		if b.Kind != furl.KindThinking {
			if !isCompaction(b) { // it is bound to the messages before it already
				bound.prefix = extend(bound.prefix, d.block(furl.RoleAssistant, b, nil))
			}
			continue
		}
		s := seal{model: modelMark(c.model.ID), prefix: bound.prefix, link: bound.link, reply: mark, index: uint8(n), of: uint8(total)}
		if b.Name == redacted {
			b.ID = s.sign(redacted, "")
		} else {
			if c.facts.omitted {
				b.Text = ""
			}
			b.ID = s.sign("thinking", b.Text)
		}
		bound.link = linkTo(b.ID)
		n++
	}
}
