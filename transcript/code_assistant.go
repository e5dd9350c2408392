package transcript

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// code-assistant (stippi/code-assistant) stores a session as one JSON object
// with a tree of messages, message_nodes, and the path in it that is sent,
// active_path. Older versions have a list, messages. Content blocks are close to
// Anthropic's. A compaction summary replaces what is before it on its path. Some
// versions leave the content of results empty and keep the outputs of the tools in
// tool_executions.

func isCodeAssistant(p *probe) bool {
	return p.is('{') && isCodeAssistantSession(p.objects[0])
}

func isCodeAssistantSession(o object) bool {
	return o.has("id", "created_at", "updated_at", "tool_executions") && (o.kind("message_nodes") == '{' || o.kind("messages") == '[')
}

// codeAssistantBeside is the list of sessions next to them.
var codeAssistantBeside = &format{
	name:   "code-assistant-beside",
	agent:  "code-assistant",
	detect: func(p *probe) bool { return p.is('[') && first(p).has("updated_at", "message_count", "tool_syntax") },
}

// caTime is a time as Rust writes it.
type caTime struct {
	Secs  int64 `json:"secs_since_epoch"`
	Nanos int64 `json:"nanos_since_epoch"`
}

func (t caTime) time() time.Time {
	if t.Secs <= 0 || t.Secs > 1e11 {
		return time.Time{}
	}
	return time.Unix(t.Secs, t.Nanos).UTC()
}

type caNode struct {
	ID        uint64    `json:"id"`
	Parent    *uint64   `json:"parent_id"`
	CreatedAt caTime    `json:"created_at"`
	Message   caMessage `json:"message"`
}

type caMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Usage   *struct {
		Input      int `json:"input_tokens"`
		Output     int `json:"output_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
	} `json:"usage"`
	Summary bool `json:"is_compaction_summary"`
	New     bool `json:"is_new_context"`
}

type caBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	MediaType string          `json:"media_type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	CallID    string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	EndTime   caTime          `json:"end_time"`
}

func readCodeAssistant(in *input) ([]*Session, error) {
	var sessions []*Session
	for line, rec := range in.objects() {
		sessions = append(sessions, readCASession(in, line, rec))
	}
	return sessions, nil
}

func readCASession(in *input, line int, rec []byte) *Session {
	o := objectOf(rec)
	model := o.object("model_config").str("model_name")
	c := &codeAssistant{scribe: newScribe(in, wireOf(model, furl.FormatResponses), model), line: line, model: model,
		outputs: make(map[string]json.RawMessage), calls: make(map[string]string)}
	c.b.ID, c.b.Title = o.str("id"), headline(o.str("name"))
	c.b.Project = cmp.Or(o.object("config").str("init_path"), o.str("init_path"))
	for _, raw := range listOf(o["tool_executions"]) {
		e := objectOf(raw)
		if id := e.object("tool_request").str("id"); id != "" {
			c.outputs[id] = json.RawMessage(e["result_json"])
		}
	}
	nodes := c.nodes(o)
	after := make(map[uint64]ref, len(nodes)) // the end of each node
	var newest uint64
	for i := range nodes {
		n := &nodes[i]
		parent := uint64(0)
		if n.Parent != nil {
			parent = *n.Parent
		}
		if i > 0 && parent != newest {
			if _, ok := after[parent]; !ok && parent != 0 {
				in.skip(line, "message %d: unknown parent %d", n.ID, parent)
				continue
			}
			c.settle()
			c.b.rewind(n.CreatedAt.time(), after[parent])
		}
		c.message(n)
		newest = n.ID
		c.settle()
		after[n.ID] = c.b.last
	}
	c.settle()
	if path := listOf(o["active_path"]); len(path) > 0 {
		id, _ := strconv.ParseUint(string(path[len(path)-1]), 10, 64)
		if at, ok := after[id]; ok && id != newest {
			c.b.rewind(time.Time{}, at)
		}
	}
	out := c.finish()
	out.Messages = len(nodes)
	return out
}

