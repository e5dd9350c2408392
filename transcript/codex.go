package transcript

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/openai"
)

// readCodex reads a Codex rollout: JSON Lines of {timestamp, type, payload}.
// A response_item is an item of the Responses API as sent on the wire, and is
// kept byte for byte.
//
// A reply is the run of model items up to the token_count that closes it. A
// token_count whose totals did not grow closes a reply whose stream was
// interrupted: its items stay in the history, and the retry is a separate
// request. Some versions write the token_count before the items of its reply;
// the first token_count of a file shows which order it uses. Since version 0.171
// a token_usage_record closes the reply instead, and repeats in the token_count
// after it.
func readCodex(in *input) ([]*Session, error) {
	c := &codex{b: newBuilder(in, openai.Responses), first: true, marks: make(map[string][]codexMark)}
	own := rolloutOf(in.name)
	c.thread = own.thread
	if in.parts.first() {
		for _, f := range in.earlierRollouts(own) {
			c.other(f, math.MaxInt)
		}
	}
	c.file(in, own, math.MaxInt)
	if c.withheld > 0 {
		in.note("%s without text; encrypted reasoning is not in the file", plural(c.withheld, "reasoning item"))
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
	answered bool           // an output followed its calls
	open     []codexCall    // calls without output
	unplaced *furl.Exchange // a recorded request whose reply left no item so far

	brokeOff time.Time // when the stream of the previous reply was interrupted
	begun    time.Time // start of a session in the old format, its only time

	first       bool        // no model item and no token_count read yet
	countsFirst bool        // token counts precede their replies
	pending     *furl.Usage // of the next reply, if early

	total, last codexUsage  // of the newest token_count
	recorded    *codexUsage // the totals after the newest token_usage_record
	compacted   *compaction // waits for the size after it
	turns       []codexTurn

	thread    string                 // of the file, if its name has it
	marks     map[string][]codexMark // by the ids of rollouts
	loading   []string               // rollouts that are being read
	inherited bool                   // the lines are a sub-agent's copy of its parent's history
	ownFrom   int                    // the first ordinal that is not
}

// codexTurn is a message typed by the user, and the position before it.
type codexTurn struct{ before, message ref }

type codexCall struct{ id, typ string }

type codexUsage struct{ Input, Cached, CacheWrite, Output, Reasoning, Total int }

// readCodexUsage consumes a usage. Other values than objects have none.
func readCodexUsage(r *rawjson.Reader) (u codexUsage) {
	if r.Kind() != '{' {
		r.Skip()
		return u
	}
	for key := range r.Fields() {
		switch string(key) {
		case "input_tokens":
			u.Input, _ = r.Int()
		case "cached_input_tokens":
			u.Cached, _ = r.Int()
		case "cache_write_input_tokens":
			u.CacheWrite, _ = r.Int()
		case "output_tokens":
			u.Output, _ = r.Int()
		case "reasoning_output_tokens":
			u.Reasoning, _ = r.Int()
		case "total_tokens":
			u.Total, _ = r.Int()
		}
	}
	return u
}

// codexCount is the info of a token_count.
type codexCount struct {
	Total, Last codexUsage
	Window      int // what Codex lets a prompt take: 95% of the model's window
}

// readCodexCount reads the info of a token_count. ok is false if there is none.
func readCodexCount(raw []byte) (info codexCount, ok bool) {
	r := rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return info, false
	}
	for key := range r.Fields() {
		switch string(key) {
		case "total_token_usage":
			info.Total = readCodexUsage(r)
		case "last_token_usage":
			info.Last = readCodexUsage(r)
		case "model_context_window":
			info.Window, _ = r.Int()
		}
	}
	return info, r.Err() == nil
}

// usage subtracts the cached and written tokens from the input, which includes them.
func (u codexUsage) usage() furl.Usage {
	cached := min(u.Cached, u.Input)
	written := min(u.CacheWrite, u.Input-cached)
	return furl.Usage{Input: u.Input - cached - written, CacheRead: cached, CacheWrite: written, Output: u.Output, Reasoning: u.Reasoning}
}

func (c *codex) line(n int, at time.Time, typ string, p object, payload []byte) {
	switch typ {
	case "session_meta":
		c.meta(p)
	case "token_usage_record":
		c.usageRecord(p)
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
			c.rateLimits(p["rate_limits"])
		case "thread_rolled_back":
			c.rollBack(at, p.num("num_turns"))
		case "thread_name_updated":
			if name := p.str("thread_name"); name != "" {
				c.b.Title = name
			}
		}
	}
}

