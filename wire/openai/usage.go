package openai

import (
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// DecodeUsage reads the token counts from a usage object of either API, or
// from any object that contains one: a whole response, a chunk of a chat
// stream, the data of a Responses stream event. Missing or null fields are 0,
// and so are all counts if there is no usage, as in all chunks of a stream
// but the last. It returns an error if raw is neither a JSON object nor null.
//
// The provider counts cached tokens as part of the prompt; Usage.Input is the
// rest of the prompt. The field names that Codex records and those of
// DeepSeek are supported too.
func DecodeUsage(raw []byte) (furl.Usage, error) {
	var c counts
	r := rawjson.NewReader(raw)
	if k := r.Kind(); k != '{' && k != 'n' {
		return furl.Usage{}, errors.New("decode usage: expected an object")
	}
	c.read(r, 0)
	if err := r.End(); err != nil {
		return furl.Usage{}, fmt.Errorf("decode usage: %w", err)
	}
	return furl.Usage{
		Input:      max(0, c.prompt-c.cached-c.written),
		CacheRead:  c.cached,
		CacheWrite: c.written,
		Output:     c.output,
		Reasoning:  c.reasoning,
	}, nil
}

type counts struct{ prompt, cached, written, output, reasoning int }

func (c *counts) read(r *rawjson.Reader, depth int) {
	if r.Kind() != '{' || depth > 3 {
		r.Skip()
		return
	}
	for key := range r.Fields() {
		switch string(key) {
		case "usage", "response", "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details":
			c.read(r, depth+1)
		case "prompt_tokens", "input_tokens":
			c.count(r, &c.prompt)
		case "completion_tokens", "output_tokens":
			c.count(r, &c.output)
		case "cached_tokens", "cached_input_tokens", "prompt_cache_hit_tokens":
			c.count(r, &c.cached)
		case "cache_write_tokens":
			c.count(r, &c.written)
		case "reasoning_tokens", "reasoning_output_tokens":
			c.count(r, &c.reasoning)
		}
	}
}

// count reads a number that some servers return under several names.
func (c *counts) count(r *rawjson.Reader, n *int) {
	if v, ok := r.Int(); ok && v > *n {
		*n = v
	}
}
