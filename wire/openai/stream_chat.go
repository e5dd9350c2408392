package openai

import (
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// NewAssembler returns an Assembler for one streamed reply. Of several
// choices it uses the one with index 0. It tolerates deviations of compatible
// servers: calls without an index or all with the same one, repeated names,
// usage inside a choice, a stream without a finish_reason.
func (chat) NewAssembler() protocol.Assembler {
	return &chatAssembler{reply: protocol.Reply{Format: furl.FormatChat}, role: "assistant"}
}

type chatAssembler struct {
	reply    protocol.Reply
	role     string
	content  []byte
	parts    [][]byte // if content is a list
	refusal  []byte
	thinking [2][]byte // the strings among thinkingFields
	details  []detail  // the list among them
	calls    []*chatFragments
	function *chatFragments // the legacy call
	audioID  string
	extra    []extra // unknown fields
	size     int
	ended    bool
	err      error
}

func (a *chatAssembler) Feed(event string, data []byte) error {
	if a.err == nil && !a.ended {
		if err := a.feed(event, trim(data)); err != nil {
			a.err = fmt.Errorf("read Chat Completions stream: %w", err)
		}
	}
	return a.err
}

func (a *chatAssembler) feed(event string, data []byte) error {
	if isDone(data) {
		a.ended, a.reply.Complete = true, true
		return nil
	}
	if len(data) == 0 {
		return nil
	}
	if a.size += len(data); a.size > maxReply {
		return fmt.Errorf("the reply is larger than %d bytes", maxReply)
	}
	r := rawjson.NewReader(data)
	if r.Kind() != '{' {
		return errors.New("expected an object")
	}
	failed := event == "error"
	for key := range r.Fields() {
		switch string(key) {
		case "id":
			keep(r, &a.reply.ID)
		case "model":
			keep(r, &a.reply.Model)
		case "object":
			kind, _ := r.String()
			failed = failed || kind == "error"
		case "error":
			failed = failed || r.Kind() == '{' || r.Kind() == '"'
		case "usage":
			usageOf(&a.reply, r.Raw())
		case "service_tier":
			tierOf(&a.reply, r)
		case "choices":
			if r.Kind() != '[' {
				continue
			}
			for range r.Elements() {
				if err := a.choice(r); err != nil {
					return err
				}
			}
		}
	}
	if err := r.End(); err != nil {
		return err
	}
	if failed {
		a.ended = true
		refused(&a.reply, 0, data)
	}
	return nil
}

// keep reads the first non-empty string.
func keep(r *rawjson.Reader, to *string) {
	if s, ok := r.String(); ok && *to == "" {
		*to = s
	}
}

func (a *chatAssembler) choice(r *rawjson.Reader) error {
	if r.Kind() != '{' {
		return nil
	}
	index := 0
	var delta, stop []byte
	for key := range r.Fields() {
		switch string(key) {
		case "index":
			index, _ = r.Int()
		case "delta":
			delta = r.Raw()
		case "finish_reason":
			stop = r.Raw()
		case "usage":
			usageOf(&a.reply, r.Raw())
		}
	}
	if index != 0 {
		return nil
	}
	if rawjson.NewReader(delta).Kind() == '{' {
		if err := a.delta(rawjson.NewReader(delta)); err != nil {
			return err
		}
	}
	if s := rawjson.Unquote(stop); s != "" {
		a.reply.Stop, a.reply.Complete = s, true
	}
	return nil
}

func (a *chatAssembler) delta(r *rawjson.Reader) error {
	var err error
	for key := range r.Fields() {
		switch string(key) {
		case "role":
			if s, ok := r.String(); ok && s != "" {
				a.role = s
			}
		case "content":
			err = errors.Join(err, a.addContent(r))
		case "refusal":
			appendString(r, &a.refusal)
		case thinkingFields[0]:
			appendString(r, &a.thinking[0])
		case thinkingFields[1]:
			appendString(r, &a.thinking[1])
		case thinkingFields[2]:
			err = errors.Join(err, a.addDetails(r))
		case "tool_calls":
			if r.Kind() != '[' {
				continue
			}
			for range r.Elements() {
				err = errors.Join(err, a.fragment(r))
			}
		case "function_call":
			if r.Kind() != '{' {
				continue
			}
			if a.function == nil {
				a.function = new(chatFragments)
			}
			a.function.body(r)
		case "audio":
			if r.Kind() != '{' {
				continue
			}
			for key := range r.Fields() {
				if string(key) == "id" {
					keep(r, &a.audioID)
				}
			}
		default:
			a.extra = addExtra(a.extra, string(key), r)
		}
	}
	return err
}

func appendString(r *rawjson.Reader, to *[]byte) {
	s, _ := r.String()
	*to = append(*to, s...)
}

// addContent adds a piece of content: text, or a list of parts as a few
// servers send, whose texts are text too.
func (a *chatAssembler) addContent(r *rawjson.Reader) error {
	if r.Kind() != '[' {
		appendString(r, &a.content)
		return nil
	}
	for range r.Elements() {
		raw := r.Raw()
		if p := readPart(raw, rawjson.NewReader(raw), 0); p.kind == furl.KindText && p.typ != "refusal" {
			a.content = append(a.content, p.text...)
			continue
		}
		if len(a.parts) == maxPieces {
			return fmt.Errorf("more than %d content parts", maxPieces)
		}
		a.parts = append(a.parts, append([]byte(nil), raw...))
	}
	return nil
}

// Reply builds the message received so far. Of an interrupted stream, calls
// with incomplete arguments are omitted.
func (a *chatAssembler) Reply() (*protocol.Reply, error) {
	reply := a.reply
	if reply.Stop == modelLength {
		filled(&reply)
	}
	if a.err != nil {
		reply.Complete = false
	}
	err := addMessage(chat{}, &reply, a.message(reply.Complete))
	if a.err != nil {
		return &reply, a.err
	}
	if err != nil {
		return &reply, fmt.Errorf("read Chat Completions stream: %w", err)
	}
	return &reply, nil
}

func (a *chatAssembler) message(complete bool) []byte {
	out := appendField([]byte{'{'}, "role", quote(a.role))
	calls := wholeCalls(a.calls, complete)
	switch {
	case len(a.parts) > 0:
		parts := a.parts
		if len(a.content) > 0 {
			parts = append(parts[:len(parts):len(parts)], textPart("text", string(a.content)))
		}
		out = appendField(out, "content", list(parts))
	case len(a.content) == 0 && (len(calls) > 0 || a.function != nil || len(a.refusal) > 0 || a.audioID != ""):
		out = appendField(out, "content", []byte("null"))
	default:
		out = appendField(out, "content", quote(string(a.content)))
	}
	if len(a.refusal) > 0 {
		out = appendField(out, "refusal", quote(string(a.refusal)))
	}
	for i, text := range a.thinking {
		if len(text) > 0 {
			out = appendField(out, thinkingFields[i], quote(string(text)))
		}
	}
	if len(a.details) > 0 {
		out = appendField(out, thinkingFields[2], detailList(a.details))
	}
	for _, e := range a.extra {
		out = appendField(out, e.name, e.value)
	}
	if a.audioID != "" {
		out = appendField(out, "audio", append(appendField([]byte{'{'}, "id", quote(a.audioID)), '}'))
	}
	if len(calls) > 0 {
		out = appendField(out, "tool_calls", list(calls))
	}
	if a.function != nil && (complete || rawjson.Check(a.function.args) == nil) {
		out = appendField(out, "function_call", a.function.function())
	}
	return append(out, '}')
}
