package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// eventHead identifies an event of a Responses stream, for joiners that hold
// some events back.
type eventHead struct {
	Type   string
	Output int // output_index, -1 if none
	// Item is the type of the item in an output_item event, ID its id, and
	// CallID and Name those of a call. Events about parts of an item have
	// only its ID.
	Item, ID, CallID, Name string
}

// readHead reads the data of an event.
func readHead(data []byte) (eventHead, error) {
	e, err := readEvent("", data)
	if err != nil {
		return eventHead{Output: -1}, fmt.Errorf("read Responses %w", err)
	}
	out := eventHead{Type: e.typ, Output: e.output, ID: e.itemID}
	if rawjson.NewReader(e.item).Kind() != '{' {
		return out, nil
	}
	out.Item = rawjson.Unquote(rawjson.Field(e.item, "type"))
	out.ID = rawjson.Unquote(rawjson.Field(e.item, "id"))
	out.CallID = rawjson.Unquote(rawjson.Field(e.item, "call_id"))
	out.Name = rawjson.Unquote(rawjson.Field(e.item, "name"))
	return out, nil
}

// eventEdit is a set of changes to an event. Zero fields change nothing.
type eventEdit struct {
	Sequence *int // sequence_number
	Output   *int // output_index
	// ResponseID replaces the id of the response, in events that contain it.
	ResponseID string
	// Before are items inserted before the output of the response, in events
	// that contain one; Drop reports which of its items are removed.
	Before []json.RawMessage
	Drop   func(i int) bool
	// Tool reports which functions are removed from the tools that the
	// response repeats.
	Tool func(name string) bool
	// Usage replaces the response's usage, if there is one; see setUsage.
	Usage *furl.Usage
}

// editEvent returns the data of an event with changes. Only existing fields
// are changed; all other bytes are kept.
func editEvent(data []byte, e eventEdit) ([]byte, error) {
	if err := rawjson.Check(data); err != nil {
		return nil, fmt.Errorf("edit Responses event: %w", err)
	}
	if rawjson.NewReader(data).Kind() != '{' {
		return nil, errors.New("edit Responses event: expected an object")
	}
	number := func(name string, n *int) {
		if n != nil && rawjson.Field(data, name) != nil {
			data = rawjson.WithField(data, name, strconv.AppendInt(nil, int64(*n), 10))
		}
	}
	number("sequence_number", e.Sequence)
	number("output_index", e.Output)
	if e.Usage != nil {
		data, _ = setUsage(data, *e.Usage)
	}
	return rawjson.EditField(data, "response", func(r []byte) []byte {
			if e.ResponseID != "" && rawjson.Field(r, "id") != nil {
				r = rawjson.WithField(r, "id", quote(e.ResponseID))
			}
			if e.Tool != nil {
				r = dropTools(r, e.Tool)
			}
			return editOutput(r, e.Before, e.Drop)
		}),

		nil
}

// editOutput edits the output of a response, if it has one.
func editOutput(response []byte, before []json.RawMessage, drop func(i int) bool) []byte {
	if len(before) == 0 && drop == nil {
		return response
	}
	output := editList(rawjson.Field(response, "output"), before, func(i int, item []byte) []byte {
		if drop != nil && drop(i) {
			return nil
		}
		return item
	})
	if output == nil {
		return response
	}
	return rawjson.WithField(response, "output", output)
}

// dropTools returns a response without those functions in its list of tools,
// a copy of the request's, for whose name drop returns true. All other bytes
// are kept. If there are none, it returns the response itself.
func dropTools(response []byte, drop func(name string) bool) []byte {
	list := rawjson.Field(response, "tools")
	dropped := false
	tools := editList[[]byte](list, nil, func(_ int, tool []byte) []byte {
		if rawjson.Unquote(rawjson.Field(tool, "type")) == "function" && drop(rawjson.Unquote(rawjson.Field(tool, "name"))) {
			dropped = true
			return nil
		}
		return tool
	})
	if !dropped {
		return response
	}
	return rawjson.WithField(response, "tools", tools)
}

// withOutput returns the body of a Responses reply with items inserted before
// its output, and without the items for whose index drop returns true. Both
// may be nil. All other bytes are kept.
func withOutput(body []byte, before []json.RawMessage, drop func(i int) bool) ([]byte, error) {
	if err := rawjson.Check(body); err != nil {
		return nil, fmt.Errorf("edit Responses reply: %w", err)
	}
	if rawjson.NewReader(rawjson.Field(body, "output")).Kind() != '[' {
		return nil, errors.New("edit Responses reply: no output")
	}
	return editOutput(body, before, drop), nil
}

// editChoice returns the body of a chat reply with a text inserted before
// that of its first choice, and without the calls for whose index in
// tool_calls drop returns true; drop may be nil. All other bytes are kept. If
// all calls of a message are removed, the list is removed too.
func editChoice(body []byte, before string, drop func(i int) bool) ([]byte, error) {
	if err := rawjson.Check(body); err != nil {
		return nil, fmt.Errorf("edit chat reply: %w", err)
	}
	found := false
	choices := editList[[]byte](rawjson.Field(body, "choices"), nil, func(i int, choice []byte) []byte {
		index, ok := rawjson.NewReader(rawjson.Field(choice, "index")).Int()
		if !ok {
			index = i
		}
		if index != 0 || rawjson.NewReader(rawjson.Field(choice, "message")).Kind() != '{' {
			return choice
		}
		found = true
		return rawjson.EditField(choice, "message", func(m []byte) []byte { return editMessage(m, before, drop) })
	})
	if !found {
		return nil, errors.New("edit chat reply: no message")
	}
	return rawjson.WithField(body, "choices", choices), nil
}

func editMessage(m []byte, before string, drop func(i int) bool) []byte {
	if before != "" {
		content := rawjson.Field(m, "content")
		if rawjson.NewReader(content).Kind() == '[' {
			content = editList(content, [][]byte{textPart("text", before)}, func(_ int, part []byte) []byte { return part })
		} else {
			content = quote(before + rawjson.Unquote(content))
		}
		m = rawjson.WithField(m, "content", content)
	}
	calls := rawjson.Field(m, "tool_calls")
	if drop == nil || isEmptyList(calls) {
		return m
	}
	kept := editList[[]byte](calls, nil, func(i int, call []byte) []byte {
		if drop(i) {
			return nil
		}
		return call
	})
	if isEmptyList(kept) {
		return rawjson.Splice(m, rawjson.DropField(m, "tool_calls"))
	}
	return rawjson.WithField(m, "tool_calls", kept)
}
