package openai

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// DecodeReply decodes the body of a response: a response object, the output
// of /responses/compact, the count of /responses/input_tokens (then only
// Usage.Input is set), or an error.
func (c responses) DecodeReply(status int, body []byte) (*protocol.Reply, error) {
	reply := &protocol.Reply{Format: furl.FormatResponses}
	if status >= 400 {
		refused(reply, status, body)
		return reply, nil
	}
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return nil, errors.New("decode Responses reply: expected an object")
	}
	f := readResponse(r, reply)
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("decode Responses reply: %w", err)
	}
	switch {
	case f.failed:
		refused(reply, 0, body)
	case f.counted && !f.listed:
		reply.Complete = true
	case !f.listed && f.status == "":
		return nil, errors.New("decode Responses reply: no output")
	default:
		reply.Complete = f.ended()
	}
	if err := addItems(c, reply, f.output); err != nil {
		return nil, fmt.Errorf("decode Responses reply: %w", err)
	}
	return reply, nil
}

// responseFields are the fields of a response that are not copied into the
// reply.
type responseFields struct {
	status  string
	failed  bool // it contains an error
	listed  bool // it has an output
	counted bool // input_tokens is a top-level field
	output  [][]byte
}

// ended reports whether the reply is complete. The output of
// /responses/compact has no status.
func (f *responseFields) ended() bool {
	return f.status == "" || f.status == "completed" || f.status == "incomplete"
}

// readResponse consumes a response object.
func readResponse(r *rawjson.Reader, reply *protocol.Reply) (f responseFields) {
	reason := ""
	for key := range r.Fields() {
		switch string(key) {
		case "id":
			if s, ok := r.String(); ok && s != "" {
				reply.ID = s
			}
		case "model":
			if s, ok := r.String(); ok && s != "" {
				reply.Model = s
			}
		case "status":
			f.status, _ = r.String()
		case "error":
			f.failed = r.Kind() == '{'
		case "incomplete_details":
			if r.Kind() == '{' {
				reason = rawjson.Unquote(rawjson.Field(r.Raw(), "reason"))
			}
		case "usage":
			usageOf(reply, r.Raw())
		case "service_tier":
			tierOf(reply, r)
		case "input_tokens":
			if n, ok := r.Int(); ok {
				reply.Usage.Input, f.counted = n, true
			}
		case "output":
			f.output = nil
			if r.Kind() != '[' {
				continue
			}
			f.listed = true
			for range r.Elements() {
				f.output = append(f.output, r.Raw())
			}
		}
	}
	switch f.status {
	case "completed", "incomplete", "failed", "cancelled":
		if reply.Stop = reason; reason == "" {
			reply.Stop = f.status
		}
	}
	return f
}

// addItems adds items to the reply as a client sends them back. Those that state no
// role are the model's here.
func addItems(c responses, reply *protocol.Reply, items [][]byte) error {
	for i, raw := range items {
		m, err := c.DecodeMessage(bytes.TrimSpace(raw))
		if err != nil {
			return fmt.Errorf("output.%d: %w", i, err)
		}
		if m.Role == "" {
			m.Role = furl.RoleAssistant
		}
		reply.Messages = append(reply.Messages, m)
	}
	reply.Terms.Tools = toolUses(reply.Messages)
	return nil
}
