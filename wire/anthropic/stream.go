package anthropic

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Limits of a streamed reply.
const (
	maxReply  = 64 << 20 // bytes of all data together
	maxBlocks = 10_000
	maxSet    = 64 // fields set on one block by unknown deltas
)

// NewAssembler returns an Assembler for one streamed reply.
//
// Blocks are addressed by their index, because the events of blocks that are
// open at the same time may be interleaved. The fields of an unknown delta
// are set on its block, which is what the only delta of a compaction block
// means.
func (codec) NewAssembler() protocol.Assembler {
	return &assembler{draft: *newDraft(), at: map[int]*streamBlock{}}
}

type assembler struct {
	draft
	blocks []*streamBlock // in the order of their start
	at     map[int]*streamBlock
	size   int
	ended  bool // by message_stop or an error event
	err    error
}

// streamBlock is an incomplete content block.
type streamBlock struct {
	start     []byte // the block of content_block_start
	typ       string
	text      []byte // appended to the text field of typ
	signature []byte
	input     []byte // JSON in pieces
	citations [][]byte
	set       []setField // by deltas of other types
	stopped   bool
}

type setField struct {
	name  string
	value []byte
}

func (a *assembler) Feed(event string, data []byte) error {
	if a.err == nil && !a.ended {
		if err := a.feed(event, data); err != nil {
			a.err = fmt.Errorf("read Anthropic stream: %w", err)
		}
	}
	return a.err
}

// streamEvent is a decoded event.
type streamEvent struct {
	typ   string
	index int // -1: none
	block []byte
	delta []byte
}

func (a *assembler) feed(event string, data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "[DONE]" { // not part of the format, but sent by some servers
		return nil
	}
	if a.size += len(data); a.size > maxReply {
		return fmt.Errorf("the reply is larger than %d bytes", maxReply)
	}
	r := rawjson.NewReader(data)
	if r.Kind() != '{' {
		return fmt.Errorf("event %q: expected an object", event)
	}
	e := streamEvent{typ: event, index: -1}
	for key := range r.Fields() {
		switch string(key) {
		case "type":
			if typ, ok := r.String(); ok {
				e.typ = typ
			}
		case "index":
			if n, ok := r.Int(); ok {
				e.index = n
			}
		case "content_block":
			e.block = r.Raw()
		case "delta":
			e.delta = r.Raw()
		case "message":
			if r.Kind() == '{' {
				a.message(r)
				a.own()
			}
		default:
			a.common(r, string(key))
		}
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("event %q: %w", event, err)
	}
	if err := a.take(&e, data); err != nil {
		return fmt.Errorf("%s: %w", e.typ, err)
	}
	return nil
}

// own copies what a message_start contains, so that the assembler does not
// alias the caller's memory.
func (a *assembler) own() {
	for i := range a.content {
		a.content[i] = bytes.Clone(a.content[i])
	}
}

func (a *assembler) take(e *streamEvent, data []byte) error {
	switch e.typ {
	case "content_block_start":
		return a.begin(e)
	case "content_block_delta":
		b := a.at[e.index]
		if b == nil {
			return fmt.Errorf("block %d was not started", e.index)
		}
		return b.add(e.delta)
	case "content_block_stop":
		if b := a.at[e.index]; b != nil {
			b.stopped = true
		}
	case "message_delta":
		r := rawjson.NewReader(e.delta)
		if r.Kind() != '{' {
			return nil
		}
		for key := range r.Fields() {
			a.common(r, string(key))
		}
	case "message_stop":
		a.ended = true
		a.reply.Complete = true
	case "error":
		a.ended = true
		a.refuse(0, data)
	}
	return nil
}

func (a *assembler) begin(e *streamEvent) error {
	if e.index < 0 {
		return errors.New("expected an index")
	}
	if rawjson.NewReader(e.block).Kind() != '{' {
		return errors.New("expected a content block")
	}
	if len(a.blocks) == maxBlocks {
		return fmt.Errorf("more than %d blocks", maxBlocks)
	}
	b := &streamBlock{start: bytes.Clone(e.block)}
	b.typ = readFields(rawjson.NewReader(b.start)).typ
	a.blocks = append(a.blocks, b)
	a.at[e.index] = b // one that starts twice is two
	return nil
}

