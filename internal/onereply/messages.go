package onereply

import (
	"bytes"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/wire/anthropic"
)

// messagesJoiner joins streams of Anthropic Messages: one message_start, blocks
// numbered through, one message_delta and message_stop.
type messagesJoiner struct {
	own    func(string) bool
	rounds int // before
	blocks int // the number of the client's next one
	// Of the stream at hand:
	index map[int]int // of its blocks, as the client knows them; -1: held back
	calls bool        // some are
	last  [][]byte    // data of the events that end it, held back
}

func (j *messagesJoiner) called() bool { return j.calls }

func (j *messagesJoiner) next() {
	j.rounds++
	j.index, j.calls, j.last = nil, false, nil
}

func (j *messagesJoiner) event(e sse.Event) []byte {
	ev, err := anthropic.ReadEvent(e.Data)
	if !e.HasData || err != nil {
		return e.Raw
	}
	switch ev.Type {
	case "message_start":
		if j.rounds > 0 {
			return nil
		}
	case "error":
		j.last = nil // the answer is not to look whole
	case "message_delta", "message_stop":
		if j.calls || j.rounds > 0 {
			j.last = append(j.last, bytes.Clone(e.Data))
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
		if j.rounds == 0 && !j.calls { // as the provider numbers them
			at = ev.Index
		}
		j.index[ev.Index], j.blocks = at, max(j.blocks, at+1)
	}
	if ev.Index < 0 {
		return e.Raw
	}
	switch at, known := j.index[ev.Index]; {
	case !known || at == ev.Index:
		return e.Raw
	case at < 0:
		return nil
	default:
		data, err := anthropic.SetIndex(e.Data, at)
		if err != nil {
			return e.Raw
		}
		return eventBytes(e.Type, data)
	}
}

func (j *messagesJoiner) end(used furl.Usage, quiet bool) []byte {
	var out []byte
	for _, data := range j.last {
		ev, _ := anthropic.ReadEvent(data)
		if ev.Type == "message_delta" {
			data, _ = anthropic.SetUsage(data, used)
			if quiet && ev.Stop == "tool_use" {
				data = rawjson.EditField(data, "delta", func(delta []byte) []byte { return rawjson.WithField(delta, "stop_reason", []byte(`"end_turn"`)) })
			}
		}
		out = append(out, eventBytes(ev.Type, data)...)
	}
	return out
}

// eventBytes writes an event with one line of data.
func eventBytes(typ string, data []byte) []byte {
	out := make([]byte, 0, len(data)+len(typ)+16)
	if typ != "" {
		out = append(append(append(out, "event: "...), typ...), '\n')
	}
	// Data of several lines is one JSON value, in which a line end is space.
	data = bytes.ReplaceAll(data, []byte{'\n'}, []byte{' '})
	return append(append(append(out, "data: "...), data...), "\n\n"...)
}

// elements gives the elements of a list, nil if it is none.
func elements(list []byte) (elems [][]byte) {
	r := rawjson.NewReader(list)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Elements() {
		elems = append(elems, r.Raw())
	}
	return elems
}
