package gemini

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// DecodeRequest decodes the body of generateContent, streamGenerateContent or countTokens.
// The model's name and the choice to stream are in the path; see Endpoint. It returns an error
// if the body is not JSON or has the wrong structure; Validate checks the provider's rules.
func (codec) DecodeRequest(body []byte) (*protocol.Request, error) {
	req := &protocol.Request{Format: furl.FormatGemini, Body: body}
	var system, tools, cached, nested rawjson.Span
	listed := false
	r := rawjson.NewReader(body)
	for key := range fields(r, &req.Ambiguous) {
		switch key {
		case "model":
			name, _ := r.String()
			req.Model = modelName(name)
		case "systemInstruction":
			system = r.Skip()
		case "tools":
			tools = r.Skip()
		case "cachedContent":
			cached = r.Skip()
		case "generationConfig":
			req.MaxTokens = outputLimit(r.Raw())
		case "generateContentRequest":
			nested = r.Skip()
		case "contents":
			listed = true
			if err := decodeContents(r, req); err != nil {
				return nil, fmt.Errorf("decode Gemini request: %w", err)
			}
		}
	}
	err := r.End()
	if err == nil && !listed {
		err = errors.New("field contents is missing")
		if nested.Len() > 0 {
			err = errors.New("generateContentRequest is not decoded")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("decode Gemini request: %w", err)
	}
	decodePreamble(req, system.Of(body), tools.Of(body), cached.Of(body))
	return req, nil
}

func outputLimit(config []byte) (n int) {
	r := rawjson.NewReader(value(config, "maxOutputTokens"))
	n, _ = r.Int()
	return n
}

func decodeContents(r *rawjson.Reader, req *protocol.Request) error {
	req.Messages, req.Offsets = nil, nil // the last of several lists counts
	if r.Kind() != '[' {
		if r.Skip(); r.Err() != nil {
			return r.Err()
		}
		return errors.New("contents: expected a list")
	}
	var answered map[string]bool // the ids with a result since the last content of the model
	for i := range r.Elements() {
		var m furl.Message
		start := r.Offset()
		if err := decodeContent(r, req.Body, &m, &req.Ambiguous); err != nil {
			return fmt.Errorf("contents.%d: %w", i, err)
		}
		switch {
		case m.Role == furl.RoleAssistant:
			answered = nil
		case onlyResults(&m):
			if answered == nil {
				answered = make(map[string]bool)
			}
			dropRepeated(m.Blocks, answered)
		}
		m.Seal()
		req.Messages = append(req.Messages, m)
		req.Offsets = append(req.Offsets, start)
	}
	return r.Err()
}

// onlyResults reports whether a content has results and nothing that counts besides.
func onlyResults(m *furl.Message) bool {
	for i := range m.Blocks {
		if k := m.Blocks[i].Kind; k != furl.KindResult && k != furl.KindThinking {
			return false
		}
	}
	return true
}

// decodePreamble sets Preamble and its digest from the instructions, the tools and the name
// of a cached content, which has more instructions and contents at the provider.
func decodePreamble(req *protocol.Request, system, tools, cached []byte) {
	h := sha256.New()
	if !isNull(cached) {
		digestObject(h, cached)
	}
	if rawjson.NewReader(system).Kind() == '{' {
		var m furl.Message
		if decodeContent(rawjson.NewReader(system), system, &m, &req.Ambiguous) == nil {
			for i := range m.Blocks {
				b := &m.Blocks[i]
				req.Preamble = append(req.Preamble, *b)
				if b.Kind == furl.KindText {
					digestText(h, b.Text)
				} else {
					digestObject(h, bytesOf(&m, b))
				}
			}
		}
	}
	for _, tool := range rawjson.Elements(tools) {
		decodeTool(req, h, tool)
	}
	h.Sum(req.PreambleDigest[:0])
}

// decodeTool adds the functions of a tool, or the tool itself if Google runs it.
func decodeTool(req *protocol.Request, h hash.Hash, tool []byte) {
	add := func(name, id string, raw []byte) {
		req.Preamble = append(req.Preamble, furl.Block{Kind: furl.KindOpaque, Name: name, ID: id, Text: string(raw)})
		digestObject(h, raw)
	}
	r := rawjson.NewReader(tool)
	if r.Kind() != '{' {
		return
	}
	for key := range fields(r, &req.Ambiguous) {
		if key == "functionDeclarations" && r.Kind() == '[' {
			for range r.Elements() {
				raw := r.Raw()
				add("function", text(raw, "name"), raw)
			}
			continue
		}
		add(key, "", r.Raw())
	}
}

func digestText(h hash.Hash, text string) {
	fmt.Fprintf(h, "text %d ", len(text))
	h.Write([]byte(text))
}

func digestObject(h hash.Hash, raw []byte) {
	compact := rawjson.Compact(nil, raw)
	fmt.Fprintf(h, "json %d ", len(compact))
	h.Write(compact)
}