// add applies a delta.
func (b *streamBlock) add(delta []byte) error {
	r := rawjson.NewReader(delta)
	if r.Kind() != '{' {
		return errors.New("expected a delta")
	}
	var typ string
	var fields []setField
	for key := range r.Fields() {
		if string(key) == "type" {
			typ, _ = r.String()
			continue
		}
		fields = append(fields, setField{string(key), r.Raw()})
	}
	for _, f := range fields {
		switch {
		case typ == "text_delta" && f.name == "text", typ == "thinking_delta" && f.name == "thinking":
			b.text = append(b.text, rawjson.Unquote(f.value)...)
		case typ == "signature_delta" && f.name == "signature":
			b.signature = append(b.signature, rawjson.Unquote(f.value)...)
		case typ == "input_json_delta" && f.name == "partial_json":
			b.input = append(b.input, rawjson.Unquote(f.value)...)
		case typ == "citations_delta" && f.name == "citation":
			b.citations = append(b.citations, bytes.Clone(f.value))
		case typ == "text_delta", typ == "thinking_delta", typ == "signature_delta", typ == "input_json_delta", typ == "citations_delta":
			// An estimate or similar: metadata of the delta, not of the
			// block.
		default:
			b.put(f)
		}
	}
	return nil
}

func (b *streamBlock) put(f setField) {
	f.value = bytes.Clone(f.value)
	for i := range b.set {
		if b.set[i].name == f.name {
			b.set[i] = f
			return
		}
	}
	if len(b.set) < maxSet {
		b.set = append(b.set, f)
	}
}

// raw returns the current block, nil if it cannot be sent back: a call with
// incomplete input, thinking without its signature, and any other non-text
// block that has not ended.
func (b *streamBlock) raw() []byte {
	raw := b.start
	f := readFields(rawjson.NewReader(raw))
	set := func(name string, value []byte) {
		raw = rawjson.Splice(raw, rawjson.SetField(raw, name, value))
	}
	switch {
	case b.stopped, b.typ == "text":
	case b.typ == "thinking" && len(b.signature) > 0:
	default:
		return nil
	}
	if len(b.text) > 0 {
		name, before := "text", f.text
		if b.typ == "thinking" {
			name, before = "thinking", f.thinking
		}
		set(name, quoteAny(before.Text()+string(b.text)))
	}
	if len(b.signature) > 0 {
		set("signature", quoteAny(f.signature.Text()+string(b.signature)))
	}
	if input := bytes.TrimSpace(b.input); len(input) > 0 {
		if rawjson.NewReader(input).Kind() != '{' || rawjson.Check(input) != nil {
			return nil
		}
		set("input", input)
	}
	if len(b.citations) > 0 {
		set("citations", b.cited(raw))
	}
	for _, s := range b.set {
		set(s.name, s.value)
	}
	return raw
}

// cited lists the citations of the block's start and those added.
func (b *streamBlock) cited(raw []byte) []byte {
	var all [][]byte
	r := rawjson.NewReader(raw)
	for key := range r.Fields() {
		if string(key) == "citations" && r.Kind() == '[' {
			for range r.Elements() {
				all = append(all, r.Raw())
			}
		}
	}
	all = append(all, b.citations...)
	return append(append([]byte{'['}, bytes.Join(all, []byte{','})...), ']')
}

func (a *assembler) Reply() (*protocol.Reply, error) {
	d := a.draft
	d.content = append([][]byte(nil), a.content...)
	for _, b := range a.blocks {
		if raw := b.raw(); raw != nil {
			d.content = append(d.content, raw)
		}
	}
	reply, err := d.finish()
	if a.err != nil {
		reply.Complete = false
		return reply, a.err
	}
	if err != nil {
		return reply, fmt.Errorf("read Anthropic stream: %w", err)
	}
	return reply, nil
}
