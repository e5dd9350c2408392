package openai

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// chatChunk describes a chunk of a chat stream, for joiners that hold parts
// of it back.
type chatChunk struct {
	ID     string
	Calls  []chunkCall // fragments of calls, in order
	Finish string      // the finish reason of the first choice, "" if none
	Usage  bool        // it has a usage
	// Words is set if any choice contains something other than fragments of
	// calls, a role and a finish reason.
	Words bool
}

// chunkCall is a fragment of a call. Only the first fragment has the name.
type chunkCall struct {
	Choice, Index int // 0 if missing
	ID, Name      string
}

// readChunk reads the data of a chunk.
func readChunk(data []byte) (chatChunk, error) {
	var c chatChunk
	r := rawjson.NewReader(data)
	for key := range r.Fields() {
		switch string(key) {
		case "id":
			c.ID, _ = r.String()
		case "usage":
			c.Usage = r.Kind() == '{'
		case "choices":
			if r.Kind() != '[' {
				continue
			}
			for range r.Elements() {
				if r.Kind() == '{' {
					c.choice(r.Raw())
				}
			}
		}
	}
	if err := r.End(); err != nil {
		return chatChunk{}, fmt.Errorf("read chat chunk: %w", err)
	}
	return c, nil
}

func (c *chatChunk) choice(raw []byte) {
	choice, _ := rawjson.NewReader(rawjson.Field(raw, "index")).Int()
	if s := rawjson.Unquote(rawjson.Field(raw, "finish_reason")); choice == 0 && s != "" {
		c.Finish = s
	}
	r := rawjson.NewReader(rawjson.Field(raw, "delta"))
	if r.Kind() != '{' {
		return
	}
	for key := range r.Fields() {
		switch name := string(key); {
		case name == "role", r.Kind() == 'n':
		case name == "tool_calls" && r.Kind() == '[':
			for range r.Elements() {
				c.Calls = append(c.Calls, readChunkCall(choice, r.Raw()))
			}
		default:
			v := r.Value()
			c.Words = c.Words || string(v.Raw) != `""`
		}
	}
}

func readChunkCall(choice int, raw []byte) chunkCall {
	call := chunkCall{Choice: choice, ID: rawjson.Unquote(rawjson.Field(raw, "id"))}
	call.Index, _ = rawjson.NewReader(rawjson.Field(raw, "index")).Int()
	for _, name := range []string{"function", "custom"} {
		if s := rawjson.Unquote(rawjson.Field(rawjson.Field(raw, name), "name")); s != "" {
			call.Name = s
		}
	}
	return call
}

// chunkEdit is a set of changes to a chunk. Zero fields change nothing.
type chunkEdit struct {
	ID string
	// Call returns a fragment's new index, or -1 to remove it.
	Call func(chunkCall) int
	// Open removes the finish reasons, because the stream continues.
	Open bool
	// Usage replaces the usage, if there is one; see setUsage.
	Usage *furl.Usage
}

// editChunk returns the data of a chunk with changes. All other bytes are
// kept. If all fragments of a delta are removed, its tool_calls is removed
// too.
func editChunk(data []byte, e chunkEdit) ([]byte, error) {
	if err := rawjson.Check(data); err != nil {
		return nil, fmt.Errorf("edit chat chunk: %w", err)
	}
	if rawjson.NewReader(data).Kind() != '{' {
		return nil, errors.New("edit chat chunk: expected an object")
	}
	if e.ID != "" && rawjson.Field(data, "id") != nil {
		data = rawjson.WithField(data, "id", quote(e.ID))
	}
	if e.Usage != nil {
		data, _ = setUsage(data, *e.Usage)
	}
	if e.Call == nil && !e.Open {
		return data, nil
	}
	choices := mapList(rawjson.Field(data, "choices"), func(choice []byte) []byte { return e.choice(choice) })
	if choices == nil {
		return data, nil
	}
	return rawjson.WithField(data, "choices", choices), nil
}

