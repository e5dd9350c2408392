package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/openai"
)

// readCodex reads a Codex rollout: JSON Lines of {timestamp, type, payload}. A
// response_item is an item of the Responses API as it goes over the wire, and
// is kept byte for byte.
//
// A reply is the run of model items up to the token_count that closes it. A
// token_count whose totals did not grow closes a reply whose stream broke off:
// its items stay in the history, and the retry is a request of its own. Some
// versions write the token_count before the items of its reply; which way
// round a file is shows at its first one.
func readCodex(in *input) ([]*Session, error) {
	c := &codex{b: newBuilder(in, openai.Responses), first: true, hidden: map[ref]bool{}}
	for n, rec := range in.objects() {
		o := objectOf(rec)
		if !c.oldLine(n, o, rec) {
			c.line(n, parseTime(o.str("timestamp")), o.str("type"), o["payload"])
		}
	}
	c.flush()
	if c.withheld > 0 {
		in.note("%s without its words; what encrypted reasoning there was is not in the file", plural(c.withheld, "reasoning item"))
	}
	c.b.Messages = c.messages
	return []*Session{c.b.finish()}, nil
}

type codex struct {
	b        *builder
	model    string
	messages int
	withheld int

	reply    *furl.Exchange // the reply being read, nil between replies
	answered bool           // an output stood after its calls
	open     []codexCall    // calls without output

	brokeOff time.Time // when the stream of the reply before did
	begun    time.Time // when a session of the old form was, its only time

	first   bool        // no model item and no token_count has been read yet
	early   bool        // token counts stand before their replies
	pending *furl.Usage // of the reply to come, if early

	total, last codexUsage   // of the newest token_count
	compacted   *compaction  // waits for the size after it
	hidden      map[ref]bool // by a compaction
	turns       []ref        // where the conversation stood before the user's own words
}

type codexCall struct{ id, typ string }

type codexUsage struct {
	Input     int `json:"input_tokens"`
	Cached    int `json:"cached_input_tokens"`
	Output    int `json:"output_tokens"`
	Reasoning int `json:"reasoning_output_tokens"`
	Total     int `json:"total_tokens"`
}

// usage takes the cached part out of the input, which includes it.
func (u codexUsage) usage() furl.Usage {
	cached := min(u.Cached, u.Input)
	return furl.Usage{Input: u.Input - cached, CacheRead: cached, Output: u.Output, Reasoning: u.Reasoning}
}

func (c *codex) line(n int, at time.Time, typ string, payload []byte) {
	p := objectOf(payload)
	switch typ {
	case "session_meta":
		c.meta(p)
	case "turn_context":
		if m := p.str("model"); m != "" {
			c.model = m
		}
	case "response_item":
		c.item(n, at, p, payload)
	case "compacted":
		c.compaction(n, at, p)
	case "event_msg":
		switch p.str("type") {
		case "token_count":
			c.tokenCount(at, p["info"])
		case "thread_rolled_back":
			c.rollBack(at, p.num("num_turns"))
		}
	}
}

// meta reads the head of the file. A forked session repeats the heads of its
// ancestors behind its own.
func (c *codex) meta(p object) {
	if c.b.ID != "" {
		return
	}
	c.b.ID = p.str("id")
	c.b.Parent = p.object("source").object("subagent").object("thread_spawn").str("parent_thread_id")
	if text := p.object("base_instructions").str("text"); text != "" {
		c.b.Preamble = append(c.b.Preamble, furl.Block{Kind: furl.KindText, Text: text})
	}
}

func (c *codex) item(n int, at time.Time, p object, raw []byte) {
	typ, role := p.str("type"), p.str("role")
	switch {
	case typ == "":
		c.b.in.skip(n, "an item without a type")
		return
	case typ == "ghost_snapshot": // Codex's own note of the work tree, not sent
		return
	case typ == "message" && role != "assistant":
		c.messages++
		c.endReply()
		c.abortOpen(at, n)
		before := c.b.last
		if c.b.raw(at, n, raw) != 0 && role == "user" && !isCodexContext(p) {
			c.turns = append(c.turns, before)
		}
		return
	case strings.HasSuffix(typ, "_output"):
		c.answered = c.reply != nil
		c.closeCall(p.str("call_id"))
		c.b.raw(at, n, raw)
		return
	case typ == "message":
		c.messages++
	case typ == "reasoning" && p.str("encrypted_content") == "":
		c.withheld++
	}
	c.begin(at, n)
	if c.b.raw(at, n, raw) != 0 && strings.HasSuffix(typ, "_call") && p.has("call_id") {
		c.open = append(c.open, codexCall{p.str("call_id"), typ})
	}
}

