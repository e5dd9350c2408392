package sim

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
)

// item is one finished item of the output, with its parts in a stream.
type item struct {
	id    string
	whole []byte
	begun []byte // in progress, without content
	parts []itemPart
}

// itemPart is what a stream adds to an item in pieces.
type itemPart struct {
	added, done string // events around it; "" for arguments, which are not a part
	part        string // the part, as a format for its text
	delta, full string // events
	field       string // of the full event
	pieces      []string
	text        string
	index       string // name of its index
	extra       string // further fields of delta and full events
}

// seal assigns the items' ids and signs their encrypted content.
func (responses) seal(c *call, a *answer) {
	for i := range a.Blocks {
		b := &a.Blocks[i]
		if b.Kind == furl.KindThinking {
			s := seal{model: modelMark(c.model.ID), reply: c.replyMark(), index: uint8(i)}
			b.Name = s.sign("encrypted", "")
		}
	}
}

// items converts the blocks of an answer into items.
func (c *call) items(a *answer) []item {
	var out []item
	for i := range a.Blocks {
		switch b := &a.Blocks[i]; b.Kind {
		case furl.KindText:
			out = append(out, c.messageItem(b))
		case furl.KindThinking:
			out = append(out, c.reasoningItem(b))
		case furl.KindCall:
			out = append(out, c.callItem(b))
		case furl.KindOpaque:
			raw := []byte(b.Text)
			out = append(out, item{id: stringField(raw, "id"), whole: raw, begun: raw})
		}
	}
	return out
}

func (c *call) messageItem(b *furl.Block) item {
	id := c.hexID("msg_")
	return item{
		id:    id,
		begun: fmt.Appendf(nil, `{"id":%q,"type":"message","status":"in_progress","content":[],"role":"assistant"}`, id),
		whole: fmt.Appendf(nil, `{"id":%q,"type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%s}],"role":"assistant"}`,
			id, str(b.Text)),
		parts: []itemPart{{
			added: "response.content_part.added", done: "response.content_part.done",
			part:  `{"type":"output_text","annotations":[],"logprobs":[],"text":%s}`,
			delta: "response.output_text.delta", full: "response.output_text.done", field: "text", extra: `,"logprobs":[]`,
			pieces: c.deltas(b.Text), text: b.Text, index: "content_index",
		}},
	}
}

func (c *call) reasoningItem(b *furl.Block) item {
	id := c.hexID("rs_")
	secret := ""
	if c.facts.encrypted {
		secret = fmt.Sprintf(`,"encrypted_content":%q`, b.Name)
	}
	it := item{
		id:    id,
		begun: fmt.Appendf(nil, `{"id":%q,"type":"reasoning","summary":[]%s}`, id, secret),
		whole: fmt.Appendf(nil, `{"id":%q,"type":"reasoning","summary":[{"type":"summary_text","text":%s}]%s}`, id, str(b.Text), secret),
		parts: []itemPart{{
			added: "response.reasoning_summary_part.added", done: "response.reasoning_summary_part.done",
			part:  `{"type":"summary_text","text":%s}`,
			delta: "response.reasoning_summary_text.delta", full: "response.reasoning_summary_text.done", field: "text",
			pieces: c.deltas(b.Text), text: b.Text, index: "summary_index",
		}},
	}
	if b.Text == "" {
		it.whole, it.parts = it.begun, nil
	}
	return it
}

// namespaceOf returns the namespace of a tool, "" if it has none.
func namespaceOf(tool string, preamble []furl.Block) (namespace string) {
	for i := range preamble {
		b := &preamble[i]
		if b.Kind != furl.KindOpaque {
			continue
		}
		if b.ID == tool {
			return ""
		}
		var group struct {
			Type  string `json:"type"`
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		}
		if namespace != "" || json.Unmarshal([]byte(b.Text), &group) != nil || group.Type != "namespace" {
			continue
		}
		for _, t := range group.Tools {
			if t.Name == tool {
				namespace = b.ID
			}
		}
	}
	return namespace
}

func (c *call) callItem(b *furl.Block) item {
	id := c.hexID("fc_")
	args := string(compact(b.Args))
	kind, field := "function_call", "arguments"
	if len(b.Args) > 0 && b.Args[0] == '"' { // a custom tool
		kind, field, id = "custom_tool_call", "input", c.hexID("ctc_")
		if json.Unmarshal(b.Args, &args) != nil {
			args = ""
		}
	}
	namespace := ""
	if name := namespaceOf(b.Name, c.req.Preamble); name != "" {
		namespace = `,"namespace":` + string(str(name))
	}
	write := func(status, args string) []byte {
		return fmt.Appendf(nil, `{"id":%q,"type":%q,"status":%q,%q:%s,"call_id":%s,"name":%s%s}`, id, kind, status, field, str(args), str(b.ID), str(b.Name), namespace)
	}
	return item{
		id: id, begun: write("in_progress", ""), whole: write("completed", args),
		parts: []itemPart{{
			delta: "response." + kind + "_" + field + ".delta", full: "response." + kind + "_" + field + ".done", field: field,
			pieces: c.fragments(args), text: args,
		}},
	}
}

