package anthropic

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

var (
	requestNames = rawjson.NewNames("model", "max_tokens", "stream", "system", "tools", "messages")
	toolNames    = rawjson.NewNames("type", "name", "cache_control")
)

// DecodeRequest decodes the body of a POST to /v1/messages or
// /v1/messages/count_tokens. It returns an error if the body is not JSON or
// has the wrong structure; Validate checks the provider's rules.
func (codec) DecodeRequest(body []byte) (*protocol.Request, error) {
	req := &protocol.Request{Format: furl.FormatAnthropic, Body: body}
	var system, tools rawjson.Span
	listed := false
	r := rawjson.NewReader(body)
	for key := range r.FieldsOf(requestNames) {
		switch string(key) {
		case "model":
			req.Model, _ = r.String()
		case "max_tokens":
			req.MaxTokens, _ = r.Int()
		case "stream":
			req.Stream, _ = r.Bool()
		case "system":
			system = r.Skip()
		case "tools":
			tools = r.Skip()
		case "messages":
			listed = true
			if err := decodeList(r, req); err != nil {
				return nil, fmt.Errorf("decode Anthropic request: %w", err)
			}
		}
	}
	err := r.End()
	if err == nil && !listed {
		err = errors.New("field messages is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("decode Anthropic request: %w", err)
	}
	decodePreamble(req, r, system.Of(body), tools.Of(body))
	req.Ambiguous = r.Ambiguous()
	return req, nil
}

func decodeList(r *rawjson.Reader, req *protocol.Request) error {
	req.Messages, req.Offsets = nil, nil // the last of several lists counts
	for i := range r.Elements() {
		var m furl.Message
		start := r.Offset()
		if err := decodeMessage(r, req.Body, &m); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
		req.Messages = append(req.Messages, m)
		req.Offsets = append(req.Offsets, start)
	}
	return r.Err()
}

// decodePreamble sets Preamble and its digest from the values of system and
// tools, which are valid JSON or empty. It records ambiguities in body, the
// Reader of the request.
func decodePreamble(req *protocol.Request, body *rawjson.Reader, system, tools []byte) {
	h := sha256.New()
	r := rawjson.NewReader(system)
	switch r.Kind() {
	case '"':
		text, _ := r.String()
		text = withoutBilling(text)
		req.Preamble = append(req.Preamble, furl.Block{Kind: furl.KindText, Text: text})
		digestText(h, text)
	case '[':
		for range r.Elements() {
			b, span := decodeBlock(r, system, 0)
			b.Text = withoutBilling(b.Text)
			req.Preamble = append(req.Preamble, b)
			if b.Kind == furl.KindText {
				digestText(h, b.Text)
			} else {
				digestObject(h, span.Of(system))
			}
		}
	}
	body.Join(r)
	r = rawjson.NewReader(tools)
	if r.Kind() == '[' {
		for range r.Elements() {
			raw := r.Raw()
			b := decodeTool(body, raw)
			req.Preamble = append(req.Preamble, b)
			if !b.Deferred { // clients add and remove these within a session
				digestObject(h, raw)
			}
		}
	}
	h.Sum(req.PreambleDigest[:0])
}

// decodeTool decodes a tool definition. A tool without a type is a client
// tool, which the provider calls custom.
func decodeTool(body *rawjson.Reader, raw []byte) furl.Block {
	b := furl.Block{Kind: furl.KindOpaque, Name: "custom", Text: string(raw)}
	r := rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return b
	}
	for key := range r.FieldsOf(toolNames) {
		switch string(key) {
		case "type":
			if s, ok := r.String(); ok {
				b.Name = s
			}
		case "name":
			b.ID, _ = r.String()
		case "cache_control":
			b.CacheMark = r.Kind() != 'n'
		}
	}
	body.Join(r)
	b.Deferred = isDeferred(raw)
	return b
}

// digestText and digestObject hash one element of the preamble. The string
// form of the system prompt and a single text block are equivalent, and so
// are a text with and without a cache breakpoint. In a tool the order of keys
// matters: the provider renders it in that order, and a different order
// misses the cache.
func digestText(h hash.Hash, text string) {
	fmt.Fprintf(h, "text %d ", len(text))
	h.Write([]byte(text))
}

func digestObject(h hash.Hash, raw []byte) {
	raw = rawjson.Splice(raw, rawjson.DropField(raw, "cache_control"))
	compact := rawjson.Compact(nil, raw)
	fmt.Fprintf(h, "json %d ", len(compact))
	h.Write(compact)
}
