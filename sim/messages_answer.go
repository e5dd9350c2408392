package sim

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// The types of an answer of Messages, in the provider's order of fields.

type messageShape struct {
	Model             string            `json:"model"`
	ID                string            `json:"id"`
	Type              string            `json:"type"`
	Role              string            `json:"role"`
	Content           []json.RawMessage `json:"content"`
	StopReason        *string           `json:"stop_reason"`
	StopSequence      *string           `json:"stop_sequence"`
	Usage             messageUsage      `json:"usage"`
	ContextManagement *appliedShape     `json:"context_management,omitempty"`
	Transformations   []transformation  `json:"input_transformations,omitempty"`
}

type messageUsage struct {
	Input         int             `json:"input_tokens"`
	CacheWritten  int             `json:"cache_creation_input_tokens"`
	CacheRead     int             `json:"cache_read_input_tokens"`
	CacheCreation *cacheCreation  `json:"cache_creation,omitempty"`
	Output        int             `json:"output_tokens"`
	Details       *outputDetails  `json:"output_tokens_details,omitempty"`
	Tier          string          `json:"service_tier,omitempty"`
	Speed         string          `json:"speed,omitempty"`
	Geo           string          `json:"inference_geo,omitempty"`
	Iterations    []iterationItem `json:"iterations,omitempty"`
}

type cacheCreation struct {
	Short int `json:"ephemeral_5m_input_tokens"`
	Long  int `json:"ephemeral_1h_input_tokens"`
}

type outputDetails struct {
	Thinking int `json:"thinking_tokens"`
}

type iterationItem struct {
	Type         string `json:"type"`
	Input        int    `json:"input_tokens"`
	CacheWritten int    `json:"cache_creation_input_tokens"`
	CacheRead    int    `json:"cache_read_input_tokens"`
	Output       int    `json:"output_tokens"`
}

type appliedShape struct {
	Applied []appliedEdit `json:"applied_edits"`
}

func (c *call) usageShape(u furl.Usage, output int) messageUsage {
	s := messageUsage{
		Input:         u.Input,
		CacheWritten:  u.CacheWrite + u.CacheWrite1h,
		CacheRead:     u.CacheRead,
		CacheCreation: &cacheCreation{u.CacheWrite, u.CacheWrite1h},
		Output:        output,
		Tier:          "standard",
		Speed:         c.facts.terms.Speed,
		Geo:           c.facts.terms.Geo,
	}
	return s
}

func (c *call) management() *appliedShape {
	if c.facts.management == nil {
		return nil
	}
	s := &appliedShape{Applied: c.facts.edits.applied}
	if s.Applied == nil {
		s.Applied = []appliedEdit{}
	}
	return s
}

func (messages) whole(c *call, a *answer) []byte {
	m := messageShape{
		Model: c.req.Model, ID: a.ID, Type: "message", Role: "assistant",
		Content:           []json.RawMessage{},
		StopReason:        &a.Stop,
		Usage:             c.usageShape(a.Usage, a.Usage.Output),
		ContextManagement: c.management(),
		Transformations:   c.facts.dropped,
	}
	m.Usage.Iterations = c.iterations()
	if a.Usage.Reasoning > 0 {
		m.Usage.Details = &outputDetails{a.Usage.Reasoning}
	}
	if a.StopSeq != "" {
		m.StopSequence = &a.StopSeq
	}
	for i := range a.Blocks {
		m.Content = append(m.Content, wholeBlock(&a.Blocks[i]))
	}
	return object(m)
}

// wholeBlock returns a content block of an answer.
func wholeBlock(b *furl.Block) []byte {
	switch b.Kind {
	case furl.KindText:
		return fmt.Appendf(nil, `{"type":"text","text":%s}`, str(b.Text))
	case furl.KindThinking:
		if b.Name == redacted {
			return fmt.Appendf(nil, `{"type":"redacted_thinking","data":%s}`, str(b.ID))
		}
		return fmt.Appendf(nil, `{"type":"thinking","thinking":%s,"signature":%s}`, str(b.Text), str(b.ID))
	case furl.KindCall:
		return fmt.Appendf(nil, `{"type":"tool_use","id":%s,"name":%s,"input":%s}`, str(b.ID), str(b.Name), compact(b.Args))
	}
	return []byte(b.Text) // a block of another type, as JSON
}

