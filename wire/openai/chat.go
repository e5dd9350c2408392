package openai

import (
	"bytes"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

var (
	chatNames        = rawjson.NewNames("model", "max_completion_tokens", "max_tokens", "stream", "tools", "functions", "messages")
	chatMessageNames = rawjson.NewNames("role", "name", "tool_call_id", "content", "refusal", "audio", "tool_calls", "function_call",
		thinkingFields[0], thinkingFields[1], thinkingFields[2])
	audioNames    = rawjson.NewNames("id")
	callNames     = rawjson.NewNames("id", "type", "function", "custom")
	callBodyNames = rawjson.NewNames("name", "arguments", "input")
)

// DecodeRequest decodes the body of a POST to /v1/chat/completions. It
// returns an error if the body is not JSON or has the wrong structure;
// Validate checks the provider's rules.
func (chat) DecodeRequest(body []byte) (*protocol.Request, error) {
	req := &protocol.Request{Format: furl.FormatChat, Body: body}
	var tools, functions []byte
	var s chatScan
	legacyMax := 0
	r := rawjson.NewReader(body)
	for key := range r.FieldsOf(chatNames) {
		switch string(key) {
		case "model":
			req.Model, _ = r.String()
		case "max_completion_tokens":
			req.MaxTokens, _ = r.Int()
		case "max_tokens":
			legacyMax, _ = r.Int()
		case "stream":
			req.Stream, _ = r.Bool()
		case "tools":
			tools = r.Raw()
		case "functions":
			functions = r.Raw()
		case "messages":
			req.Messages, req.Offsets = nil, nil // the last of several lists counts
			if r.Kind() == 'n' {
				continue
			}
			for range r.Elements() {
				s.read(body, r)
				if r.Err() == nil {
					req.Messages = append(req.Messages, s.message(body))
					req.Offsets = append(req.Offsets, s.base)
				}
			}
		}
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("decode Chat Completions request: %w", err)
	}
	if req.MaxTokens == 0 {
		req.MaxTokens = legacyMax
	}
	req.Preamble = append(toolBlocks(r, tools), toolBlocks(r, functions)...)
	req.PreambleDigest = preambleDigest(req)
	req.Ambiguous = r.Ambiguous()
	return req, nil
}

// DecodeMessage decodes one element of the messages list.
func (chat) DecodeMessage(raw []byte) (*furl.Message, error) {
	var s chatScan
	r := rawjson.NewReader(raw)
	s.read(raw, r)
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("decode Chat Completions message: %w", err)
	}
	m := s.message(raw)
	return &m, nil
}

// chatScan is a scanned message of Chat Completions. It is reused for all
// messages. Spans count from the start of the message.
type chatScan struct {
	base, end int // of the message in the scanned bytes

	role, name, toolCallID string
	content                value
	parts                  []part // if content is a list
	refusal                value
	audio                  value
	audioID                string
	thinking               [len(thinkingFields)]value
	calls                  []chatCall
	callList               value
	function               chatCall // the legacy call
}

// thinkingFields are the fields in which compatible servers return reasoning.
// The first two are strings; the third is a list, partly signed or encrypted.
var thinkingFields = [...]string{"reasoning_content", "reasoning", "reasoning_details"}

// value is a field's value: kind is its first byte, 0 if the field is absent.
type value struct {
	kind byte
	rawjson.Span
}

// chatCall is an element of tool_calls, or the legacy function_call.
type chatCall struct {
	rawjson.Span
	present       bool
	id, typ, name string
	args          value // of arguments, or of a custom tool's input
	free          bool  // args are a custom tool's input
}

// read consumes the next message of r.
func (s *chatScan) read(b []byte, r *rawjson.Reader) {
	*s = chatScan{parts: s.parts[:0], calls: s.calls[:0], base: r.Offset()}
	for key := range r.FieldsOf(chatMessageNames) {
		switch string(key) {
		case "role":
			s.role, _ = r.String()
		case "name":
			s.name, _ = r.String()
		case "tool_call_id":
			s.toolCallID, _ = r.String()
		case "content":
			s.readContent(b, r)
		case "refusal":
			s.refusal = readValue(r, s.base)
		case "audio":
			s.readAudio(r)
		case "tool_calls":
			s.readCalls(r)
		case "function_call":
			s.function = chatCall{}
			if r.Kind() == '{' {
				s.function = readFunctionCall(r, s.base)
			}
		case thinkingFields[0]:
			s.readThinking(0, b, r)
		case thinkingFields[1]:
			s.readThinking(1, b, r)
		case thinkingFields[2]:
			s.readThinking(2, b, r)
		}
	}
	s.end = r.Pos()
}

