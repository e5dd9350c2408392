package openai

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// NewAssembler returns an Assembler for one streamed reply. It uses the item
// of the done event, otherwise that of the final response. If neither
// arrived, messages and calls are assembled from their deltas; other
// incomplete items are omitted.
func (responses) NewAssembler() protocol.Assembler {
	return &responsesAssembler{reply: protocol.Reply{Format: furl.FormatResponses}, items: map[int]*streamItem{}}
}

type responsesAssembler struct {
	reply protocol.Reply
	items map[int]*streamItem // by output_index
	last  int                 // the item added last
	size  int
	ended bool
	err   error
}

func (a *responsesAssembler) Feed(event string, data []byte) error {
	if a.err == nil && !a.ended {
		if err := a.feed(event, trim(data)); err != nil {
			a.err = fmt.Errorf("read Responses stream: %w", err)
		}
	}
	return a.err
}

// responseEvent is a decoded event.
type responseEvent struct {
	typ             string
	output, content int // indexes, -1 if missing
	itemID          string
	item, part      []byte
	response        []byte
	delta           rawjson.Value
	text            rawjson.Value // the full text of the deltas, at the end
}

func readEvent(event string, data []byte) (*responseEvent, error) {
	r := rawjson.NewReader(data)
	if r.Kind() != '{' {
		return nil, fmt.Errorf("event %q: expected an object", event)
	}
	e := &responseEvent{typ: event, output: -1, content: -1}
	for key := range r.Fields() {
		switch string(key) {
		case "type":
			if s, ok := r.String(); ok {
				e.typ = s
			}
		case "output_index":
			e.output = index(r)
		case "content_index":
			e.content = index(r)
		case "item_id":
			e.itemID, _ = r.String()
		case "item":
			e.item = r.Raw()
		case "part":
			e.part = r.Raw()
		case "response":
			e.response = r.Raw()
		case "delta":
			e.delta = r.Value()
		case "text", "refusal", "arguments", "input":
			e.text = r.Value()
		}
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("event %q: %w", event, err)
	}
	return e, nil
}

// index reads an index; -1 if it is missing.
func index(r *rawjson.Reader) int {
	if n, ok := r.Int(); ok && n >= 0 {
		return n
	}
	return -1
}

func (a *responsesAssembler) feed(event string, data []byte) error {
	if len(data) == 0 || isDone(data) { // not part of the format, but sent by some servers
		return nil
	}
	if a.size += len(data); a.size > maxReply {
		return fmt.Errorf("the reply is larger than %d bytes", maxReply)
	}
	e, err := readEvent(event, data)
	if err != nil {
		return err
	}
	switch e.typ {
	case "error":
		a.ended = true
		refused(&a.reply, 0, data)
	case "response.created", "response.in_progress", "response.queued",
		"response.completed", "response.incomplete", "response.failed", "response.cancelled":
		a.response(e, data)
	case "response.output_item.added", "response.output_item.done":
		err = a.item(e)
	case "response.content_part.added", "response.content_part.done":
		err = a.withItem(e, (*streamItem).setPart)
	case "response.output_text.delta", "response.refusal.delta":
		err = a.withItem(e, (*streamItem).addText)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		err = a.withItem(e, (*streamItem).addArgs)
	case "response.function_call_arguments.done", "response.custom_tool_call_input.done":
		err = a.withItem(e, (*streamItem).setArgs)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.typ, err)
	}
	return nil
}

// response handles an event that contains the response.
func (a *responsesAssembler) response(e *responseEvent, data []byte) {
	r := rawjson.NewReader(e.response)
	if r.Kind() != '{' {
		return
	}
	f := readResponse(r, &a.reply)
	switch e.typ {
	case "response.failed":
		a.ended = true
		refused(&a.reply, 0, data)
	case "response.cancelled":
		a.ended = true
	case "response.completed", "response.incomplete":
		a.ended, a.reply.Complete = true, true
		if a.reply.Stop == "" {
			a.reply.Stop = strings.TrimPrefix(e.typ, "response.")
		}
	default:
		return
	}
	for i, raw := range f.output {
		if len(a.items) == maxItems {
			return
		}
		if a.items[i] == nil {
			a.items[i] = new(streamItem)
		}
		a.items[i].listed = bytes.Clone(raw)
	}
}

// item handles an item that was added or is done.
func (a *responsesAssembler) item(e *responseEvent) error {
	if rawjson.NewReader(e.item).Kind() != '{' {
		return errors.New("expected an item")
	}
	e.itemID = rawjson.Unquote(rawjson.Field(e.item, "id"))
	at := a.find(e)
	if at < 0 {
		at = 0
		for a.items[at] != nil {
			at++
		}
	}
	it := a.items[at]
	if it == nil {
		if len(a.items) == maxItems {
			return fmt.Errorf("more than %d items", maxItems)
		}
		it = new(streamItem)
		a.items[at] = it
	}
	a.last = at
	if e.typ == "response.output_item.done" {
		it.done = bytes.Clone(e.item)
	} else {
		it.added = bytes.Clone(e.item)
		it.id = e.itemID
	}
	return nil
}

// find returns the index of the item of an event, -1 for a new one. Some
// servers omit the index.
func (a *responsesAssembler) find(e *responseEvent) int {
	if e.output >= 0 {
		return e.output
	}
	if e.itemID != "" {
		found := -1
		for at, it := range a.items {
			if it.id == e.itemID && (found < 0 || at < found) {
				found = at
			}
		}
		return found
	}
	if e.item == nil && len(a.items) > 0 {
		return a.last
	}
	return -1
}

func (a *responsesAssembler) withItem(e *responseEvent, do func(*streamItem, *responseEvent) error) error {
	it := a.items[a.find(e)]
	if it == nil {
		return fmt.Errorf("item %d %q was not added", e.output, e.itemID)
	}
	return do(it, e)
}

func (a *responsesAssembler) Reply() (*protocol.Reply, error) {
	reply := a.reply
	if a.err != nil {
		reply.Complete = false
	}
	var order []int
	for at := range a.items {
		order = append(order, at)
	}
	slices.Sort(order)
	var items [][]byte
	for _, at := range order {
		if raw := a.items[at].raw(reply.Complete); raw != nil {
			items = append(items, raw)
		}
	}
	err := addItems(responses{}, &reply, items)
	if a.err != nil {
		return &reply, a.err
	}
	if err != nil {
		return &reply, fmt.Errorf("read Responses stream: %w", err)
	}
	return &reply, nil
}
