package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// history is what an agent sends with every request: instructions, tools, and
// a conversation that grows by a step each time. It holds what gateways are
// known to lose: fields that no documentation has, an integer above 2^53, cache
// marks that move on, thinking with signatures.
type history struct {
	format furl.Format
	head   []byte // of a body, up to the list
	list   [][]byte
	step   int // of the next step
	seed   uint64
	size   int // of the list in bytes
}

// bigNumber is one that a float64 cannot hold.
const bigNumber = "9007199254740993"

// newHistory gives a history of about size bytes.
func newHistory(format furl.Format, seed uint64, size int, model string) *history {
	return newHistoryTold(format, seed, size, model, 1)
}

// newHistoryTold is newHistory with instructions and tools that are so many times as long as its
// 13 KB.
func newHistoryTold(format furl.Format, seed uint64, size int, model string, times int) *history {
	// No two conversations have the same replies and ids of calls: furl would take them for one
	// whose client has changed the rest.
	h := &history{format: format, seed: seed, step: int(seed) * 100_000}
	h.head = h.preamble(model, times)
	h.add(h.user(fmt.Sprintf("Session %d. %s", seed, prose(source(seed, 0), 300))))
	for h.size+len(h.head) < size {
		h.grow()
	}
	return h
}

func (h *history) add(items ...[]byte) {
	for _, item := range items {
		h.list = append(h.list, item)
		h.size += len(item) + 1
	}
}

// grow adds the answer that the upstream gives for the step, and a result.
func (h *history) grow() {
	h.add(assistant(h.format, h.step)...)
	h.add(h.result())
	h.step++
}

// preamble is a body up to the beginning of its list.
func (h *history) preamble(model string, times int) []byte {
	r := source(1, 1)
	system := prose(r, 6000*times)
	var tools []string
	for i := range 8 * times {
		schema := fmt.Sprintf(`{"type":"object","properties":{"path":{"type":"string","description":%s},"n":{"type":"integer","maximum":%s}},"required":["path"]}`, quote(prose(r, 200)), bigNumber)
		name, about := fmt.Sprintf("tool_%d", i), quote(prose(r, 500))
		switch h.format {
		case furl.FormatChat:
			tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%s,"parameters":%s}}`, name, about, schema))
		case furl.FormatResponses:
			tools = append(tools, fmt.Sprintf(`{"type":"function","name":%q,"description":%s,"parameters":%s}`, name, about, schema))
		default:
			tools = append(tools, fmt.Sprintf(`{"name":%q,"description":%s,"input_schema":%s}`, name, about, schema))
		}
	}
	list := "[" + strings.Join(tools, ",") + "]"
	unknown := fmt.Sprintf(`"x_unknown": {"n": %s, "s": "\u00e9 stays escaped"}`, bigNumber)
	switch h.format {
	case furl.FormatChat:
		h.add(fmt.Appendf(nil, `{"role":"system","content":%s}`, quote(system)))
		return fmt.Appendf(nil, `{"model":%q,%s,"tools":%s,"messages":[`, model, unknown, list)
	case furl.FormatResponses:
		return fmt.Appendf(nil, `{"model":%q,%s,"store":false,"include":["reasoning.encrypted_content"],"instructions":%s,"tools":%s,"input":[`, model, unknown, quote(system), list)
	}
	return fmt.Appendf(nil, `{"model":%q,"max_tokens":32000,%s,"thinking":{"type":"enabled","budget_tokens":8000},"system":[{"type":"text","text":%s,"cache_control":{"type":"ephemeral"}}],"tools":%s,"messages":[`, model, unknown, quote(system), list)
}

func (h *history) user(text string) []byte {
	switch h.format {
	case furl.FormatChat:
		return fmt.Appendf(nil, `{"role":"user","content":%s}`, quote(text))
	case furl.FormatResponses:
		return fmt.Appendf(nil, `{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, quote(text))
	}
	return fmt.Appendf(nil, `{"role":"user","content":[{"type":"text","text":%s,"x_unknown":%s}]}`, quote(text), bigNumber)
}

// result is what the step's tool gave.
func (h *history) result() []byte {
	r := source(h.seed, uint64(h.step)+1)
	text, id := quote(lines(r, 400+r.IntN(5000))), callID(h.step)
	switch h.format {
	case furl.FormatChat:
		return fmt.Appendf(nil, `{"role":"tool","tool_call_id":%q,"content":%s,"x_unknown":%s}`, id, text, bigNumber)
	case furl.FormatResponses:
		return fmt.Appendf(nil, `{"type":"function_call_output","call_id":%q,"output":%s}`, id, text)
	}
	return fmt.Appendf(nil, `{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":[{"type":"text","text":%s}],"x_unknown":%s}]}`, id, text, bigNumber)
}

func callID(step int) string { return fmt.Sprintf("call_%06d", step) }

// reply is what the upstream's model says in a step.
type reply struct {
	thinking, signature, text, name string
	args                            []byte
}

func replyOf(step int) reply {
	r := source(2, uint64(step))
	args := fmt.Sprintf(`{"path":"%s/%s_%d.go","n":%s,"why":%s}`, pick(r), pick(r), r.IntN(1000), bigNumber, quote(prose(r, 60)))
	return reply{prose(r, 250), secret(r, 300), prose(r, 120), fmt.Sprintf("tool_%d", r.IntN(8)), []byte(args)}
}

// assistant gives the reply of a step as a client sends it back.
func assistant(format furl.Format, step int) [][]byte {
	m, id := replyOf(step), callID(step)
	switch format {
	case furl.FormatChat:
		return [][]byte{fmt.Appendf(nil, `{"role":"assistant","content":%s,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`,
			quote(m.text), id, m.name, quote(string(m.args)))}
	case furl.FormatResponses:
		return [][]byte{
			fmt.Appendf(nil, `{"type":"reasoning","id":"rs_%s","summary":[{"type":"summary_text","text":%s}],"encrypted_content":%q}`, id, quote(m.thinking), m.signature),
			fmt.Appendf(nil, `{"type":"message","id":"msg_%s","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, id, quote(m.text)),
			fmt.Appendf(nil, `{"type":"function_call","id":"fc_%s","call_id":%q,"name":%q,"arguments":%s,"status":"completed"}`, id, id, m.name, quote(string(m.args))),
		}
	}
	return [][]byte{fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"thinking","thinking":%s,"signature":%q},{"type":"text","text":%s},{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`,
		quote(m.thinking), m.signature, quote(m.text), id, m.name, m.args)}
}

// body gives the request. In Anthropic's format the newest message bears a
// cache mark, as clients set it, so that it moves on with each request.
func (h *history) body(stream bool) []byte {
	out := make([]byte, 0, len(h.head)+h.size+100)
	out = append(out, h.head...)
	for i, item := range h.list {
		if i > 0 {
			out = append(out, ',')
		}
		if h.format == furl.FormatAnthropic && i == len(h.list)-1 {
			item = marked(item)
		}
		out = append(out, item...)
	}
	return fmt.Appendf(out, `],"stream":%t}`, stream)
}

// marked sets a cache mark on a message's last block.
func marked(item []byte) []byte {
	return append(bytes.TrimSuffix(item, []byte("}]}"))[:len(item)-3:len(item)-3], `,"cache_control":{"type":"ephemeral"}}]}`...)
}

// path is where the format's requests go.
func path(format furl.Format) string {
	switch format {
	case furl.FormatChat:
		return "/v1/chat/completions"
	case furl.FormatResponses:
		return "/v1/responses"
	}
	return "/v1/messages"
}

func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be
	return strings.TrimSpace(b.String())
}