// nodes returns the messages in the order of their ids.
func (c *codeAssistant) nodes(o object) (nodes []caNode) {
	add := func(raw []byte) *caNode {
		nodes = append(nodes, caNode{})
		n := &nodes[len(nodes)-1]
		if err := lenient(raw, n); err != nil {
			c.b.in.skip(c.line, "message %d: %v", len(nodes), err)
		}
		return n
	}
	if o.kind("message_nodes") == '{' {
		r := rawjson.NewReader(o["message_nodes"])
		for range r.Fields() {
			raw := r.Raw()
			if raw == nil || !c.b.in.countLine() {
				break
			}
			add(raw)
		}
		if err := r.End(); err != nil {
			c.b.in.skip(c.line, "after message %d: %v", len(nodes), err)
		}
		slices.SortStableFunc(nodes, func(a, b caNode) int { return cmp.Compare(a.ID, b.ID) })
	}
	if len(nodes) > 0 || o.kind("messages") != '[' {
		return nodes
	}
	for _, raw := range c.b.in.elements(o["messages"], "") {
		nodes = append(nodes, caNode{})
		n := &nodes[len(nodes)-1]
		if err := lenient(raw, &n.Message); err != nil {
			c.b.in.skip(c.line, "message %d: %v", len(nodes), err)
		}
		if n.ID = uint64(len(nodes)); n.ID > 1 {
			before := n.ID - 1
			n.Parent = &before
		}
	}
	return nodes
}

type codeAssistant struct {
	*scribe
	line    int
	model   string
	outputs map[string]json.RawMessage // of the tools, by the ids of the calls
	calls   map[string]string          // ids of calls in the file, their wire ids
}

func (c *codeAssistant) message(n *caNode) {
	at, m := n.CreatedAt.time(), &n.Message
	pieces := c.pieces(m.Content)
	switch {
	case m.Summary:
		c.settle()
		msgs, err := c.r.user(pieces)
		if err != nil || len(msgs) == 0 {
			c.b.in.skip(c.line, "message %d: a summary without content: %v", n.ID, err)
			return
		}
		c.b.compact(at, c.line, compaction{all: true, show: msgs, stage: "compact", summary: &furl.Summary{Text: textOfBlocks(msgs[0])}})
	case m.Role == "assistant":
		ex := furl.Exchange{Model: c.model}
		if u := m.Usage; u != nil {
			ex.Usage = furl.Usage{Input: u.Input, Output: u.Output, CacheWrite: u.CacheWrite, CacheRead: u.CacheRead}
		}
		var ids []string
		for _, p := range pieces {
			ids = append(ids, p.id)
		}
		c.reply(at, ex)
		c.assistant(at, c.line, pieces)
		for i, p := range pieces {
			if p.kind == furl.KindCall {
				c.calls[ids[i]] = p.id
			}
		}
	case m.Role == "user":
		for _, p := range pieces {
			if p.kind == furl.KindResult {
				p.id = cmp.Or(c.calls[p.id], p.id)
				c.result(at, c.line, p)
			}
		}
		if rest := slices.DeleteFunc(pieces, func(p piece) bool { return p.kind == furl.KindResult }); len(rest) > 0 {
			c.user(at, c.line, rest...)
		}
	default:
		c.b.in.skip(c.line, "message %d: unknown role %q", n.ID, m.Role)
	}
}

func (c *codeAssistant) pieces(content json.RawMessage) (list []piece) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return append(list, words(text))
	}
	for _, raw := range listOf(content) {
		var b caBlock
		if err := lenient(raw, &b); err != nil {
			continue
		}
		switch b.Type {
		case "text":
			if b.Text != "" {
				list = append(list, words(b.Text))
			}
		case "thinking":
			list = append(list, piece{kind: furl.KindThinking, text: b.Thinking, signature: b.Signature})
		case "redacted_thinking":
			list = append(list, piece{kind: furl.KindThinking, signature: b.Data, itemID: b.ID, redacted: true})
		case "image":
			list = append(list, piece{kind: furl.KindImage, images: []picture{{mime: b.MediaType, data: b.Data}}})
		case "tool_use":
			list = append(list, piece{kind: furl.KindCall, id: b.ID, name: b.Name, args: b.Input})
		case "tool_result":
			list = append(list, c.output(&b))
		default:
			list = append(list, words(string(raw))) // kept as text
		}
	}
	return list
}

// output reads a result. Its text is that of the tool's output if it is empty.
func (c *codeAssistant) output(b *caBlock) piece {
	p := piece{kind: furl.KindResult, id: b.CallID, failed: b.IsError}
	if json.Unmarshal(b.Content, &p.text) != nil {
		p.text = textOfParts(b.Content)
		for _, part := range listOf(b.Content) {
			if o := objectOf(part); o.str("type") == "image" {
				src := o.object("source")
				p.images = append(p.images, picture{mime: src.str("media_type"), data: src.str("data")})
			}
		}
	}
	if out := c.outputs[b.CallID]; p.text == "" && len(p.images) == 0 && len(out) > 0 {
		if json.Unmarshal(out, &p.text) != nil {
			p.text = string(rawjson.Compact(nil, out))
		}
	}
	return p
}