func (e *chunkEdit) choice(raw []byte) []byte {
	if e.Open && rawjson.NewReader(rawjson.Field(raw, "finish_reason")).Kind() == '"' {
		raw = rawjson.WithField(raw, "finish_reason", []byte("null"))
	}
	if e.Call == nil {
		return raw
	}
	choice, _ := rawjson.NewReader(rawjson.Field(raw, "index")).Int()
	return rawjson.EditField(raw, "delta", func(delta []byte) []byte {
		calls := rawjson.Field(delta, "tool_calls")
		kept := mapList(calls, func(call []byte) []byte {
			head := readChunkCall(choice, call)
			switch at := e.Call(head); {
			case at < 0:
				return nil
			case at == head.Index:
				return call
			default:
				return rawjson.WithField(call, "index", strconv.AppendInt(nil, int64(at), 10))
			}
		})
		switch {
		case kept == nil:
			return delta
		case isEmptyList(kept) && !isEmptyList(calls):
			return rawjson.Splice(delta, rawjson.DropField(delta, "tool_calls"))
		}
		return rawjson.WithField(delta, "tool_calls", kept)
	})

}

// setUsage changes the token counts of a chunk, an event or a body. Cached
// tokens and other details are updated if present, and added if missing and
// not 0. All other bytes are kept, and data without a usage is not changed.
func setUsage(data []byte, u furl.Usage) ([]byte, error) {
	if err := rawjson.Check(data); err != nil {
		return nil, fmt.Errorf("edit usage: %w", err)
	}
	set := func(usage []byte) []byte {
		prompt, output := "prompt_tokens", "completion_tokens"
		if rawjson.Field(usage, "input_tokens") != nil {
			prompt, output = "input_tokens", "output_tokens"
		}
		usage = setCount(usage, prompt, u.Prompt(), true)
		usage = setCount(usage, output, u.Output, true)
		usage = setCount(usage, "total_tokens", u.Prompt()+u.Output, true)
		usage = setDetails(usage, prompt+"_details", "cached_tokens", u.CacheRead)
		usage = rawjson.EditField(usage, prompt+"_details", func(details []byte) []byte {
			return setCount(details, "cache_write_tokens", u.CacheWrite+u.CacheWrite1h, true)
		})

		return setDetails(usage, output+"_details", "reasoning_tokens", u.Reasoning)
	}
	data = rawjson.EditField(data, "usage", set)
	return rawjson.EditField(data, "response", func(r []byte) []byte { return rawjson.EditField(r, "usage", set) }), nil
}

// setDetails sets a count in the details in a field.
func setDetails(usage []byte, name, count string, n int) []byte {
	if rawjson.Field(usage, name) == nil && n > 0 {
		usage = rawjson.WithField(usage, name, []byte("{}"))
	}
	return rawjson.EditField(usage, name, func(details []byte) []byte { return setCount(details, count, n, true) })
}

// setCount changes a number. A missing number is added if add is set and n is
// not 0.
func setCount(obj []byte, name string, n int, add bool) []byte {
	old := rawjson.Field(obj, name)
	if old == nil && (!add || n == 0) || string(old) == strconv.Itoa(n) {
		return obj
	}
	return rawjson.WithField(obj, name, strconv.AppendInt(nil, int64(n), 10))
}

func isEmptyList(raw []byte) bool {
	r := rawjson.NewReader(raw)
	for range r.Elements() {
		return false
	}
	return true
}

// mapList edits the elements of a list that are objects, or removes them; nil
// if it is not a list.
func mapList(list []byte, edit func([]byte) []byte) []byte {
	return editList[[]byte](list, nil, func(_ int, elem []byte) []byte {
		if rawjson.NewReader(elem).Kind() != '{' {
			return elem
		}
		return edit(elem)
	})
}

// editList inserts elements before a list and edits its elements; nil removes
// one. It returns nil if it is not a list.
func editList[E ~[]byte](list []byte, before []E, edit func(i int, elem []byte) []byte) []byte {
	r := rawjson.NewReader(list)
	if r.Kind() != '[' {
		return nil
	}
	var elems []rawjson.Span
	var items []rawjson.Item
	for _, b := range before {
		items = append(items, rawjson.Item{Index: -1, New: b})
	}
	for i := range r.Elements() {
		s := r.Skip()
		elems = append(elems, s)
		old := s.Of(list)
		switch edited := edit(i, old); {
		case edited == nil:
		case len(edited) == len(old) && &edited[0] == &old[0]:
			items = append(items, rawjson.Item{Index: i})
		default:
			items = append(items, rawjson.Item{Index: i, New: edited})
		}
	}
	inside := rawjson.Span{Start: 1, End: len(list) - 1}
	return rawjson.Splice(list, rawjson.List(inside, elems, items))
}
