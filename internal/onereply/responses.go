package onereply

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/wire/openai"
)

// responsesJoiner joins streams of Responses: one response, items and events
// numbered through.
type responsesJoiner struct {
	own      func(string) bool
	rounds   int    // before
	id       string // of the first response
	sequence int    // of the next event
	items    int    // that the client has
	before   []json.RawMessage
	// Of the stream at hand:
	index map[int]int // of its items, as the client knows them; -1: held back
	calls bool        // some are
	done  []json.RawMessage
	last  []heldEvent
}

type heldEvent struct {
	typ  string
	data []byte
}

func (j *responsesJoiner) called() bool { return j.calls }

func (j *responsesJoiner) next() {
	j.rounds++
	j.before = append(j.before, j.done...)
	j.index, j.calls, j.done, j.last = nil, false, nil, nil
}

func (j *responsesJoiner) event(e sse.Event) []byte {
	ev, err := openai.ReadEvent(e.Data)
	if !e.HasData || err != nil {
		return e.Raw
	}
	if n, ok := rawjson.NewReader(rawjson.Field(e.Data, "sequence_number")).Int(); ok && j.rounds == 0 && !j.calls {
		j.sequence = n
	}
	whole := false // it holds the response, with what the request said
	switch ev.Type {
	case "response.created", "response.in_progress", "response.queued":
		if j.rounds > 0 {
			return nil
		}
		if j.id == "" {
			j.id = rawjson.Unquote(rawjson.Field(rawjson.Field(e.Data, "response"), "id"))
		}
		whole = true
	case "response.completed", "response.incomplete", "response.failed":
		if j.calls || j.rounds > 0 {
			j.last = append(j.last, heldEvent{e.Type, bytes.Clone(e.Data)})
			return nil
		}
		whole = true
	}
	edit := openai.EventEdit{Tool: j.own}
	if ev.Output >= 0 {
		at := j.number(ev)
		if at < 0 {
			return nil
		}
		if ev.Type == "response.output_item.done" {
			j.done = append(j.done, bytes.Clone(rawjson.Field(e.Data, "item")))
		}
		edit.Output = &at
	}
	sequence := j.sequence
	j.sequence++
	switch {
	case j.calls || j.rounds > 0:
	case whole:
		return j.withTheirTools(e)
	default:
		return e.Raw
	}
	edit.Sequence = &sequence
	data, err := openai.EditEvent(e.Data, edit)
	if err != nil {
		return e.Raw
	}
	return eventBytes(e.Type, data)
}

// number gives the item that an event is about its place among the client's, -1
// if it is a call of recall.
func (j *responsesJoiner) number(ev openai.Event) int {
	if j.index == nil {
		j.index = make(map[int]int)
	}
	at, known := j.index[ev.Output]
	if !known {
		if at = j.items; ev.Item == "function_call" && j.own(ev.Name) {
			at, j.calls = -1, true
		} else {
			j.items++
		}
		j.index[ev.Output] = at
	}
	return at
}

func (j *responsesJoiner) end(used furl.Usage, _ bool) []byte {
	var out []byte
	for _, h := range j.last {
		sequence := j.sequence
		j.sequence++
		data, err := openai.EditEvent(h.data, openai.EventEdit{
			Sequence: &sequence, ResponseID: j.id, Before: j.before, Usage: &used,
			Drop: func(i int) bool { return j.index[i] < 0 },
			Tool: j.own,
		})
		if err != nil {
			data = h.data
		}
		out = append(out, eventBytes(h.typ, data)...)
	}
	return out
}

// withTheirTools gives the bytes of an event whose response repeats the
// request's tools, without those that the client did not send.
func (j *responsesJoiner) withTheirTools(e sse.Event) []byte {
	response := rawjson.Field(e.Data, "response")
	theirs := openai.DropTools(response, j.own)
	if len(theirs) == len(response) {
		return e.Raw
	}
	data := rawjson.WithField(e.Data, "response", theirs)
	if before, after, ok := bytes.Cut(e.Raw, e.Data); ok {
		return slices.Concat(before, data, after)
	}
	return eventBytes(e.Type, data) // its data has several lines
}
