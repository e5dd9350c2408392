package anthropic

import (
	"strconv"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// ModelQueries returns the query for a model. The shape is that of ModelInfo in
// @anthropic-ai/sdk 1.14.0.
func (codec) ModelQueries(_, model string) []protocol.ModelQuery {
	return []protocol.ModelQuery{{
		Path: "/v1/models", Name: model,
		Read: func(body []byte) protocol.ModelAnswer {
			tokens := func(name string) int {
				n, _ := strconv.Atoi(string(rawjson.Field(body, name))) // null if unknown
				return n
			}
			return protocol.ModelAnswer{Window: tokens("max_input_tokens"), MaxOutput: tokens("max_tokens")}
		},
	}}
}
