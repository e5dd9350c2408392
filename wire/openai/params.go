package openai

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Headers implements wire.API.
func (chat) Headers(key string) map[string]string { return bearer(key) }

// Headers implements wire.API.
func (responses) Headers(key string) map[string]string { return bearer(key) }

func bearer(key string) map[string]string {
	if key == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + key}
}

// NewRequest implements wire.API.
func (c chat) NewRequest(p *protocol.Params) ([]byte, error) {
	effort, err := effortOf(p.Thinking)
	if err != nil {
		return nil, err
	}
	b := builderOf(p)
	b.set("stream_options", []byte(`{"include_usage":true}`))
	if p.MaxTokens > 0 {
		b.set("max_completion_tokens", strconv.AppendInt(nil, int64(p.MaxTokens), 10))
	}
	if effort != "" {
		b.set("reasoning_effort", quote(effort))
	}
	list := []byte("[]")
	if p.System != "" {
		list = bracketed(append(rawjson.AppendString([]byte(`{"role":"system","content":`), p.System), '}'))
	}
	return b.end(p, c.Tool, "messages", list)
}

// NewRequest implements wire.API. The provider stores nothing, so reasoning is part
// of the replies, encrypted.
func (c responses) NewRequest(p *protocol.Params) ([]byte, error) {
	effort, err := effortOf(p.Thinking)
	if err != nil {
		return nil, err
	}
	b := builderOf(p)
	b.set("store", []byte("false"))
	b.set("include", []byte(`["reasoning.encrypted_content"]`))
	if p.CacheKey != "" {
		b.set("prompt_cache_key", quote(p.CacheKey))
	}
	if p.MaxTokens > 0 {
		b.set("max_output_tokens", strconv.AppendInt(nil, int64(p.MaxTokens), 10))
	}
	if effort != "" {
		b.set("reasoning", []byte(`{"effort":"`+effort+`","summary":"auto"}`))
	}
	if p.System != "" {
		b.set("instructions", quote(p.System))
	}
	return b.end(p, c.Tool, "input", []byte("[]"))
}

// requestBody is a request's body as far as it is built.
type requestBody struct{ body []byte }

func builderOf(p *protocol.Params) *requestBody {
	b := &requestBody{[]byte("{}")}
	b.set("model", quote(p.Model))
	b.set("stream", []byte("true"))
	return b
}

func (b *requestBody) set(name string, value []byte) {
	b.body = rawjson.WithField(b.body, name, value)
}

// end adds the tools, the options and the list.
func (b *requestBody) end(p *protocol.Params, define func(name, description, schema string) []byte, list string, elements []byte) ([]byte, error) {
	var tools [][]byte
	for _, t := range p.Tools {
		tools = append(tools, define(t.Name, t.Description, string(t.Schema)))
	}
	if len(tools) > 0 {
		b.set("tools", bracketed(tools...))
	}
	if len(p.Options) > 0 {
		options := rawjson.NewReader(p.Options)
		for key := range options.Fields() {
			if name := string(key); name != list {
				b.set(name, options.Raw())
			}
		}
		if err := options.End(); err != nil {
			return nil, fmt.Errorf("options of the request: %w", err)
		}
	}
	b.set(list, elements)
	return b.body, nil
}

// effortOf returns the reasoning effort.
func effortOf(setting string) (string, error) {
	switch setting {
	case "", "low", "medium", "high":
		return setting, nil
	case "off":
		return "none", nil
	}
	return "", fmt.Errorf("invalid thinking %q: expected off, low, medium or high", setting)
}

// UserMessage implements wire.API.
func (c chat) UserMessage(parts []protocol.Part) (*furl.Message, error) {
	var list [][]byte
	for _, p := range parts {
		switch {
		case strings.HasPrefix(p.Type, "image/"):
			list = append(list, fmt.Appendf(nil, `{"type":"image_url","image_url":{"url":%s}}`, dataURL(p)))
		case p.Type != "":
			list = append(list, fmt.Appendf(nil, `{"type":"file","file":{"filename":"document","file_data":%s}}`, dataURL(p)))
		case strings.TrimSpace(p.Text) != "":
			list = append(list, fmt.Appendf(nil, `{"type":"text","text":%s}`, quote(p.Text)))
		}
	}
	return c.DecodeMessage(fmt.Appendf(nil, `{"role":"user","content":%s}`, bracketed(list...)))
}

