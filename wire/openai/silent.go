package openai

import "github.com/furlhq/furl/internal/rawjson"

// Silent implements wire.API. The data decides what the event is; the event
// name is used if the data does not say.
func (responses) Silent(event string, data []byte) bool {
	r := rawjson.NewReader(data)
	if r.Kind() == '{' {
		for key := range r.Fields() {
			if string(key) == "type" {
				if t, ok := r.String(); ok {
					event = t
				}
				break
			}
		}
	}
	switch event {
	case "response.created", "response.in_progress", "response.queued", "keepalive":
		return true
	}
	return false
}

// Silent implements wire.API.
func (chat) Silent(event string, data []byte) bool { return event == "" && emptyChunk(data) }

// emptyChunk reports whether a chunk of Chat Completions contains at most a
// role.
func emptyChunk(data []byte) bool {
	r := rawjson.NewReader(data)
	if r.Kind() != '{' {
		return false
	}
	empty, chunk := true, false
	for key := range r.Fields() {
		switch string(key) {
		case "error":
			empty = empty && r.Kind() == 'n'
		case "object":
			s, _ := r.String()
			empty = empty && s != "error"
		case "choices":
			if r.Kind() != '[' {
				continue
			}
			chunk = true
			for range r.Elements() {
				empty = emptyChoice(r) && empty
			}
		}
	}
	return r.End() == nil && chunk && empty
}

func emptyChoice(r *rawjson.Reader) bool {
	if r.Kind() != '{' {
		return false
	}
	empty := true
	for key := range r.Fields() {
		switch string(key) {
		case "delta":
			if r.Kind() != '{' {
				continue
			}
			for key := range r.Fields() {
				if string(key) != "role" {
					empty = isEmptyValue(r.Raw()) && empty
				}
			}
		case "finish_reason", "message", "text":
			empty = isEmptyValue(r.Raw()) && empty
		}
	}
	return empty
}

// isEmptyValue reports whether a value is empty.
func isEmptyValue(raw []byte) bool {
	switch string(raw) {
	case "null", `""`, "[]", "{}":
		return true
	}
	return false
}
