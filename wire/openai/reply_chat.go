package openai

import (
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// modelLength is the finish reason by which a compatible server says that the
// output filled the window.
const modelLength = "model_length"

// DecodeReply decodes the body of a response: a completion or an error. Of
// several choices it uses the one with index 0.
func (c chat) DecodeReply(status int, body []byte) (*protocol.Reply, error) {
	reply := &protocol.Reply{Format: furl.FormatChat}
	if status >= 400 {
		refused(reply, status, body)
		return reply, nil
	}
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return nil, errors.New("decode Chat Completions reply: expected an object")
	}
	failed, choices := false, false
	var message []byte
	for key := range r.Fields() {
		switch string(key) {
		case "id":
			reply.ID, _ = r.String()
		case "model":
			reply.Model, _ = r.String()
		case "usage":
			usageOf(reply, r.Raw())
		case "service_tier":
			tierOf(reply, r)
		case "error":
			failed = r.Kind() == '{'
		case "choices":
			choices = true
			if r.Kind() != '[' {
				continue
			}
			for range r.Elements() {
				if m := readChoice(r, reply); m != nil {
					message = m
				}
			}
		}
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("decode Chat Completions reply: %w", err)
	}
	if failed {
		refused(reply, 0, body)
		return reply, nil
	}
	if !choices {
		return nil, errors.New("decode Chat Completions reply: no choices")
	}
	reply.Complete = true
	if reply.Stop == modelLength {
		filled(reply)
	}
	if err := addMessage(c, reply, message); err != nil {
		return nil, fmt.Errorf("decode Chat Completions reply: %w", err)
	}
	return reply, nil
}

// readChoice consumes a choice and returns its message if it is the first.
func readChoice(r *rawjson.Reader, reply *protocol.Reply) (message []byte) {
	if r.Kind() != '{' {
		return nil
	}
	index, stop := 0, ""
	for key := range r.Fields() {
		switch string(key) {
		case "index":
			index, _ = r.Int()
		case "message":
			message = r.Raw()
		case "finish_reason":
			stop, _ = r.String()
		}
	}
	if index != 0 {
		return nil
	}
	reply.Stop = stop
	return message
}

// addMessage adds the message as a client sends it back: audio by its id
// only. An empty message is skipped.
func addMessage(c chat, reply *protocol.Reply, raw []byte) error {
	if rawjson.NewReader(raw).Kind() != '{' {
		return nil
	}
	if audio := rawjson.Field(raw, "audio"); len(audio) > 0 {
		if id := rawjson.Field(audio, "id"); len(id) > 0 {
			only := append(appendField([]byte{'{'}, "id", id), '}')
			raw = rawjson.Splice(raw, rawjson.SetField(raw, "audio", only))
		}
	}
	m, err := c.DecodeMessage(raw)
	if err != nil {
		return err
	}
	if len(m.Blocks) == 1 && m.Blocks[0].Kind == furl.KindText && m.Blocks[0].Text == "" {
		return nil
	}
	reply.Messages = []*furl.Message{m}
	return nil
}
