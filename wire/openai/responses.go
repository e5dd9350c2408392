package openai

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// responsesNames are the fields that are read of a request, here and by
// Stateful.
var responsesNames = rawjson.NewNames("model", "max_output_tokens", "stream", "tools", "instructions", "input",
	"previous_response_id", "conversation")

// DecodeRequest decodes the body of a POST to /v1/responses, /compact or
// /input_tokens. An input that is a string is one user message whose Raw is
// that string. It returns an error if the body is not JSON or has the wrong
// structure; Validate checks the provider's rules.
func (responses) DecodeRequest(body []byte) (*protocol.Request, error) {
	req := &protocol.Request{Format: furl.FormatResponses, Body: body}
	var tools, instructions []byte
	var s itemScan
	r := rawjson.NewReader(body)
	add := func() {
		s.read(body, r)
		if r.Err() == nil {
			req.Messages = append(req.Messages, s.message(body))
			req.Offsets = append(req.Offsets, s.base)
			r.Join(&s.late)
		}
	}
	for key := range r.FieldsOf(responsesNames) {
		switch string(key) {
		case "model":
			req.Model, _ = r.String()
		case "max_output_tokens":
			req.MaxTokens, _ = r.Int()
		case "stream":
			req.Stream, _ = r.Bool()
		case "tools":
			tools = r.Raw()
		case "instructions":
			instructions = r.Raw()
		case "input":
			req.Messages, req.Offsets = nil, nil // the last of several lists counts
			if r.Kind() == 'n' {
				continue
			}
			if r.Kind() == '"' {
				add()
				continue
			}
			for range r.Elements() {
				add()
			}
		}
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("decode Responses request: %w", err)
	}
	if text := rawjson.Unquote(instructions); text != "" {
		req.Preamble = append(req.Preamble, furl.Block{Kind: furl.KindText, Text: text})
	}
	req.Preamble = append(req.Preamble, toolBlocks(r, tools)...)
	req.PreambleDigest = preambleDigest(req)
	req.Ambiguous = r.Ambiguous()
	return req, nil
}

// DecodeMessage decodes one item of the input list, or an input that is a
// string.
func (responses) DecodeMessage(raw []byte) (*furl.Message, error) {
	var s itemScan
	r := rawjson.NewReader(raw)
	s.read(raw, r)
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("decode Responses item: %w", err)
	}
	m := s.message(raw)
	return &m, nil
}
