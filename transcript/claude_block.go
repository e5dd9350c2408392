package transcript

import (
	"encoding/json"
	"strings"
)

// claudeBlock is a content block in Anthropic's form, as other agents keep it.
type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Answers   string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    struct {
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"` // of an image

	// Cline keeps an image without a source.
	Data      string `json:"data"`
	MediaType string `json:"mediaType"`
}

// image returns the image of a block; none if it is damaged.
func (b *claudeBlock) image() []picture {
	mime, data := b.Source.MediaType, b.Source.Data
	if data == "" {
		mime, data = b.MediaType, b.Data
	}
	if data == "" || !strings.HasPrefix(mime, "image/") {
		return nil
	}
	return []picture{{mime: mime, data: data}}
}

// claudeBlocks reads a content: a string or a list of blocks.
func claudeBlocks(raw json.RawMessage) (blocks []claudeBlock) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []claudeBlock{{Type: "text", Text: text}}
	}
	for _, raw := range listOf(raw) {
		var b claudeBlock
		if lenient(raw, &b) == nil {
			blocks = append(blocks, b)
		}
	}
	return blocks
}
