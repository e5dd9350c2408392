package sim

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// newAnswer makes an answer from a reply: it assigns ids, limits the length,
// signs thinking, and computes the usage.
func (c *call) newAnswer(reply Reply, tokens int) *answer {
	a := &answer{ID: c.api.newID(c), Stop: reply.Stop, Created: c.at.Unix()}
	for i := range reply.Blocks {
		b := reply.Blocks[i]
		switch b.Kind {
		case furl.KindThinking:
			if !c.api.thinks(c) {
				continue
			}
		case furl.KindText:
			if b.Text == "" {
				continue
			}
		case furl.KindCall:
			if b.ID == "" {
				b.ID = c.newCallID()
			}
			b.Args = c.argsFor(b.Args)
		}
		a.Blocks = append(a.Blocks, b)
	}
	if reply.hasCall() && c.mustThink() && a.Blocks[0].Kind != furl.KindThinking {
		a.Blocks = append([]furl.Block{{Kind: furl.KindThinking, Text: thought}}, a.Blocks...)
	}
	if a.Stop == "" {
		a.Stop = "end_turn"
		if reply.hasCall() {
			a.Stop = "tool_use"
		}
	}
	if c.summary != nil {
		a.Blocks = append([]furl.Block{c.summary.block}, a.Blocks...)
	}
	c.searchTools(a)
	c.stopAtSequence(a)
	c.limit(a, tokens)
	c.api.seal(c, a)
	a.Usage = c.cacheLookup().Usage()
	for i := range a.Blocks {
		n := c.outputTokens(&a.Blocks[i])
		a.Usage.Output += n
		if a.Blocks[i].Kind == furl.KindThinking {
			a.Usage.Reasoning += n
		}
	}
	if !c.cacheOnly() {
		a.Usage.Output = max(a.Usage.Output, 1)
	}
	if !c.writesCost() {
		a.Usage.Input += a.Usage.CacheWrite
		a.Usage.CacheWrite = 0
	}
	c.usage = a.Usage
	if c.summary != nil {
		c.passes = furl.Passes{{Kind: furl.PassCompaction, Usage: c.summary.usage}, {Kind: furl.PassMessage, Usage: a.Usage}}
		c.usage = c.usage.Add(c.summary.usage)
	}
	c.entry.Stop = a.Stop
	return a
}

// thought is the thinking of an answer whose player wrote none.
const thought = "This takes a call."

// mustThink reports whether the answer, if it calls tools, must start with thinking:
// otherwise the next request, with the results, would be refused.
func (c *call) mustThink() bool {
	last := len(c.req.Messages) - 1
	if !c.model.Thinking.Required || !c.api.thinks(c) || last < 0 {
		return false
	}
	m := &c.req.Messages[last]
	return len(m.Blocks) == 0 || m.Blocks[0].Kind != furl.KindResult // not within a loop
}

// writesCost reports whether the provider reports and bills cache writes
// separately from other input.
func (c *call) writesCost() bool {
	p := c.model.Prices
	return c.rules().Explicit || p.CacheWrite != p.Input
}

// stopAtSequence ends the answer before a stop sequence.
func (c *call) stopAtSequence(a *answer) {
	for i := range a.Blocks {
		b := &a.Blocks[i]
		if b.Kind != furl.KindText {
			continue
		}
		at, found := -1, ""
		for _, seq := range c.facts.stops {
			if j := strings.Index(b.Text, seq); seq != "" && j >= 0 && (at < 0 || j < at) {
				at, found = j, seq
			}
		}
		if at < 0 {
			continue
		}
		b.Text = b.Text[:at]
		if a.Blocks = a.Blocks[:i+1]; at == 0 {
			a.Blocks = a.Blocks[:i]
		}
		a.Stop, a.StopSeq = "stop_sequence", found
		return
	}
}

// limit cuts an answer that is longer than requested, or than the window
// allows.
func (c *call) limit(a *answer, prompt int) {
	most, why := c.req.MaxTokens, "max_tokens"
	if room := c.model.Window - prompt; c.model.Window > 0 && (most == 0 || room < most) {
		most, why = max(room, 1), "model_context_window_exceeded"
	}
	if most == 0 {
		return
	}
	for i := range a.Blocks {
		b := &a.Blocks[i]
		n := c.outputTokens(b)
		if n <= most {
			most -= n
			continue
		}
		a.Stop = why
		keep := a.Blocks[:i]
		if b.Kind == furl.KindText && most > 0 {
			b.Text = cutText(b.Text, len(b.Text)*most/n)
			if b.Text != "" {
				keep = a.Blocks[:i+1]
			}
		}
		if a.Blocks = keep; len(keep) == 0 {
			a.Blocks = []furl.Block{{Kind: furl.KindText, Text: "[…]"}} // an answer is never empty
		}
		return
	}
}

func cutText(s string, n int) string {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:min(n, len(s))]
}

// outputTokens counts a block of the answer.
func (c *call) outputTokens(b *furl.Block) int {
	if isCompaction(b) {
		return 0 // billed as a separate pass
	}
	one := *b
	one.Signature = 0
	return c.tokens(&one, furl.Digest{})
}

// argsFor adapts the arguments of a call to the format: all except Responses,
// which has custom tools, accept an object only.
func (c *call) argsFor(args []byte) []byte {
	switch {
	case len(args) == 0:
		return []byte("{}")
	case args[0] == '{' || args[0] == '"' && c.req.Format == furl.FormatResponses:
		return args
	}
	return fmt.Appendf(nil, `{"input":%s}`, args)
}
