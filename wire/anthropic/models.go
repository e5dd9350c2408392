package anthropic

import (
	"encoding/json"

	"github.com/furlhq/furl/protocol"
)

// ModelQueries returns the query for a model. The shape is that of ModelInfo in
// @anthropic-ai/sdk 1.14.0.
func (codec) ModelQueries(_, model string) []protocol.ModelQuery {
	return []protocol.ModelQuery{{
		Path: "/v1/models", Name: model,
		Read: func(body []byte) protocol.ModelAnswer {
			var m struct {
				Window    int `json:"max_input_tokens"` // null if unknown
				MaxOutput int `json:"max_tokens"`
			}
			if json.Unmarshal(body, &m) != nil {
				return protocol.ModelAnswer{}
			}
			return protocol.ModelAnswer{Window: m.Window, MaxOutput: m.MaxOutput}
		},
	}}
}
