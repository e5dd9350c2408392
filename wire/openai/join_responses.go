package openai

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
)

// NewJoiner implements wire.API.
func (responses) NewJoiner(own func(name string) bool) protocol.Joiner {
	return &responsesJoiner{own: own}
}

// responsesJoiner joins streams of Responses: one response, with consecutive
// indexes of items and events.
type responsesJoiner struct {
	own      func(string) bool
	rounds   int    // finished streams
	id       string // of the first response
	sequence int    // of the next event
	items    int    // items sent to the client
	before   []json.RawMessage
	// Of the current stream:
	index map[int]int // index of each item at the client; -1: held back
	calls bool        // some items are held back
	done  []json.RawMessage
	last  []heldEvent
}

type heldEvent struct {
	typ  string
	data []byte
}

// Called implements protocol.Joiner.
func (j *responsesJoiner) Called() bool { return j.calls }

// Next implements protocol.Joiner.
func (j *responsesJoiner) Next() {
	j.rounds++
	j.before = append(j.before, j.done...)
	j.index, j.calls, j.done, j.last = nil, false, nil, nil
}

// Event implements protocol.Joiner.
func (j *responsesJoiner) Event(event string, data, raw []byte) []byte {
	ev, err := readHead(data)
	if data == nil || err != nil {
		return raw
	}
	if n, ok := rawjson.NewReader(rawjson.Field(data, "sequence_number")).Int(); ok && j.rounds == 0 && !j.calls {
		j.sequence = n
	}
	whole := false // it contains the whole response, which repeats the request's fields
	switch ev.Type {
	case "response.created", "response.in_progress", "response.queued":
		if j.rounds > 0 {
			return nil
		}
		if j.id == "" {
			j.id = rawjson.Unquote(rawjson.Field(rawjson.Field(data, "response"), "id"))
		}
		whole = true
	case "response.completed", "response.incomplete", "response.failed":
		if j.calls || j.rounds > 0 {
			j.last = append(j.last, heldEvent{event, bytes.Clone(data)})
			return nil
		}
		whole = true
	}
	edit := eventEdit{Tool: j.own}
	if ev.Output >= 0 {
		at := j.clientIndex(ev)
		if at < 0 {
			return nil
		}
		if ev.Type == "response.output_item.done" {
			j.done = append(j.done, bytes.Clone(rawjson.Field(data, "item")))
		}
		edit.Output = &at
	}
	sequence := j.sequence
	j.sequence++
	switch {
	case j.calls || j.rounds > 0:
	case whole:
		return j.withTheirTools(event, data, raw)
	default:
		return raw
	}
	edit.Sequence = &sequence
	data, err = editEvent(data, edit)
	if err != nil {
		return raw
	}
	return sse.JSON(event, data)
}

// clientIndex returns the client's index of the item of an event, -1 if it is a
// call of furl's tools.
func (j *responsesJoiner) clientIndex(ev eventHead) int {
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

// End implements protocol.Joiner.
func (j *responsesJoiner) End(used furl.Usage, _ bool) []byte {
	var out []byte
	for _, h := range j.last {
		sequence := j.sequence
		j.sequence++
		data, err := editEvent(h.data, eventEdit{
			Sequence: &sequence, ResponseID: j.id, Before: j.before, Usage: &used,
			Drop: func(i int) bool { return j.index[i] < 0 },
			Tool: j.own,
		})
		if err != nil {
			data = h.data
		}
		out = append(out, sse.JSON(h.typ, data)...)
	}
	return out
}

// withTheirTools returns the bytes of an event whose response repeats the
// request's tools, without those that the client did not send.
func (j *responsesJoiner) withTheirTools(event string, data, raw []byte) []byte {
	response := rawjson.Field(data, "response")
	theirs := dropTools(response, j.own)
	if len(theirs) == len(response) {
		return raw
	}
	with := rawjson.WithField(data, "response", theirs)
	if before, after, ok := bytes.Cut(raw, data); ok {
		return slices.Concat(before, with, after)
	}
	return sse.JSON(event, with) // the data has several lines
}

// Calls implements wire.API.
func (responses) Calls(body []byte, own func(name string) bool) bool {
	return len(ownItems(body, own)) > 0
}

// ownItems returns the indexes of calls of furl's tools in a response's
// output.
func ownItems(body []byte, own func(name string) bool) map[int]bool {
	found := make(map[int]bool)
	for i, item := range rawjson.Elements(rawjson.Field(body, "output")) {
		if rawjson.Unquote(rawjson.Field(item, "type")) == "function_call" && own(rawjson.Unquote(rawjson.Field(item, "name"))) {
			found[i] = true
		}
	}
	return found
}

// JoinBodies implements wire.API.
func (responses) JoinBodies(before []*protocol.Reply, body []byte, own func(name string) bool, used furl.Usage, _ bool) ([]byte, error) {
	ours := ownItems(body, own)
	var items []json.RawMessage
	for _, r := range before {
		for _, m := range r.Messages {
			if !m.HasOwn() {
				items = append(items, m.Raw)
			}
		}
	}
	body, err := withOutput(body, items, func(i int) bool { return ours[i] })
	if err != nil {
		return nil, err
	}
	return setUsage(body, used)
}

// DropTools implements wire.API: a response repeats the tools of its request.
func (responses) DropTools(body []byte, own func(name string) bool) []byte {
	return dropTools(body, own)
}
