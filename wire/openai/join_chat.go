package openai

import (
	"bytes"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
)

// NewJoiner implements wire.API.
func (chat) NewJoiner(own func(name string) bool) furl.Joiner { return &chatJoiner{own: own} }

// chatJoiner joins streams of Chat Completions: one id, one role, calls numbered
// through, one finish reason, one usage, one end.
type chatJoiner struct {
	own    func(string) bool
	rounds int    // before
	id     string // of the first
	calls  int    // that the client has
	words  bool   // it has words
	// Of the stream at hand:
	index map[int]int // of its calls, as the client knows them; -1: held back
	ours  bool        // some are
	spoke bool        // it has words
	last  [][]byte    // data of the chunks that end it, held back
	broke bool        // an error has ended it
}

// Called implements furl.Joiner.
func (j *chatJoiner) Called() bool { return j.ours }

// Next implements furl.Joiner.
func (j *chatJoiner) Next() {
	j.rounds++
	j.words = j.words || j.spoke
	j.index, j.ours, j.spoke, j.last = nil, false, false, nil
}

// Event implements furl.Joiner.
func (j *chatJoiner) Event(event string, data, raw []byte) []byte {
	switch {
	case data == nil || j.broke:
		return raw
	case isError(data):
		// The client is to have it as it came, and no end that would make the
		// answer look whole.
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
		j.number(call)
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
		return nil // a role, or nothing that is the client's
	}
	out := sse.JSON(event, data)
	if first && j.words {
		// The client has the words of all answers in one text.
		out = append(sse.JSON(event, j.separator(data)), out...)
	}
	return out
}

// isError reports whether a chunk says that the answer cannot go on. Servers put
// that beside choices or in their place.
func isError(data []byte) bool {
	v := rawjson.Field(data, "error")
	return len(v) > 0 && string(v) != "null"
}

// number gives a call its place among the client's, or -1 if it is one of
// recall.
func (j *chatJoiner) number(c chunkCall) {
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

// left counts the fragments of a chunk that are the client's.
func (j *chatJoiner) left(c chatChunk) (n int) {
	for _, call := range c.Calls {
		if call.Choice != 0 || j.index[call.Index] >= 0 {
			n++
		}
	}
	return n
}

// edit makes a chunk one of the client's stream.
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

// finish holds a chunk back that ends the stream. What else it has goes on.
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

// hold holds the end of the stream back if there is anything to join.
func (j *chatJoiner) hold(data, raw []byte) []byte {
	if !j.ours && j.rounds == 0 {
		return raw
	}
	j.last = append(j.last, bytes.Clone(data))
	return nil
}

// End implements furl.Joiner.
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

// separator is a chunk like data that has nothing but what stands between the
// words of two answers.
func (j *chatJoiner) separator(data []byte) []byte {
	data = editDeltas(data, func([]byte) []byte {
		return append(rawjson.AppendString([]byte(`{"content":`), furl.BetweenWords), '}')
	})
	return rawjson.Splice(data, rawjson.DropField(data, "usage"))
}

// hasWords reports whether a chunk has words of the first choice.
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

// editDeltas edits what the choices of a chunk add.
func editDeltas(data []byte, edit func(delta []byte) []byte) []byte {
	return editChoices(data, func(choice []byte) []byte { return rawjson.EditField(choice, "delta", edit) })
}