// readValue consumes a value without decoding it.
func readValue(r *rawjson.Reader, base int) value {
	v := value{kind: r.Kind(), Span: r.Skip()}
	v.Start -= base
	v.End -= base
	return v
}

// readThinking consumes a field of thinkingFields. A null or empty one counts
// as absent.
func (s *chatScan) readThinking(i int, b []byte, r *rawjson.Reader) {
	v := readValue(r, s.base)
	said := v.kind == '"' || v.kind == '['
	if r.Err() == nil && said {
		in := inside(v.Span)
		said = len(bytes.TrimSpace(b[s.base+in.Start:s.base+in.End])) > 0
	}
	if !said {
		v = value{}
	}
	s.thinking[i] = v
}

func (s *chatScan) readContent(b []byte, r *rawjson.Reader) {
	s.parts = s.parts[:0]
	if r.Kind() != '[' {
		s.content = readValue(r, s.base)
		return
	}
	start := r.Offset()
	s.parts = readParts(b, r, s.base, s.parts)
	s.content = value{'[', rawjson.Span{Start: start - s.base, End: r.Pos() - s.base}}
}

func (s *chatScan) readAudio(r *rawjson.Reader) {
	s.audioID = ""
	start := r.Offset()
	if r.Kind() != '{' {
		s.audio = readValue(r, s.base)
		return
	}
	for key := range r.FieldsOf(audioNames) {
		if string(key) == "id" {
			s.audioID, _ = r.String()
		}
	}
	s.audio = value{'{', rawjson.Span{Start: start - s.base, End: r.Pos() - s.base}}
}

func (s *chatScan) readCalls(r *rawjson.Reader) {
	s.calls = s.calls[:0]
	if r.Kind() != '[' {
		s.callList = readValue(r, s.base)
		return
	}
	start := r.Offset()
	for range r.Elements() {
		s.calls = append(s.calls, readCall(r, s.base))
	}
	s.callList = value{'[', rawjson.Span{Start: start - s.base, End: r.Pos() - s.base}}
}

// readCall consumes an element of tool_calls.
func readCall(r *rawjson.Reader, base int) chatCall {
	c := chatCall{present: true, Span: rawjson.Span{Start: r.Offset() - base}}
	for key := range r.FieldsOf(callNames) {
		switch string(key) {
		case "id":
			c.id, _ = r.String()
		case "type":
			c.typ, _ = r.String()
		case "function", "custom":
			if r.Kind() != '{' {
				continue
			}
			c.free = string(key) == "custom"
			for key := range r.FieldsOf(callBodyNames) {
				c.readBody(r, base, key)
			}
		}
	}
	c.End = r.Pos() - base
	return c
}

func readFunctionCall(r *rawjson.Reader, base int) chatCall {
	c := chatCall{present: true, typ: "function", Span: rawjson.Span{Start: r.Offset() - base}}
	for key := range r.FieldsOf(callBodyNames) {
		c.readBody(r, base, key)
	}
	c.End = r.Pos() - base
	c.id = functionID(c.name)
	return c
}

func (c *chatCall) readBody(r *rawjson.Reader, base int, key []byte) {
	switch string(key) {
	case "name":
		c.name, _ = r.String()
	case "arguments", "input":
		c.args = readValue(r, base)
	}
}

// functionID returns an id for legacy function calls, which have none. A
// function message follows its call, so the name is enough to pair them.
func functionID(name string) string { return "function:" + name }

// message makes the furl message of what was read from b.
func (s *chatScan) message(b []byte) furl.Message {
	raw := b[s.base:s.end:s.end]
	m := furl.Message{Role: furl.Role(s.role), Format: furl.FormatChat, Raw: raw}
	switch s.role {
	case "tool", "function":
		m.Role = furl.RoleTool
		m.Blocks = []furl.Block{s.result(raw)}
	default:
		m.Blocks = make([]furl.Block, 0, 1+len(s.parts)+len(s.calls))
		for _, sl := range s.slots() {
			m.Blocks = append(m.Blocks, s.block(raw, sl))
		}
	}
	if !m.Role.Known() {
		for i := range m.Blocks {
			m.Blocks[i].Fixed = true
		}
	}
	m.Seal()
	return m
}