// begin makes sure that a reply is open. Model items after an output, with no
// token_count between, belong to the next one.
func (c *codex) begin(at time.Time, line int) {
	if c.reply != nil && !c.answered && c.pending == nil {
		return
	}
	c.endReply()
	c.abortOpen(at, line)
	ex := furl.Exchange{Model: c.model}
	if c.pending != nil {
		ex.Usage, c.pending = *c.pending, nil
	}
	c.first = false
	c.reply = c.b.reply(at, ex)
	if e := &c.b.entries[c.b.last-1]; c.brokeOff.After(e.at) {
		e.at = c.brokeOff // when it was asked again
	}
}

func (c *codex) endReply() { c.reply, c.answered = nil, false }

func (c *codex) tokenCount(at time.Time, raw []byte) {
	var info *struct {
		Total codexUsage `json:"total_token_usage"`
		Last  codexUsage `json:"last_token_usage"`
	}
	if lenient(raw, &info) != nil || info == nil {
		return // rate limits only
	}
	if info.Total == c.total {
		if info.Last != c.last {
			c.sizeAfter(info.Last)
		} else if c.reply != nil && !c.answered && !c.early {
			c.brokeOff = at
			c.endReply()
		}
		c.last = info.Last
		return
	}
	if c.first {
		// Of a continued session the first count may be an old one.
		c.first, c.early = false, info.Total == info.Last
	}
	c.total, c.last = info.Total, info.Last
	u := info.Last.usage()
	switch {
	case c.early:
		c.flush()
		c.pending = &u
	case c.reply != nil:
		c.reply.Usage = u
		c.endReply()
	default: // a reply that left no item
		c.b.reply(at, furl.Exchange{Model: c.model, Usage: u})
	}
}

// flush records a request whose usage was announced but whose reply left
// nothing in the file.
func (c *codex) flush() {
	if c.pending != nil {
		c.b.reply(time.Time{}, furl.Exchange{Model: c.model, Usage: *c.pending})
		c.pending = nil
	}
}

// sizeAfter takes the estimate that Codex writes after a compaction: a total
// alone, in a last_token_usage whose other counters are zero.
func (c *codex) sizeAfter(u codexUsage) {
	if c.compacted != nil && u.Input == 0 && u.Output == 0 {
		c.compacted.after = u.Total
		c.compacted = nil
	}
}

func (c *codex) closeCall(id string) {
	for i := range c.open {
		if c.open[i].id == id {
			c.open = append(c.open[:i], c.open[i+1:]...)
			return
		}
	}
}

// abortOpen does what Codex does with calls that have no output when it builds
// the next request: it puts the output "aborted" behind them. A call of a kind
// without such an output is left to the builder.
func (c *codex) abortOpen(at time.Time, line int) {
	for _, call := range c.open {
		switch call.typ {
		case "function_call", "custom_tool_call":
			raw, _ := marshal(item{"type": call.typ + "_output", "call_id": call.id, "output": "aborted"})
			if c.b.raw(at, line, raw) != 0 {
				c.b.Results-- // it was not recorded
			}
		}
	}
	c.open = nil
}

// rollBack takes back the newest turns: the user stepped back in the list.
func (c *codex) rollBack(at time.Time, turns int) {
	if turns <= 0 || len(c.turns) == 0 {
		return
	}
	n := max(0, len(c.turns)-turns)
	c.b.rewind(at, c.turns[n])
	c.turns, c.open = c.turns[:n], nil
	c.endReply()
}

// isCodexContext reports whether a user message is one that Codex itself puts
// in: project instructions, the environment, a note about an abort.
func isCodexContext(p object) bool {
	var content []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(p["content"], &content) != nil {
		return false
	}
	for _, part := range content {
		text := strings.TrimSpace(part.Text)
		if !strings.HasPrefix(text, "<") && !strings.HasPrefix(text, "# AGENTS.md instructions") {
			return false
		}
	}
	return true
}
