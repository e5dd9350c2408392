package protocol

import (
	"cmp"
	"strings"
)

// Endpoint is what the path of a request to a model says.
type Endpoint struct {
	// Model is the model's name, "" if only the body has it. If both do, the body decides.
	Model string
	// Stream is set if the path asks for a streamed reply. In formats whose path does not
	// say, the body does.
	Stream bool
	// List is set with Stream if the reply is a JSON list of pieces, instead of events.
	List bool
	// Count is set for requests that count the tokens of a prompt.
	Count bool
	// Compact is set for requests for a compaction: the provider replies with the messages
	// that replace the history.
	Compact bool
	// Prefix is what precedes the part of the path that belongs to the API, such as "/v1".
	Prefix string
}

// Complete adds to a decoded request what its path says.
func (e Endpoint) Complete(req *Request) {
	req.Endpoint = e
	req.Model = cmp.Or(req.Model, e.Model)
	req.Stream = req.Stream || e.Stream
}

// CutEnd returns what precedes the end of a path, whatever the case of its letters; ok is
// false if the path has another end, or if end is "".
func CutEnd(path, end string) (prefix string, ok bool) {
	at := len(path) - len(end)
	if end == "" || at < 0 || !strings.EqualFold(path[at:], end) {
		return "", false
	}
	return path[:at], true
}
