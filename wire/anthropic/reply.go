package anthropic

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

var _ protocol.ReplyCodec = codec{}

// windowFull is the stop reason of a reply that filled the window.
const windowFull = "model_context_window_exceeded"

// DecodeReply decodes the body of a response: a message, the count of
// count_tokens (then only Usage.Input is set), or an error.
func (codec) DecodeReply(status int, body []byte) (*protocol.Reply, error) {
	d := newDraft()
	if status >= badRequest {
		d.refuse(status, body)
		return d.finish()
	}
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return nil, errors.New("decode Anthropic reply: expected an object")
	}
	f := d.message(r)
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("decode Anthropic reply: %w", err)
	}
	switch f.typ {
	case "message":
		d.reply.Complete = true
	case "error":
		d.refuse(0, body)
	default:
		if !f.counted {
			return nil, fmt.Errorf("decode Anthropic reply: type %q, expected a message", f.typ)
		}
		d.reply.Complete = true
	}
	reply, err := d.finish()
	if err != nil {
		return nil, fmt.Errorf("decode Anthropic reply: %w", err)
	}
	return reply, nil
}

// draft is an incomplete reply.
type draft struct {
	reply   protocol.Reply
	role    string
	content [][]byte // content blocks as a client would send them
	counts  counts
}

func newDraft() *draft {
	return &draft{reply: protocol.Reply{Format: furl.FormatAnthropic}, role: "assistant"}
}

// messageFields are the fields that only the caller of draft.message uses.
type messageFields struct {
	typ     string
	counted bool // input_tokens is a top-level field, as in responses of count_tokens
}

// message reads a message object: a body, or the message of message_start.
func (d *draft) message(r *rawjson.Reader) (f messageFields) {
	for key := range r.Fields() {
		switch string(key) {
		case "type":
			f.typ, _ = r.String()
		case "id":
			d.reply.ID, _ = r.String()
		case "model":
			d.reply.Model, _ = r.String()
		case "role":
			if role, ok := r.String(); ok && role != "" {
				d.role = role
			}
		case "content":
			d.content = nil
			if r.Kind() != '[' {
				continue
			}
			for range r.Elements() {
				d.content = append(d.content, r.Raw())
			}
		case "input_tokens":
			var ok bool
			d.counts.input, ok = r.Int()
			f.counted = ok
		default:
			d.common(r, string(key))
		}
	}
	return f
}

// common reads a field that a message and the events of a stream have.
func (d *draft) common(r *rawjson.Reader, key string) {
	switch key {
	case "stop_reason":
		if s, ok := r.String(); ok {
			d.reply.Stop = s
		}
	case "usage":
		// A usage of another type is ignored.
		_ = d.counts.read(r.Raw())
	case "context_management":
		if r.Kind() == '{' {
			d.reply.ContextManagement = bytes.Clone(r.Raw())
		}
	case "input_transformations":
		if r.Kind() == '[' {
			d.transformations(r)
		}
	}
}

// maxDropped bounds how many dropped blocks are recorded.
const maxDropped = 10_000

func (d *draft) transformations(r *rawjson.Reader) {
	d.reply.Dropped = nil
	for range r.Elements() {
		var typ string
		var b protocol.DroppedBlock
		if r.Kind() != '{' {
			continue
		}
		for key := range r.Fields() {
			switch string(key) {
			case "type":
				typ, _ = r.String()
			case "path":
				b.Path = readPath(r)
			case "reason":
				b.Reason, _ = r.String()
			}
		}
		if typ == "thinking_dropped" && len(d.reply.Dropped) < maxDropped {
			d.reply.Dropped = append(d.reply.Dropped, b)
		}
	}
}

// readPath reads a path: a string, or a list of its steps.
func readPath(r *rawjson.Reader) string {
	if r.Kind() != '[' {
		s, _ := r.String()
		return s
	}
	var path []byte
	for i := range r.Elements() {
		if i > 0 {
			path = append(path, '.')
		}
		path = append(path, bytes.Trim(r.Raw(), `"`)...)
	}
	return string(path)
}

// refuse records an error body, or the data of an error event (status 0).
func (d *draft) refuse(status int, body []byte) {
	typ, code, message := parseError(body)
	if status == 0 {
		status = statusOf(typ)
	}
	if typ == "" {
		typ = typeOf(status)
	}
	d.reply.Refusal = &protocol.Refusal{Status: status, Type: typ, Code: code, Message: message}
	d.reply.Complete = false
	if reported, limit, ok := ParseOverflow(status, body); ok {
		d.reply.Overflow = &protocol.Overflow{Tokens: reported, Limit: limit}
	}
	d.reply.ThinkingRefused = parseThinkingRefused(status, message)
}

// finish returns the reply. The draft can be extended further.
func (d *draft) finish() (*protocol.Reply, error) {
	reply := d.reply
	reply.Usage, reply.Passes = d.counts.usage()
	reply.Terms = d.counts.terms
	if reply.Stop == windowFull && reply.Refusal == nil {
		full := reply.Usage.Prompt() + reply.Usage.Output
		reply.Overflow = &protocol.Overflow{Tokens: full, Limit: full}
	}
	raw := rawjson.AppendString([]byte(`{"role":`), d.role)
	raw = append(raw, `,"content":[`...)
	blocks := 0
	for _, b := range d.content {
		if isEmptyText(b) {
			continue // the provider refuses it, so clients do not send it back
		}
		if blocks > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, b...)
		blocks++
	}
	if blocks == 0 {
		return &reply, nil
	}
	m, err := codec{}.DecodeMessage(append(raw, "]}"...))
	if err != nil {
		return &reply, err
	}
	reply.Messages = []*furl.Message{m}
	return &reply, nil
}

func isEmptyText(raw []byte) bool {
	f := readFields(rawjson.NewReader(raw))
	return f.typ == "text" && f.text.Text() == ""
}

// statuses are the HTTP statuses of the provider's error types.
var statuses = []struct {
	status int
	typ    string
}{
	{badRequest, invalidRequest},
	{401, "authentication_error"},
	{402, "billing_error"},
	{403, "permission_error"},
	{404, "not_found_error"},
	{409, "conflict_error"},
	{entityTooLarge, tooLarge},
	{429, "rate_limit_error"},
	{500, "api_error"},
	{504, "timeout_error"},
	{529, "overloaded_error"},
}

// statusOf returns the status of an error type, 500 if it is unknown.
func statusOf(typ string) int {
	for _, s := range statuses {
		if s.typ == typ {
			return s.status
		}
	}
	return 500
}

func typeOf(status int) string {
	for _, s := range statuses {
		if s.status == status {
			return s.typ
		}
	}
	if status < 500 {
		return invalidRequest
	}
	return "api_error"
}

// ErrorBody returns the body of a response that refuses a request. A refusal
// without a type gets the type of its status.
func (codec) ErrorBody(r *protocol.Refusal, requestID string) []byte {
	if r.Type == "" {
		typed := *r
		typed.Type = typeOf(r.Status)
		r = &typed
	}
	return ErrorBody(r, requestID)
}

// ErrorEvent returns an error event for use within a stream.
func (c codec) ErrorEvent(r *protocol.Refusal) (event string, data []byte) {
	return "error", c.ErrorBody(r, "")
}