func (s *chatScan) result(raw []byte) furl.Block {
	bl := furl.Block{Kind: furl.KindResult, ID: s.toolCallID, End: len(raw)}
	if s.role == "function" {
		bl.ID = functionID(s.name)
	}
	if s.content.kind == '[' {
		bl.Text, bl.Media, bl.CacheMark = joinParts(s.parts, "\n")
		bl.Fixed = anyUnknown(s.parts)
	} else {
		bl.Text = rawjson.Unquote(s.content.Of(raw))
	}
	bl.Error = FailedOutput(bl.Text)
	bl.ErrorText = !bl.Error && FailedText(bl.Text)
	return bl
}

// chatSlot is the position of one block in a message.
type chatSlot struct {
	kind slotKind
	i    int // index into thinking, parts or calls
}

type slotKind uint8

const (
	slotContent  slotKind = iota // content as a string
	slotPart                     // an element of content
	slotThinking                 // a field of thinkingFields
	slotRefusal
	slotAudio
	slotCall     // an element of tool_calls
	slotFunction // function_call
)

// slots lists the positions of a message's blocks, in the order of the
// blocks.
func (s *chatScan) slots() []chatSlot {
	slots := make([]chatSlot, 0, 1+len(s.parts)+len(s.calls))
	add := func(k slotKind, i int) { slots = append(slots, chatSlot{k, i}) }
	for i, v := range s.thinking {
		if v.kind != 0 {
			add(slotThinking, i)
		}
	}
	if s.content.kind == '"' && s.content.Len() > len(`""`) {
		add(slotContent, 0)
	}
	for i := range s.parts {
		add(slotPart, i)
	}
	if s.refusal.kind == '"' && s.refusal.Len() > len(`""`) {
		add(slotRefusal, 0)
	}
	if s.audio.kind == '{' {
		add(slotAudio, 0)
	}
	for i := range s.calls {
		add(slotCall, i)
	}
	if s.function.present {
		add(slotFunction, 0)
	}
	if len(slots) == 0 {
		add(slotContent, 0)
	}
	return slots
}

func (s *chatScan) block(raw []byte, sl chatSlot) furl.Block {
	switch sl.kind {
	case slotPart:
		return s.parts[sl.i].block()
	case slotThinking:
		v := s.thinking[sl.i]
		if v.kind == '"' {
			return furl.Block{Kind: furl.KindThinking, Text: rawjson.Unquote(v.Of(raw))}
		}
		bl := furl.Block{Kind: furl.KindThinking, Start: v.Start, End: v.End}
		var w words
		w.walk(rawjson.NewReader(v.Of(raw)), "", 0)
		bl.Signature = w.secret
		if s.thinking[0].kind == 0 && s.thinking[1].kind == 0 {
			bl.Text = w.text.String() // otherwise it repeats the text
		}
		return bl
	case slotRefusal:
		return furl.Block{Kind: furl.KindText, Text: rawjson.Unquote(s.refusal.Of(raw))}
	case slotAudio:
		return furl.Block{Kind: furl.KindOpaque, Name: "audio", ID: s.audioID, Start: s.audio.Start, End: s.audio.End}
	case slotCall:
		return s.calls[sl.i].block(raw)
	case slotFunction:
		return s.function.block(raw)
	}
	return furl.Block{Kind: furl.KindText, Text: rawjson.Unquote(s.content.Of(raw))}
}

func (c *chatCall) block(raw []byte) furl.Block {
	bl := furl.Block{Kind: furl.KindCall, ID: c.id, Name: c.name, Start: c.Start, End: c.End, Fixed: !callTypes[c.typ]}
	switch {
	case c.args.kind == 0 && c.name == "": // an unknown type
		bl.Name, bl.Args = c.typ, c.Of(raw)
	case c.free:
		bl.Args = c.args.Of(raw)
	default:
		bl.Args = callArgs(c.args.Of(raw))
	}
	if len(bl.Args) == 0 {
		bl.Args = []byte("{}")
	}
	return bl
}

// callArgs returns a call's arguments as JSON: the text of the string if it
// is JSON, otherwise the value itself, which is JSON too.
func callArgs(raw []byte) []byte {
	if text := stringBytes(raw); len(text) > 0 && rawjson.Check(text) == nil {
		return text
	}
	return raw
}
