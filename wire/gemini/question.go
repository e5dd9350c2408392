package gemini

import (
	"strconv"

	"github.com/furlhq/furl/internal/rawjson"
)

// Question implements wire.API. The model is in the path.
func (codec) Question(client []byte, _, instructions, question string, maxTokens int) []byte {
	body := []byte("{}")
	for _, name := range []string{"safetySettings", "labels"} {
		if v := rawjson.Field(client, name); v != nil {
			body = with(body, name, v)
		}
	}
	body = with(body, "systemInstruction", content("", textPart(instructions, nil)))
	if maxTokens > 0 {
		body = with(body, "generationConfig", append(strconv.AppendInt([]byte(`{"maxOutputTokens":`), int64(maxTokens), 10), '}'))
	}
	return with(body, "contents", bracketed(userContent(question)))
}

func userContent(words string) []byte { return content(roleUser, textPart(words, nil)) }

// Unforced implements wire.API. Calls are forbidden, if there are tools: the mode is not a part
// of the prompt.
func (codec) Unforced(body []byte) []byte {
	if tools := rawjson.Field(body, "tools"); len(rawjson.Elements(tools)) > 0 {
		body = with(body, "toolConfig", []byte(`{"functionCallingConfig":{"mode":"NONE"}}`))
	}
	return editing(body, "generationConfig", func(config []byte) []byte {
		for _, name := range []string{"stopSequences", "candidateCount", "responseLogprobs", "logprobs"} {
			config = without(config, name)
		}
		return config
	})
}

// Ask implements wire.API.
func (codec) Ask(body []byte, words string) ([]byte, bool) {
	list, ok := rawjson.AppendElement(rawjson.Field(body, "contents"), userContent(words))
	if !ok {
		return nil, false
	}
	return rawjson.Splice(body, rawjson.SetField(body, "contents", list)), true
}

// WithLimit implements wire.API. The limit includes thoughts. Without one the provider uses
// the model's.
func (codec) WithLimit(body []byte, tokens, slack, most int) ([]byte, bool) {
	limit := tokens + slack
	if most > 0 {
		limit = min(limit, most)
	}
	return editing(body, "generationConfig", func(config []byte) []byte {
		return rawjson.Replaced(config, nameIn(config, "maxOutputTokens"), strconv.AppendInt(nil, int64(limit), 10))
	}), true
}
