package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// eventHead identifies an event of a stream, for joiners that hold some
// events back.
type eventHead struct {
	Type  string
	Index int // of the content block; -1: none
	// Block is the type of the block that a content_block_start starts; ID
	// and Name are those of a call.
	Block, ID, Name string
	// Stop is the stop reason of a message_delta.
	Stop string
}

// readHead reads the data of an event.
func readHead(data []byte) (eventHead, error) {
	e := eventHead{Index: -1}
	r := rawjson.NewReader(data)
	for key := range r.Fields() {
		switch string(key) {
		case "type":
			e.Type, _ = r.String()
		case "index":
			if n, ok := r.Int(); ok {
				e.Index = n
			}
		case "content_block":
			f := readFields(r)
			e.Block, e.ID, e.Name = f.typ, f.id.Text(), f.name.Text()
		case "delta":
			if r.Kind() != '{' {
				continue
			}
			for key := range r.Fields() {
				if string(key) == "stop_reason" {
					e.Stop, _ = r.String()
				}
			}
		}
	}
	if err := r.End(); err != nil {
		return eventHead{Index: -1}, fmt.Errorf("read Anthropic event: %w", err)
	}
	return e, nil
}

// setIndex changes the index in the data of a content_block event. All other
// bytes are kept.
func setIndex(data []byte, index int) ([]byte, error) {
	if err := rawjson.Check(data); err != nil {
		return nil, fmt.Errorf("edit Anthropic event: %w", err)
	}
	if rawjson.NewReader(rawjson.Field(data, "index")).Kind() != '0' {
		return nil, errors.New("edit Anthropic event: no index")
	}
	return rawjson.Splice(data, rawjson.SetField(data, "index", strconv.AppendInt(nil, int64(index), 10))), nil
}

// setUsage changes the token counts of a message_start, a message_delta or a
// body. Missing counts are added unless they are 0; more detailed counts are
// updated only if present. All other bytes are kept, and data without a usage
// is not changed.
func setUsage(data []byte, u furl.Usage) ([]byte, error) {
	if err := rawjson.Check(data); err != nil {
		return nil, fmt.Errorf("edit usage: %w", err)
	}
	written := u.CacheWrite + u.CacheWrite1h
	set := func(usage []byte) []byte {
		usage = setCount(usage, "input_tokens", u.Input, true)
		usage = setCount(usage, "cache_creation_input_tokens", written, true)
		usage = setCount(usage, "cache_read_input_tokens", u.CacheRead, true)
		usage = rawjson.EditField(usage, "cache_creation", func(split []byte) []byte {
			split = setCount(split, "ephemeral_5m_input_tokens", u.CacheWrite, true)
			return setCount(split, "ephemeral_1h_input_tokens", u.CacheWrite1h, true)
		})

		usage = setCount(usage, "output_tokens", u.Output, true)
		return rawjson.EditField(usage, "output_tokens_details", func(details []byte) []byte {
			details = setCount(details, "thinking_tokens", u.Reasoning, false)
			return setCount(details, "reasoning_tokens", u.Reasoning, false)
		})

	}
	data = rawjson.EditField(data, "usage", set)
	return rawjson.EditField(data, "message", func(m []byte) []byte { return rawjson.EditField(m, "usage", set) }), nil
}

// setCount changes a number. A missing number is added if add is set and n is
// not 0.
func setCount(obj []byte, name string, n int, add bool) []byte {
	old := rawjson.Field(obj, name)
	if old == nil && (!add || n == 0) || string(old) == strconv.Itoa(n) {
		return obj
	}
	return rawjson.Splice(obj, rawjson.SetField(obj, name, strconv.AppendInt(nil, int64(n), 10)))
}

// editContent returns the body of a reply with blocks inserted before its
// content, and without the blocks for whose index drop returns true. Both may
// be nil. All other bytes are kept.
func editContent(body []byte, before []json.RawMessage, drop func(i int) bool) ([]byte, error) {
	if err := rawjson.Check(body); err != nil {
		return nil, fmt.Errorf("edit Anthropic reply: %w", err)
	}
	content := rawjson.Field(body, "content")
	r := rawjson.NewReader(content)
	if r.Kind() != '[' {
		return nil, errors.New("edit Anthropic reply: no content")
	}
	var elems []rawjson.Span
	var items []rawjson.Item
	for _, b := range before {
		items = append(items, rawjson.Item{Index: -1, New: b})
	}
	for i := range r.Elements() {
		elems = append(elems, r.Skip())
		if drop == nil || !drop(i) {
			items = append(items, rawjson.Item{Index: i})
		}
	}
	inside := rawjson.Span{Start: 1, End: len(content) - 1}
	edited := rawjson.Splice(content, rawjson.List(inside, elems, items))
	return rawjson.Splice(body, rawjson.SetField(body, "content", edited)), nil
}