// ResultMessage implements wire.API. Results of Chat Completions are texts, so
// images and documents are only named.
func (c chat) ResultMessage(call furl.Block, parts []protocol.Part, failed bool) (*furl.Message, error) {
	var texts []string
	for _, p := range parts {
		if p.Type != "" {
			kind := furl.KindDocument
			if strings.HasPrefix(p.Type, "image/") {
				kind = furl.KindImage
			}
			p.Text = mediaNote(furl.Media{Kind: kind, Type: p.Type, Bytes: len(p.Data)})
		}
		texts = append(texts, p.Text)
	}
	return c.NewMessage(furl.RoleTool, []furl.Block{{Kind: furl.KindResult, ID: call.ID, Text: strings.Join(texts, "\n"), Error: failed}})
}

// UserMessage implements wire.API.
func (c responses) UserMessage(parts []protocol.Part) (*furl.Message, error) {
	return c.DecodeMessage(fmt.Appendf(nil, `{"type":"message","role":"user","content":%s}`, inputParts(parts)))
}

// ResultMessage implements wire.API. The format has no flag for failures; the text
// has to say it.
func (c responses) ResultMessage(call furl.Block, parts []protocol.Part, _ bool) (*furl.Message, error) {
	return c.DecodeMessage(fmt.Appendf(nil, `{"type":"function_call_output","call_id":%s,"output":%s}`, quote(call.ID), inputParts(parts)))
}

func inputParts(parts []protocol.Part) []byte {
	var list [][]byte
	for _, p := range parts {
		switch {
		case strings.HasPrefix(p.Type, "image/"):
			list = append(list, fmt.Appendf(nil, `{"type":"input_image","detail":"auto","image_url":%s}`, dataURL(p)))
		case p.Type != "":
			list = append(list, fmt.Appendf(nil, `{"type":"input_file","filename":"document","file_data":%s}`, dataURL(p)))
		case strings.TrimSpace(p.Text) != "":
			list = append(list, fmt.Appendf(nil, `{"type":"input_text","text":%s}`, quote(p.Text)))
		}
	}
	return bracketed(list...)
}

// dataURL returns the data URL of a part as a JSON string.
func dataURL(p protocol.Part) []byte {
	return quote("data:" + p.Type + ";base64," + base64.StdEncoding.EncodeToString(p.Data))
}

// Delta implements wire.API.
func (chat) Delta(_ string, data []byte) (d protocol.Delta, ok bool) {
	choices := rawjson.Elements(rawjson.Field(data, "choices"))
	if len(choices) == 0 {
		return d, false
	}
	delta := rawjson.Field(choices[0], "delta")
	if d.Text = rawjson.Unquote(rawjson.Field(delta, "content")); d.Text != "" {
		return d, true
	}
	if d.Text = rawjson.Unquote(rawjson.Field(delta, "refusal")); d.Text != "" {
		return d, true
	}
	for _, name := range thinkingFields[:2] {
		if text := rawjson.Unquote(rawjson.Field(delta, name)); text != "" {
			return protocol.Delta{Kind: furl.KindThinking, Text: text}, true
		}
	}
	for _, call := range rawjson.Elements(rawjson.Field(delta, "tool_calls")) {
		if name := rawjson.Unquote(rawjson.Field(rawjson.Field(call, "function"), "name")); name != "" {
			return protocol.Delta{Kind: furl.KindCall, ID: rawjson.Unquote(rawjson.Field(call, "id")), Name: name}, true
		}
	}
	return d, false
}

// Delta implements wire.API.
func (responses) Delta(event string, data []byte) (d protocol.Delta, ok bool) {
	if event == "" {
		event = rawjson.Unquote(rawjson.Field(data, "type"))
	}
	switch event {
	case "response.output_text.delta", "response.refusal.delta":
		d.Text = rawjson.Unquote(rawjson.Field(data, "delta"))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		d.Kind, d.Text = furl.KindThinking, rawjson.Unquote(rawjson.Field(data, "delta"))
	case "response.output_item.added":
		if item := rawjson.Field(data, "item"); rawjson.Unquote(rawjson.Field(item, "type")) == "function_call" {
			return protocol.Delta{Kind: furl.KindCall, ID: rawjson.Unquote(rawjson.Field(item, "call_id")), Name: rawjson.Unquote(rawjson.Field(item, "name"))}, true
		}
	}
	return d, d.Text != ""
}