// meta reads the session header. A forked session repeats the headers of its
// ancestors after its own, a sub-agent that of its parent.
func (c *codex) meta(p object) {
	if c.b.ID != "" {
		if id := p.str("id"); id != "" && len(c.loading) == 1 && len(c.b.entries) == 0 {
			c.b.root = id
			if c.b.ForkOf == "" && c.b.Parent == "" && id != c.b.ID {
				c.b.ForkOf = id
			}
		}
		return
	}
	c.b.ID, c.b.Project = p.str("id"), p.str("cwd")
	c.b.root = c.b.ID
	c.b.Parent = cmp.Or(p.object("source").object("subagent").object("thread_spawn").str("parent_thread_id"), p.str("parent_thread_id"))
	if c.b.Parent == "" {
		c.b.ForkOf = p.str("forked_from_id")
	}
	c.ownFrom = p.num("subagent_history_start_ordinal")
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
	case typ == "ghost_snapshot": // Codex's record of the work tree, not sent
		return
	case typ == "message" && role != "assistant", typ == "agent_message": // of another agent
		c.messages++
		c.endReply()
		c.abortOpen(at, n)
		c.placeRequest()
		before := c.b.last
		if r := c.b.raw(at, n, raw); r != 0 && role == "user" && !isCodexContext(p) {
			c.turns = append(c.turns, codexTurn{before, r})
		}
		return
	case strings.HasSuffix(typ, "_output"):
		c.answered = c.reply != nil
		c.closeCall(p.str("call_id"))
		c.b.raw(at, n, c.brief(p, raw))
		return
	case typ == "message":
		c.messages++
	case typ == "reasoning" && p.str("encrypted_content") == "":
		c.withheld++
	}
	c.begin(at, n)
	if c.b.raw(at, n, c.brief(p, raw)) != 0 && strings.HasSuffix(typ, "_call") && p.has("call_id") {
		c.open = append(c.open, codexCall{p.str("call_id"), typ})
	}
}

// begin opens a reply if none is open. Model items after an output, without a
// token_count between, belong to the next reply.
func (c *codex) begin(at time.Time, line int) {
	if c.inherited { // the request is the parent's
		return
	}
	if c.reply != nil && !c.answered && c.pending == nil {
		return
	}
	c.endReply()
	c.abortOpen(at, line)
	c.placeRequest()
	ex := furl.Exchange{Model: c.model}
	if c.pending != nil {
		ex.Usage, c.pending = *c.pending, nil
	}
	c.first = false
	c.reply = c.b.reply(at, ex)
	if e := &c.b.entries[c.b.last-1]; c.brokeOff.After(e.at) {
		e.at = c.brokeOff // the time of the retry
	}
}

func (c *codex) endReply() { c.reply, c.answered = nil, false }

// usageRecord reads the usage of one response.
func (c *codex) usageRecord(p object) {
	if p.kind("usage") != '{' || c.inherited {
		return
	}
	used := readCodexUsage(rawjson.NewReader(p["usage"]))
	c.placeRequest()
	if p.kind("thread_token_usage") == '{' {
		total := readCodexUsage(rawjson.NewReader(p["thread_token_usage"]))
		c.recorded = &total
	}
	if c.reply == nil {
		c.unplaced = &furl.Exchange{Model: c.model, ResponseID: p.str("response_id"), Usage: used.usage()}
		return
	}
	c.reply.Usage, c.reply.ResponseID = used.usage(), p.str("response_id")
	c.endReply()
}

// placeRequest adds a request whose reply left no item, unless it was that of a compaction.
func (c *codex) placeRequest() {
	if c.unplaced != nil {
		c.b.reply(time.Time{}, *c.unplaced)
		c.unplaced = nil
	}
}

func (c *codex) tokenCount(at time.Time, raw []byte) {
	info, ok := readCodexCount(raw)
	if !ok || c.inherited {
		return // rate limits only, or counts of the parent
	}
	c.b.window(c.model, info.Window)
	if c.recorded != nil && info.Total.Total <= c.recorded.Total {
		if info.Total == c.total && info.Last != c.last {
			c.sizeAfter(info.Last)
		}
		if c.first, c.total = false, info.Total; c.unplaced == nil { // else that of a compaction
			c.last = info.Last
		}
		return
	}
	if info.Total == c.total {
		if info.Last != c.last {
			c.sizeAfter(info.Last)
		} else if c.reply != nil && !c.answered && !c.countsFirst {
			c.brokeOff = at
			c.endReply()
		}
		c.last = info.Last
		return
	}
	if c.first {
		// The first count of a continued session may be an old one.
		c.first, c.countsFirst = false, info.Total == info.Last
	}
	c.total, c.last = info.Total, info.Last
	u := info.Last.usage()
	switch {
	case c.countsFirst:
		c.flush()
		c.pending = &u
	case c.reply != nil:
		c.reply.Usage = u
		c.endReply()
	default: // a reply that left no item
		c.b.reply(at, furl.Exchange{Model: c.model, Usage: u})
	}
}

// flush records a request whose usage was announced but whose reply is not in
// the file.
func (c *codex) flush() {
	c.placeRequest()
	if c.pending != nil {
		c.b.reply(time.Time{}, furl.Exchange{Model: c.model, Usage: *c.pending})
		c.pending = nil
	}
}

// sizeAfter reads the estimate that Codex writes after a compaction: a
// last_token_usage with only a total, all other counters zero.
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

// abortOpen does what Codex does with calls without an output when it builds
// the next request: it adds the output "aborted" after them. Calls of a kind
// without such an output are left to the builder.
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

// rollBack removes the newest turns, as the user did in the list of messages.
func (c *codex) rollBack(at time.Time, turns int) {
	if turns <= 0 || len(c.turns) == 0 {
		return
	}
	n := max(0, len(c.turns)-turns)
	c.b.rewind(at, c.turns[n].before)
	c.turns, c.open = c.turns[:n], nil
	c.endReply()
}

// isCodexContext reports whether a user message was inserted by Codex itself:
// project instructions, the environment, a note about an abort.
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