// compact returns JSON without white space; invalid JSON becomes an empty
// object.
func compact(raw []byte) []byte {
	var buf bytes.Buffer
	if json.Compact(&buf, raw) != nil {
		return []byte("{}")
	}
	return buf.Bytes()
}

func (messages) events(c *call, a *answer) []event {
	var out []event
	add := func(name, format string, args ...any) {
		out = append(out, event{name: name, data: fmt.Appendf(nil, format, args...)})
	}
	begun := messageShape{
		Model: c.req.Model, ID: a.ID, Type: "message", Role: "assistant", Content: []json.RawMessage{},
		Usage: c.usageShape(a.Usage, 1), Transformations: c.facts.dropped,
	}
	add("message_start", `{"type":"message_start","message":%s}`, object(begun))
	for i := 0; i < len(a.Blocks); {
		end := i + 1
		for c.interleaves() && a.Blocks[i].Kind == furl.KindCall && end < len(a.Blocks) && a.Blocks[end].Kind == furl.KindCall {
			end++
		}
		deltas := make([][][]byte, end-i)
		for n := range deltas {
			var start []byte
			start, deltas[n] = c.blockDeltas(&a.Blocks[i+n])
			add("content_block_start", `{"type":"content_block_start","index":%d,"content_block":%s}`, i+n, start)
			if i+n == 0 {
				out = append(out, event{name: "ping", data: []byte(pingData), ping: true})
			}
		}
		byTurns(deltas, func(n int, d []byte) {
			add("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":%s}`, i+n, d)
		})
		for n := range deltas {
			add("content_block_stop", `{"type":"content_block_stop","index":%d}`, i+n)
		}
		i = end
	}
	end := struct {
		Type  string `json:"type"`
		Delta struct {
			StopReason   string  `json:"stop_reason"`
			StopSequence *string `json:"stop_sequence"`
		} `json:"delta"`
		Usage             messageUsage  `json:"usage"`
		ContextManagement *appliedShape `json:"context_management,omitempty"`
	}{Type: "message_delta", Usage: c.usageShape(a.Usage, a.Usage.Output), ContextManagement: c.management()}
	end.Usage.CacheCreation, end.Usage.Tier, end.Usage.Speed, end.Usage.Geo = nil, "", "", ""
	end.Usage.Iterations = c.iterations()
	if a.Usage.Reasoning > 0 {
		end.Usage.Details = &outputDetails{a.Usage.Reasoning}
	}
	end.Delta.StopReason = a.Stop
	if a.StopSeq != "" {
		end.Delta.StopSequence = &a.StopSeq
	}
	add("message_delta", "%s", object(end))
	add("message_stop", `{"type":"message_stop"}`)
	return out
}

// blockDeltas returns the start of a block and its deltas.
func (c *call) blockDeltas(b *furl.Block) (start []byte, deltas [][]byte) {
	delta := func(typ, field, text string) {
		deltas = append(deltas, fmt.Appendf(nil, `{"type":%q,%q:%s}`, typ, field, str(text)))
	}
	switch b.Kind {
	case furl.KindText:
		for _, s := range c.deltas(b.Text) {
			delta("text_delta", "text", s)
		}
		return []byte(`{"type":"text","text":""}`), deltas
	case furl.KindThinking:
		if b.Name == redacted {
			return wholeBlock(b), nil
		}
		for _, s := range c.deltas(b.Text) {
			delta("thinking_delta", "thinking", s)
		}
		delta("signature_delta", "signature", b.ID)
		return []byte(`{"type":"thinking","thinking":"","signature":""}`), deltas
	case furl.KindCall:
		delta("input_json_delta", "partial_json", "")
		for _, s := range c.fragments(string(compact(b.Args))) {
			delta("input_json_delta", "partial_json", s)
		}
		return fmt.Appendf(nil, `{"type":"tool_use","id":%s,"name":%s,"input":{}}`, str(b.ID), str(b.Name)), deltas
	}
	if isCompaction(b) {
		start, delta := compactionDelta(b.Text)
		return start, [][]byte{delta}
	}
	if b.Name == "server_tool_use" {
		delta("input_json_delta", "partial_json", string(rawjson.Field([]byte(b.Text), "input")))
		return rawjson.WithField([]byte(b.Text), "input", []byte("{}")), deltas
	}
	return []byte(b.Text), nil
}
