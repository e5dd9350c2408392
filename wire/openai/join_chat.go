package openai

import (
	"bytes"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
)

// NewJoiner implements wire.API.
func (chat) NewJoiner(own func(name string) bool) protocol.Joiner { return &chatJoiner{own: own} }

// chatJoiner joins streams of Chat Completions: one id, one role, calls with
// consecutive indexes, one finish reason, one usage, one end.
type chatJoiner struct {
	own    func(string) bool
	rounds int    // finished streams
	id     string // of the first stream
	calls  int    // calls sent to the client
	words  bool   // text was sent to the client
	// Of the current stream:
	index map[int]int // index of each call at the client; -1: held back
	ours  bool        // some calls are held back
	spoke bool        // it has text
	last  [][]byte    // data of the final chunks, held back
	broke bool        // it ended with an error
}

// Called implements protocol.Joiner.
func (j *chatJoiner) Called() bool { return j.ours }

// Next implements protocol.Joiner.
func (j *chatJoiner) Next() {
	j.rounds++
	j.words = j.words || j.spoke
	j.index, j.ours, j.spoke, j.last = nil, false, false, nil
}

// Event implements protocol.Joiner.
func (j *chatJoiner) Event(event string, data, raw []byte) []byte {
	switch {
	case data == nil || j.broke:
		return raw
	case isError(data):
		// The client receives the error unchanged, and no end that would make
		// the reply look complete.
		j.broke, j.last = true, nil
		return raw
	case string(bytes.TrimSpace(data)) == "[DONE]":
		return j.hold(data, raw)
	}
	c, err := readChunk(data)
	if err != nil {
		return raw
	}
	if j.id == "" {
		j.id = c.ID
	}
	for _, call := range c.Calls {
		j.clientIndex(call)
	}
	words := hasWords(data)
	first := words && !j.spoke
	j.spoke = j.spoke || words
	if !j.ours && j.rounds == 0 {
		return raw
	}
	if c.Finish != "" || c.Usage && !c.Words && len(c.Calls) == 0 {
		return j.finish(event, data, c)
	}
	data = j.edit(data, chunkEdit{})
	if !c.Words && j.left(c) == 0 {
		return nil // a role, or nothing for the client
	}
	out := sse.JSON(event, data)
	if first && j.words {
		// The client gets the texts of all replies as one text.
		out = append(sse.JSON(event, j.separator(data)), out...)
	}
	return out
}

// isError reports whether a chunk contains an error. Servers put it next to
// choices or instead of them.
func isError(data []byte) bool {
	v := rawjson.Field(data, "error")
	return len(v) > 0 && string(v) != "null"
}

// clientIndex assigns a call its index at the client, or -1 if it is a call of
// furl's tools.
func (j *chatJoiner) clientIndex(c chunkCall) {
	if c.Choice != 0 {
		return
	}
	if j.index == nil {
		j.index = make(map[int]int)
	}
	switch _, known := j.index[c.Index]; {
	case known:
	case j.own(c.Name):
		j.index[c.Index], j.ours = -1, true
	default:
		j.index[c.Index] = j.calls
		j.calls++
	}
}

// left counts the fragments of a chunk that the client receives.
func (j *chatJoiner) left(c chatChunk) (n int) {
	for _, call := range c.Calls {
		if call.Choice != 0 || j.index[call.Index] >= 0 {
			n++
		}
	}
	return n
}

// edit adapts a chunk to the client's stream.
func (j *chatJoiner) edit(data []byte, with chunkEdit) []byte {
	with.ID = j.id
	with.Call = func(c chunkCall) int {
		if c.Choice != 0 {
			return c.Index
		}
		return j.index[c.Index]
	}
	out, err := editChunk(data, with)
	if err != nil {
		return data
	}
	if j.rounds > 0 {
		out = editDeltas(out, func(delta []byte) []byte {
			return rawjson.Splice(delta, rawjson.DropField(delta, "role"))
		})
	}
	return out
}

// finish holds back a chunk that ends the stream. Its other content is sent.
func (j *chatJoiner) finish(event string, data []byte, c chatChunk) []byte {
	data = j.edit(data, chunkEdit{})
	bare := editDeltas(data, func([]byte) []byte { return []byte("{}") })
	j.last = append(j.last, bytes.Clone(bare))
	if !c.Words && j.left(c) == 0 {
		return nil
	}
	open, err := editChunk(data, chunkEdit{Open: true})
	if err != nil {
		return nil
	}
	return sse.JSON(event, rawjson.Splice(open, rawjson.DropField(open, "usage")))
}

// hold holds back the end of the stream if there is anything to join.
func (j *chatJoiner) hold(data, raw []byte) []byte {
	if !j.ours && j.rounds == 0 {
		return raw
	}
	j.last = append(j.last, bytes.Clone(data))
	return nil
}

// End implements protocol.Joiner.
func (j *chatJoiner) End(used furl.Usage, quiet bool) []byte {
	var out []byte
	for _, data := range j.last {
		if c, err := readChunk(data); err == nil {
			if c.Usage {
				data, _ = setUsage(data, used)
			}
			if quiet && c.Finish == "tool_calls" {
				data = editChoices(data, func(choice []byte) []byte { return rawjson.WithField(choice, "finish_reason", []byte(`"stop"`)) })
			}
		}
		out = append(out, sse.JSON("", data)...)
	}
	return out
}

// separator is a chunk like data with only the separator between the texts of
// two replies.
func (j *chatJoiner) separator(data []byte) []byte {
	data = editDeltas(data, func([]byte) []byte {
		return append(rawjson.AppendString([]byte(`{"content":`), furl.BetweenWords), '}')
	})
	return rawjson.Splice(data, rawjson.DropField(data, "usage"))
}

// hasWords reports whether a chunk has text of the first choice.
func hasWords(data []byte) (yes bool) {
	for _, choice := range rawjson.Elements(rawjson.Field(data, "choices")) {
		if n, _ := rawjson.NewReader(rawjson.Field(choice, "index")).Int(); n == 0 {
			yes = yes || rawjson.Unquote(rawjson.Field(rawjson.Field(choice, "delta"), "content")) != ""
		}
	}
	return yes
}

// editChoices edits the choices of a chunk.
func editChoices(data []byte, edit func(choice []byte) []byte) []byte {
	elems := rawjson.Elements(rawjson.Field(data, "choices"))
	if len(elems) == 0 {
		return data
	}
	out := []byte{'['}
	for i, choice := range elems {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, edit(choice)...)
	}
	return rawjson.WithField(data, "choices", []byte(string(append(out, ']'))))
}

// editDeltas edits the deltas of a chunk's choices.
func editDeltas(data []byte, edit func(delta []byte) []byte) []byte {
	return editChoices(data, func(choice []byte) []byte { return rawjson.EditField(choice, "delta", edit) })
}
