package gemini

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
)

// NewJoiner implements wire.API.
func (codec) NewJoiner(own func(name string) bool) protocol.Joiner { return &joiner{own: own} }

// joiner joins streams of pieces: one id, one end. No piece that it writes lacks parts:
// chats of @google/genai 3.3 drop a reply with such a piece, and the question before it.
type joiner struct {
	own    func(string) bool
	rounds int    // finished streams
	id     []byte // responseId of the first stream
	// Of the current stream:
	calls bool   // some calls are held back
	last  []byte // data of the final piece, held back
	left  bool   // last has parts for the client
	broke bool   // it ended with an error
	// carry is what the client receives before the next piece.
	carry []byte
}

// Called implements protocol.Joiner.
func (j *joiner) Called() bool { return j.calls }

// Next implements protocol.Joiner.
func (j *joiner) Next() {
	j.rounds++
	if j.left {
		j.carry = sse.JSON("", without(editCandidate(j.last, func(c []byte) []byte { return without(c, "finishReason") }), "usageMetadata"))
	}
	j.calls, j.last, j.left = false, nil, false
}

// Event implements protocol.Joiner.
func (j *joiner) Event(event string, data, raw []byte) []byte {
	out := j.event(event, data, raw)
	if len(j.carry) > 0 {
		out, j.carry = append(j.carry, out...), nil
	}
	return out
}

func (j *joiner) event(event string, data, raw []byte) []byte {
	if data == nil || j.broke {
		return raw
	}
	p, err := readPiece(data)
	switch {
	case err != nil:
		return raw
	case p.failed:
		// The client receives the error unchanged, and no end that would make
		// the reply look complete.
		j.broke, j.last, j.left = true, nil, false
		return raw
	}
	if j.id == nil {
		j.id = bytes.Clone(value(data, "responseId"))
	}
	ours := 0
	for _, part := range p.parts {
		if isOwn(part, j.own) {
			ours++
		}
	}
	j.calls = j.calls || ours > 0
	if !j.calls && j.rounds == 0 {
		return raw
	}
	if j.rounds > 0 && j.id != nil && value(data, "responseId") != nil {
		data = with(data, "responseId", j.id)
	}
	left := len(p.parts) - ours
	if ours > 0 {
		data = editParts(data, func(parts [][]byte) [][]byte { return withoutOwn(parts, j.own) })
	}
	switch {
	case p.finish == "" && left == 0:
		return nil // nothing for the client
	case p.finish == "":
		return sse.JSON(event, data)
	}
	if j.left = left > 0; !j.left {
		data = editParts(data, func([][]byte) [][]byte { return [][]byte{[]byte(`{"text":""}`)} })
	}
	j.last = bytes.Clone(data)
	return nil
}

// End implements protocol.Joiner.
func (j *joiner) End(used furl.Usage, _ bool) []byte {
	if j.last == nil {
		return j.carry
	}
	return append(j.carry, sse.JSON("", setUsage(j.last, used))...)
}

// isOwn reports whether a part calls one of furl's tools.
func isOwn(part []byte, own func(name string) bool) bool {
	call := value(part, "functionCall")
	return len(call) > 0 && own(text(call, "name"))
}

func withoutOwn(parts [][]byte, own func(name string) bool) (out [][]byte) {
	for _, p := range parts {
		if !isOwn(p, own) {
			out = append(out, p)
		}
	}
	return out
}

// editCandidate edits the candidate with index 0 of a piece or a body.
func editCandidate(data []byte, edit func(candidate []byte) []byte) []byte {
	elems := rawjson.Elements(value(data, "candidates"))
	edited := false
	for i, c := range elems {
		if indexOf(c, i) == 0 && !edited {
			elems[i], edited = edit(c), true
		}
	}
	if !edited {
		return data
	}
	return with(data, "candidates", bracketed(elems...))
}

// editParts edits the parts of the candidate with index 0. A content without parts gets
// some.
func editParts(data []byte, edit func(parts [][]byte) [][]byte) []byte {
	return editCandidate(data, func(c []byte) []byte {
		content := value(c, "content")
		if rawjson.NewReader(content).Kind() != '{' {
			content = []byte(`{"role":"model"}`)
		}
		return with(c, "content", with(content, "parts", bracketed(edit(rawjson.Elements(value(content, "parts")))...)))
	})
}

// pieces returns the pieces of a body: the elements of a list, or the body itself.
func pieces(body []byte) (list [][]byte, isList bool) {
	if rawjson.NewReader(body).Kind() == '[' {
		return rawjson.Elements(body), true
	}
	return [][]byte{body}, false
}

// Calls implements wire.API.
func (codec) Calls(body []byte, own func(name string) bool) bool {
	list, _ := pieces(body)
	for _, data := range list {
		p, _ := readPiece(data)
		for _, part := range p.parts {
			if isOwn(part, own) {
				return true
			}
		}
	}
	return false
}

// JoinBodies implements wire.API.
func (codec) JoinBodies(before []*protocol.Reply, body []byte, own func(name string) bool, used furl.Usage, _ bool) ([]byte, error) {
	if err := rawjson.Check(body); err != nil {
		return nil, err
	}
	var earlier [][]byte
	for _, r := range before {
		earlier = append(earlier, theirParts(r)...)
	}
	list, isList := pieces(body)
	if len(list) == 0 {
		return nil, errors.New("edit Gemini reply: it has no pieces")
	}
	var out [][]byte
	for i, data := range list {
		first := i == 0
		data = editParts(data, func(parts [][]byte) [][]byte {
			parts = withoutOwn(parts, own)
			if first {
				parts = append(earlier, parts...)
			}
			if len(parts) == 0 {
				parts = [][]byte{[]byte(`{"text":""}`)}
			}
			return parts
		})
		out = append(out, setUsage(data, used))
	}
	if isList {
		return bracketed(out...), nil
	}
	return out[0], nil
}

// theirParts returns the parts of a reply that the client receives.
func theirParts(r *protocol.Reply) (parts [][]byte) {
	for _, m := range r.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; !b.Own && b.Start < b.End && b.End <= len(m.Raw) {
				parts = append(parts, json.RawMessage(m.Raw[b.Start:b.End]))
			}
		}
	}
	return parts
}

// DropTools implements wire.API: a reply of Gemini does not contain tools.
func (codec) DropTools(body []byte, _ func(name string) bool) []byte { return body }
