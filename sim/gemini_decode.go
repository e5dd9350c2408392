package sim

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// geminiCodec decodes and checks requests.
type geminiCodec struct{}

func (geminiCodec) Format() furl.Format { return furl.FormatGemini }

// geminiKinds are the fields of a part of which one must be there, and no more.
var geminiKinds = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
	"codeExecutionResult", "toolCall", "toolResponse", "audioTranscription"}

// DecodeRequest decodes a request. Its model and whether it streams are in the path.
func (geminiCodec) DecodeRequest(body []byte) (*protocol.Request, error) {
	if err := rawjson.Check(body); err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, geminiRefused("Invalid JSON payload received. Unknown name \"\": Root element must be a message.", "")
	}
	req := &protocol.Request{Format: furl.FormatGemini, Body: body}
	if n, ok := rawjson.NewReader(fieldOf(fieldOf(body, "generationConfig"), "maxOutputTokens")).Int(); ok {
		req.MaxTokens = n
	}
	for _, part := range elementsOf(fieldOf(fieldOf(body, "systemInstruction"), "parts")) {
		req.Preamble = append(req.Preamble, furl.Block{Kind: furl.KindText, Text: stringField(part, "text")})
	}
	for _, tools := range elementsOf(fieldOf(body, "tools")) {
		for _, raw := range elementsOf(fieldOf(tools, "functionDeclarations")) {
			req.Preamble = append(req.Preamble, furl.Block{Kind: furl.KindOpaque, ID: stringField(raw, "name"), Name: "function", Text: string(raw)})
		}
	}
	if name := fieldOf(body, "cachedContent"); name != nil {
		s, _ := rawjson.NewReader(name).String()
		return nil, &protocol.Refusal{Status: 403, Type: "PERMISSION_DENIED", Message: "CachedContent not found (or permission denied): " + clipped(s)}
	}
	for i, raw := range elementsOf(fieldOf(body, "contents")) {
		m, err := geminiMessage(raw, i)
		if err != nil {
			return nil, err
		}
		req.Messages = append(req.Messages, *m)
	}
	return req, nil
}

// geminiMessage decodes a content.
func geminiMessage(raw []byte, index int) (*furl.Message, error) {
	m := &furl.Message{Role: furl.RoleUser, Format: furl.FormatGemini, Raw: raw}
	switch role := stringField(raw, "role"); strings.ToLower(role) {
	case "model":
		m.Role = furl.RoleAssistant
	case "user", "function", "":
	default:
		return nil, geminiRefused("Please use a valid role: user, model.", "")
	}
	for n, part := range elementsOf(fieldOf(raw, "parts")) {
		at := fmt.Sprintf("contents[%d].parts[%d]", index, n)
		var kind string
		for _, name := range geminiKinds {
			if fieldOf(part, name) == nil {
				continue
			}
			if kind != "" {
				return nil, geminiRefused(fmt.Sprintf("Invalid value at '%s' (oneof), oneof field 'data' is already set. Cannot set '%s'", at, name), "")
			}
			kind = name
		}
		if kind == "" {
			return nil, geminiRefused("* GenerateContentRequest."+at+".data: required oneof field 'data' must have one initialized field\n", "")
		}
		if sign := fieldOf(part, "thoughtSignature"); sign != nil {
			s, _ := rawjson.NewReader(sign).String()
			if _, err := geminiSignature(s); err != nil {
				return nil, geminiRefused(fmt.Sprintf("Invalid value at '%s.thought_signature' (TYPE_BYTES), Base64 decoding failed for %s", at, str(clipped(s))), "")
			}
		}
		b, err := geminiBlock(part, kind, at)
		if err != nil {
			return nil, err
		}
		b.Start = bytes.Index(raw, part)
		b.End = b.Start + len(part)
		m.Blocks = append(m.Blocks, b)
	}
	return m, nil
}

// geminiBlock decodes a part.
func geminiBlock(part []byte, kind, at string) (b furl.Block, err error) {
	data := fieldOf(part, kind)
	switch kind {
	case "text":
		b.Kind = furl.KindText
		b.Text, _ = rawjson.NewReader(data).String()
		if string(fieldOf(part, "thought")) == "true" {
			b.Kind = furl.KindThinking
		}
	case "functionCall":
		b.Kind, b.ID, b.Name = furl.KindCall, stringField(data, "id"), stringField(data, "name")
		if b.Args = []byte("{}"); fieldOf(data, "args") != nil {
			b.Args = fieldOf(data, "args")
		}
		if b.Name == "" {
			return b, geminiRefused("* GenerateContentRequest."+at+".function_call.name: Name cannot be empty.\n", "")
		}
		if b.Args[0] != '{' {
			return b, geminiRefused(fmt.Sprintf("Invalid value at '%s.function_call.args' (type.googleapis.com/google.protobuf.Struct), %s", at, clipped(string(b.Args))), "")
		}
	case "functionResponse":
		b.Kind, b.ID, b.Name = furl.KindResult, stringField(data, "id"), stringField(data, "name")
		response := fieldOf(data, "response")
		if b.Name == "" {
			return b, geminiRefused("* GenerateContentRequest."+at+".function_response.name: Name cannot be empty.\n", "")
		}
		if len(response) > 0 && response[0] != '{' {
			return b, geminiRefused(fmt.Sprintf("Invalid value at '%s.function_response.response' (type.googleapis.com/google.protobuf.Struct), %s", at, clipped(string(response))), "")
		}
		b.Text = geminiResult(response)
		for _, media := range elementsOf(fieldOf(data, "parts")) {
			if blob := fieldOf(media, "inlineData"); blob != nil {
				b.Media = append(b.Media, geminiMedia(blob))
			}
		}
	case "inlineData":
		media := geminiMedia(data)
		b.Kind, b.Media = media.Kind, []furl.Media{media}
	default:
		b.Kind, b.Name, b.Text = furl.KindOpaque, kind, string(data)
	}
	return b, nil
}

// geminiResult returns the text of a response: the output, as Gemini CLI and the AI SDK name it,
// or its only string, or all of it as JSON.
func geminiResult(response []byte) string {
	for _, name := range []string{"output", "content"} {
		if text, ok := rawjson.NewReader(rawjson.Field(response, name)).String(); ok {
			return text
		}
	}
	only, n := "", 0
	r := rawjson.NewReader(response)
	if r.Kind() != '{' {
		return ""
	}
	for range r.Fields() {
		n++
		if r.Kind() != '"' {
			r.Skip()
			n++
			continue
		}
		only, _ = r.String()
	}
	if n == 1 {
		return only
	}
	return string(response)
}

func geminiMedia(blob []byte) furl.Media {
	m := furl.Media{Kind: furl.KindDocument, Type: stringField(blob, "mimeType"), Bytes: len(fieldOf(blob, "data"))}
	if m.Type == "" {
		m.Type = stringField(blob, "mime_type")
	}
	if strings.HasPrefix(m.Type, "image/") {
		m.Kind = furl.KindImage
	}
	var d digester
	m.Digest = d.text(m.Type, string(fieldOf(blob, "data")))
	return m
}

// geminiSignature decodes a signature, whose base64 may be of either alphabet, with padding
// or without.
func geminiSignature(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	return base64.RawStdEncoding.DecodeString(s)
}
