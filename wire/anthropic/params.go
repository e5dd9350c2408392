package anthropic

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// version is the version of the API that requests of furl use.
const version = "2023-06-01"

// Headers implements wire.API.
func (codec) Headers(key string) map[string]string {
	h := map[string]string{"Anthropic-Version": version}
	if key != "" {
		h["X-Api-Key"] = key
	}
	return h
}

// NewRequest implements wire.API. The provider sets the cache breakpoint at the end
// of the prompt.
func (codec) NewRequest(p *protocol.Params) ([]byte, error) {
	thinking, effort, err := thinkingOf(p.Thinking)
	if err != nil {
		return nil, err
	}
	var tools [][]byte
	for _, t := range p.Tools {
		tools = append(tools, codec{}.Tool(t.Name, t.Description, string(t.Schema)))
	}
	body := []byte("{}")
	set := func(name string, value []byte) { body = rawjson.WithField(body, name, value) }
	set("model", quoteAny(p.Model))
	set("max_tokens", strconv.AppendInt(nil, int64(p.MaxTokens), 10))
	set("stream", []byte("true"))
	set("cache_control", []byte(`{"type":"ephemeral"}`))
	if thinking != "" {
		set("thinking", []byte(thinking))
	}
	if effort != "" {
		set("output_config", []byte(effort))
	}
	if p.System != "" {
		// The breakpoint lets sessions share instructions and tools in the cache.
		set("system", bracketed(rawjson.WithField(textBlock(p.System), "cache_control", []byte(`{"type":"ephemeral"}`))))
	}
	if len(tools) > 0 {
		set("tools", bracketed(tools...))
	}
	if len(p.Options) > 0 {
		options := rawjson.NewReader(p.Options)
		for key := range options.Fields() {
			if name := string(key); name != "messages" {
				set(name, options.Raw())
			}
		}
		if err := options.End(); err != nil {
			return nil, fmt.Errorf("options of the request: %w", err)
		}
	}
	set("messages", []byte("[]"))
	return body, nil
}

// thinkingOf returns the fields thinking and output_config.
func thinkingOf(setting string) (thinking, effort string, err error) {
	switch setting {
	case "":
		return "", "", nil
	case "off":
		return `{"type":"disabled"}`, "", nil
	case "low", "medium", "high":
		return `{"type":"adaptive"}`, `{"effort":"` + setting + `"}`, nil
	}
	n, err := strconv.Atoi(setting)
	if err != nil || n < 1024 {
		return "", "", fmt.Errorf("invalid thinking %q: expected off, low, medium, high or a number of tokens, at least 1024", setting)
	}
	return fmt.Sprintf(`{"type":"enabled","budget_tokens":%d}`, n), "", nil
}

// UserMessage implements wire.API.
func (c codec) UserMessage(parts []protocol.Part) (*furl.Message, error) {
	return c.DecodeMessage(append(append([]byte(`{"role":"user","content":`), contentOf(parts)...), '}'))
}

// ResultMessage implements wire.API.
func (c codec) ResultMessage(call furl.Block, parts []protocol.Part, failed bool) (*furl.Message, error) {
	b := furl.Block{ID: call.ID, Error: failed}
	result := appendResult(nil, &b, contentOf(parts))
	return c.DecodeMessage(append(append([]byte(`{"role":"user","content":[`), result...), "]}"...))
}

func contentOf(parts []protocol.Part) []byte {
	var blocks [][]byte
	for _, p := range parts {
		switch {
		case p.Type != "":
			kind := "document"
			if strings.HasPrefix(p.Type, "image/") {
				kind = "image"
			}
			blocks = append(blocks, fmt.Appendf(nil, `{"type":%q,"source":{"type":"base64","media_type":%s,"data":%q}}`,
				kind, quoteAny(p.Type), base64.StdEncoding.EncodeToString(p.Data)))
		case strings.TrimSpace(p.Text) != "":
			blocks = append(blocks, textBlock(p.Text))
		}
	}
	return bracketed(blocks...)
}

// Delta implements wire.API.
func (codec) Delta(event string, data []byte) (d protocol.Delta, ok bool) {
	if event == "" {
		event = field(data, "type")
	}
	switch event {
	case "content_block_delta":
		delta := rawjson.Field(data, "delta")
		switch field(delta, "type") {
		case "text_delta":
			d.Text = field(delta, "text")
		case "thinking_delta":
			d.Kind, d.Text = furl.KindThinking, field(delta, "thinking")
		}
		return d, d.Text != ""
	case "content_block_start":
		block := rawjson.Field(data, "content_block")
		switch field(block, "type") {
		case "text":
			d.Text = field(block, "text")
			return d, d.Text != ""
		case "tool_use":
			return protocol.Delta{Kind: furl.KindCall, ID: field(block, "id"), Name: field(block, "name")}, true
		}
	}
	return d, false
}

func field(obj []byte, name string) string { return rawjson.Unquote(rawjson.Field(obj, name)) }
