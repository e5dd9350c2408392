package gemini

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
func (codec) Headers(key string) map[string]string {
	if key == "" {
		return nil
	}
	return map[string]string{"X-Goog-Api-Key": key}
}

// NewRequest implements wire.API. The model is in the path.
func (c codec) NewRequest(p *protocol.Params) ([]byte, error) {
	thinking, err := thinkingOf(p.Thinking)
	if err != nil {
		return nil, err
	}
	body, config := []byte("{}"), []byte("{}")
	if p.System != "" {
		body = with(body, "systemInstruction", content("", textPart(p.System, nil)))
	}
	if len(p.Tools) > 0 {
		var declarations [][]byte
		for _, t := range p.Tools {
			declarations = append(declarations, c.Tool(t.Name, t.Description, string(t.Schema)))
		}
		body = with(body, "tools", bracketed(append(append([]byte(`{"functionDeclarations":`), bracketed(declarations...)...), '}')))
	}
	if p.MaxTokens > 0 {
		config = with(config, "maxOutputTokens", strconv.AppendInt(nil, int64(p.MaxTokens), 10))
	}
	if thinking != "" {
		config = with(config, "thinkingConfig", []byte(thinking))
	}
	if len(config) > len("{}") {
		body = with(body, "generationConfig", config)
	}
	if len(p.Options) > 0 {
		options := rawjson.NewReader(p.Options)
		for key := range options.Fields() {
			if name := string(key); name != "contents" {
				body = with(body, name, options.Raw())
			}
		}
		if err := options.End(); err != nil {
			return nil, fmt.Errorf("options of the request: %w", err)
		}
	}
	return with(body, "contents", []byte("[]")), nil
}

// thinkingOf returns thinkingConfig. Models since Gemini 3 have levels, those before it a
// budget in tokens (ai.google.dev/gemini-api/docs/thinking, 2026-11).
func thinkingOf(setting string) (string, error) {
	switch setting {
	case "":
		return "", nil
	case "off":
		return `{"thinkingBudget":0}`, nil
	case "low", "medium", "high":
		return `{"includeThoughts":true,"thinkingLevel":"` + setting + `"}`, nil
	}
	n, err := strconv.Atoi(setting)
	if err != nil || n < 1 {
		return "", fmt.Errorf("invalid thinking %q: expected off, low, medium, high or a number of tokens", setting)
	}
	return fmt.Sprintf(`{"includeThoughts":true,"thinkingBudget":%d}`, n), nil
}

// content returns a content with parts; without a role for instructions.
func content(role string, parts ...[]byte) []byte {
	out := []byte{'{'}
	if role != "" {
		out = append(rawjson.AppendString(append(out, `"role":`...), role), ',')
	}
	return append(append(append(out, `"parts":`...), bracketed(parts...)...), '}')
}

// UserMessage implements wire.API.
func (c codec) UserMessage(parts []protocol.Part) (*furl.Message, error) {
	var list [][]byte
	for _, p := range parts {
		switch {
		case p.Type != "":
			list = append(list, inlineData(p))
		case strings.TrimSpace(p.Text) != "":
			list = append(list, textPart(p.Text, nil))
		}
	}
	return c.DecodeMessage(content(roleUser, list...))
}

func inlineData(p protocol.Part) []byte {
	return fmt.Appendf(nil, `{"inlineData":{"mimeType":%s,"data":%q}}`, quoteAny(p.Type), base64.StdEncoding.EncodeToString(p.Data))
}

// ResultMessage implements wire.API.
func (c codec) ResultMessage(call furl.Block, parts []protocol.Part, failed bool) (*furl.Message, error) {
	b := furl.Block{ID: call.ID, Name: call.Name, Error: failed}
	var texts []string
	var media [][]byte
	for _, p := range parts {
		if p.Type != "" {
			media = append(media, inlineData(p))
		} else {
			texts = append(texts, p.Text)
		}
	}
	return c.DecodeMessage(content(roleUser, appendResult(&b, joinLines(texts...), media)))
}
