package openai

import (
	"crypto/sha256"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

var (
	toolNames         = rawjson.NewNames("type", "name", "function", "custom")
	toolFunctionNames = rawjson.NewNames("name")
)

// toolBlocks returns one opaque block per tool of a tools array. It records
// ambiguities in body, the Reader of the request.
func toolBlocks(body *rawjson.Reader, tools []byte) []furl.Block {
	var blocks []furl.Block
	r := rawjson.NewReader(tools)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Elements() {
		blocks = append(blocks, toolBlock(body, r.Raw()))
	}
	return blocks
}

// toolBlock decodes a tool definition. Name is its type, ID its name: a
// function's name is inside "function" in Chat Completions, next to the type
// in Responses.
func toolBlock(body *rawjson.Reader, raw []byte) furl.Block {
	b := furl.Block{Kind: furl.KindOpaque, Name: "function", Text: string(raw)}
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
		case "function", "custom":
			if r.Kind() != '{' {
				continue
			}
			for key := range r.FieldsOf(toolFunctionNames) {
				if string(key) == "name" {
					b.ID, _ = r.String()
				}
			}
		}
	}
	body.Join(r)
	return b
}

// preambleDigest covers the preamble and the system and developer messages at
// the start of the list. In a tool the order of keys matters: the provider
// renders it in that order.
func preambleDigest(req *protocol.Request) furl.Digest {
	h := sha256.New()
	for i := range req.Preamble {
		b := &req.Preamble[i]
		text := b.Text
		if b.Kind == furl.KindOpaque {
			text = string(rawjson.Compact(nil, []byte(text)))
		}
		fmt.Fprintf(h, "%v %d ", b.Kind, len(text))
		h.Write([]byte(text))
	}
	var d furl.Digest
	h.Sum(d[:0])
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role != furl.RoleSystem && m.Role != furl.RoleDeveloper {
			break
		}
		d = m.Extend(d)
	}
	return d
}
