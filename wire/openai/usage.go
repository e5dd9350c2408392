package openai

import (
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// DecodeUsage reads the token counts out of a usage object of either API, or
// out of any object that carries one: a whole response, a chunk of a chat
// stream, the data of a Responses stream event. Fields that are missing or
// null are 0, and so is everything where there is no usage, as in the chunks
// before a stream's last. An error means that raw is no JSON object and not
// null.
//
// The provider counts cached tokens as a part of the prompt; Usage.Input is
// what is left of it. The names that Codex records and DeepSeek's are read
// too.
func DecodeUsage(raw []byte) (furl.Usage, error) {
	var c counts
	r := rawjson.NewReader(raw)
	if k := r.Kind(); k != '{' && k != 'n' {
		return furl.Usage{}, errors.New("decode usage: want an object")
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

// count reads a number that some servers give under several names.
func (c *counts) count(r *rawjson.Reader, n *int) {
	if v, ok := r.Int(); ok && v > *n {
		*n = v
	}
}