// response returns the response object in one of its states.
func (c *call) response(a *answer, status string, output [][]byte) []byte {
	list := listOf(output)
	usage, details := "null", "null"
	if status != "in_progress" {
		usage = string(object(c.responsesUsage(a.Usage)))
	}
	if status == "incomplete" {
		details = `{"reason":"max_output_tokens"}`
		if a.Stop == "refusal" {
			details = `{"reason":"content_filter"}`
		}
	}
	most := []byte("null")
	if c.req.MaxTokens > 0 {
		most = fmt.Append(nil, c.req.MaxTokens)
	}
	echo := func(name, none string) []byte {
		if raw := c.facts.echo[name]; raw != nil {
			return raw
		}
		return []byte(none)
	}
	previous := []byte("null")
	if c.facts.previous != "" {
		previous = str(c.facts.previous)
	}
	return fmt.Appendf(nil, `{"id":%q,"object":"response","created_at":%d,"status":%q,"background":false,"error":null,"incomplete_details":%s,`+
		`"instructions":%s,"max_output_tokens":%s,"model":%s,"output":%s,"parallel_tool_calls":true,"previous_response_id":%s,`+
		`"prompt_cache_key":%s,"reasoning":%s,"service_tier":%s,"store":%t,"temperature":1.0,"text":{"format":{"type":"text"}},`+
		`"tool_choice":%s,"tools":%s,"top_p":1.0,"truncation":"disabled","usage":%s,"user":null,"metadata":{}}`,
		a.ID, a.Created, status, details, echo("instructions", "null"), most, str(c.req.Model), list, previous,
		echo("prompt_cache_key", "null"), echo("reasoning", `{"effort":null,"summary":null}`), str(cmp.Or(c.facts.terms.Tier, "default")), c.facts.stored,
		echo("tool_choice", `"auto"`), echo("tools", "[]"), usage)
}

type responsesUsage struct {
	Input  int              `json:"input_tokens"`
	In     promptDetails    `json:"input_tokens_details"`
	Output int              `json:"output_tokens"`
	Out    reasoningDetails `json:"output_tokens_details"`
	Total  int              `json:"total_tokens"`
}

func (c *call) responsesUsage(u furl.Usage) responsesUsage {
	return responsesUsage{
		Input: u.Prompt(), In: c.promptDetails(u),
		Output: u.Output, Out: reasoningDetails{u.Reasoning},
		Total: u.Prompt() + u.Output,
	}
}

type reasoningDetails struct {
	Reasoning int `json:"reasoning_tokens"`
}

// status returns the final status of a response.
func (a *answer) status() string {
	switch a.Stop {
	case "max_tokens", "model_context_window_exceeded", "refusal":
		return "incomplete"
	}
	return "completed"
}

func (responses) whole(c *call, a *answer) []byte {
	var output [][]byte
	for _, it := range c.items(a) {
		output = append(output, it.whole)
	}
	whole := c.response(a, a.status(), output)
	c.keep(a, output, whole)
	return whole
}

func (responses) events(c *call, a *answer) []event {
	var out []event
	add := func(name, format string, args ...any) {
		data := fmt.Appendf(nil, `{"type":%q,"sequence_number":%d`, name, len(out))
		data = append(fmt.Appendf(append(data, ','), format, args...), '}')
		out = append(out, event{name: name, data: data})
	}
	add("response.created", `"response":%s`, c.response(a, "in_progress", nil))
	add("response.in_progress", `"response":%s`, c.response(a, "in_progress", nil))
	var output [][]byte
	for n, it := range c.items(a) {
		add("response.output_item.added", `"output_index":%d,"item":%s`, n, it.begun)
		for _, p := range it.parts {
			at := fmt.Sprintf(`"item_id":%q,"output_index":%d`, it.id, n)
			if p.index != "" {
				at += fmt.Sprintf(`,%q:0`, p.index)
				add(p.added, `%s,"part":%s`, at, fmt.Sprintf(p.part, `""`))
			}
			for _, text := range p.pieces {
				add(p.delta, `%s,"delta":%s%s`, at, str(text), p.extra)
			}
			add(p.full, `%s,%q:%s%s`, at, p.field, str(p.text), p.extra)
			if p.index != "" {
				add(p.done, `%s,"part":%s`, at, fmt.Sprintf(p.part, str(p.text)))
			}
		}
		add("response.output_item.done", `"output_index":%d,"item":%s`, n, it.whole)
		output = append(output, it.whole)
	}
	status := a.status()
	whole := c.response(a, status, output)
	c.keep(a, output, whole)
	add("response."+status, `"response":%s`, whole)
	return out
}
