package anthropic

import (
	"bytes"
	"encoding/json"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
)

// NewJoiner implements wire.API.
func (codec) NewJoiner(own func(name string) bool) protocol.Joiner { return &messagesJoiner{own: own} }

// messagesJoiner joins streams of Anthropic Messages: one message_start,
// blocks with consecutive indexes, one message_delta and message_stop.
type messagesJoiner struct {
	own    func(string) bool
	rounds int // finished streams
	blocks int // the index of the client's next block
	// Of the current stream:
	index map[int]int // index of each block at the client; -1: held back
	calls bool        // some blocks are held back
	last  [][]byte    // data of the final events, held back
}

// Called implements protocol.Joiner.
func (j *messagesJoiner) Called() bool { return j.calls }

// Next implements protocol.Joiner.
func (j *messagesJoiner) Next() {
	j.rounds++
	j.index, j.calls, j.last = nil, false, nil
}

// Event implements protocol.Joiner.
func (j *messagesJoiner) Event(event string, data, raw []byte) []byte {
	ev, err := readHead(data)
	if data == nil || err != nil {
		return raw
	}
	switch ev.Type {
	case "message_start":
		if j.rounds > 0 {
			return nil
		}
	case "error":
		j.last = nil // the reply must not look complete
	case "message_delta", "message_stop":
		if j.calls || j.rounds > 0 {
			j.last = append(j.last, bytes.Clone(data))
			return nil
		}
	case "content_block_start":
		if j.index == nil {
			j.index = make(map[int]int)
		}
		if ev.Block == "tool_use" && j.own(ev.Name) {
			j.index[ev.Index], j.calls = -1, true
			return nil
		}
		at := j.blocks
		if j.rounds == 0 && !j.calls { // numbered as by the provider
			at = ev.Index
		}
		j.index[ev.Index], j.blocks = at, max(j.blocks, at+1)
	}
	if ev.Index < 0 {
		return raw
	}
	switch at, known := j.index[ev.Index]; {
	case !known || at == ev.Index:
		return raw
	case at < 0:
		return nil
	default:
		data, err := setIndex(data, at)
		if err != nil {
			return raw
		}
		return sse.JSON(event, data)
	}
}

// End implements protocol.Joiner.
func (j *messagesJoiner) End(used furl.Usage, quiet bool) []byte {
	var out []byte
	for _, data := range j.last {
		ev, _ := readHead(data)
		if ev.Type == "message_delta" {
			data, _ = setUsage(data, used)
			if quiet && ev.Stop == "tool_use" {
				data = rawjson.EditField(data, "delta", func(delta []byte) []byte { return rawjson.WithField(delta, "stop_reason", []byte(`"end_turn"`)) })
			}
		}
		out = append(out, sse.JSON(ev.Type, data)...)
	}
	return out
}

// Calls implements wire.API.
func (codec) Calls(body []byte, own func(name string) bool) bool { return len(ownCalls(body, own)) > 0 }

// ownCalls returns the indexes of calls of furl's tools in a body's content.
func ownCalls(body []byte, own func(name string) bool) map[int]bool {
	found := make(map[int]bool)
	for i, block := range rawjson.Elements(rawjson.Field(body, "content")) {
		if rawjson.Unquote(rawjson.Field(block, "type")) == "tool_use" && own(rawjson.Unquote(rawjson.Field(block, "name"))) {
			found[i] = true
		}
	}
	return found
}

// JoinBodies implements wire.API.
func (codec) JoinBodies(before []*protocol.Reply, body []byte, own func(name string) bool, used furl.Usage, quiet bool) ([]byte, error) {
	ours := ownCalls(body, own)
	var blocks []json.RawMessage
	for _, r := range before {
		blocks = append(blocks, theirBlocks(r)...)
	}
	body, err := editContent(body, blocks, func(i int) bool { return ours[i] })
	if err != nil {
		return nil, err
	}
	if quiet && rawjson.Unquote(rawjson.Field(body, "stop_reason")) == "tool_use" {
		body = rawjson.WithField(body, "stop_reason", []byte(`"end_turn"`))
	}
	return setUsage(body, used)
}

// theirBlocks returns the blocks of a reply that the client receives.
func theirBlocks(r *protocol.Reply) (blocks []json.RawMessage) {
	for _, m := range r.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; !b.Own && b.Start < b.End && b.End <= len(m.Raw) {
				blocks = append(blocks, json.RawMessage(m.Raw[b.Start:b.End]))
			}
		}
	}
	return blocks
}

// DropTools implements wire.API: a reply of Messages does not contain tools.
func (codec) DropTools(body []byte, _ func(name string) bool) []byte { return body }
