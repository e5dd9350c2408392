package anthropic

import (
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// DecodeUsage decodes the usage object of a response or stream event. The
// three input counters do not overlap; their sum is the prompt. Cache writes
// are split by lifetime if the response contains the split, and otherwise
// count as the default lifetime. Additional passes, such as a compaction, are
// listed only in "iterations" and not included. Missing or null fields are 0,
// and so is a null usage.
func DecodeUsage(usage []byte) (furl.Usage, error) {
	var c counts
	if err := c.read(usage); err != nil {
		return furl.Usage{}, fmt.Errorf("decode usage: %w", err)
	}
	return c.usage(), nil
}

// counts are the counters of a usage object. In a stream they arrive in
// several objects; a counter that is missing or 0 in a later one keeps its
// value.
type counts struct {
	input, cached, written, short, long, output, thinking int
}

func (c *counts) read(usage []byte) error {
	r := rawjson.NewReader(usage)
	switch r.Kind() {
	case '{':
	case 'n':
		r.Skip()
		return r.End()
	default:
		if r.Skip(); r.Err() != nil {
			return r.Err()
		}
		return errors.New("expected an object")
	}
	count := func(to *int) {
		if n, ok := r.Int(); ok && n > 0 {
			*to = n
		}
	}
	nested := func(read func(key string)) {
		if r.Kind() != '{' {
			return
		}
		for key := range r.Fields() {
			read(string(key))
		}
	}
	for key := range r.Fields() {
		switch string(key) {
		case "input_tokens":
			count(&c.input)
		case "cache_read_input_tokens":
			count(&c.cached)
		case "cache_creation_input_tokens":
			count(&c.written)
		case "cache_creation":
			nested(func(key string) {
				switch key {
				case "ephemeral_5m_input_tokens":
					count(&c.short)
				case "ephemeral_1h_input_tokens":
					count(&c.long)
				}
			})
		case "output_tokens":
			count(&c.output)
		case "output_tokens_details":
			nested(func(key string) {
				if key == "thinking_tokens" || key == "reasoning_tokens" {
					count(&c.thinking)
				}
			})
		}
	}
	return r.End()
}

func (c *counts) usage() furl.Usage {
	return furl.Usage{
		Input:        c.input,
		CacheRead:    c.cached,
		CacheWrite:   max(c.short, c.written-c.long),
		CacheWrite1h: c.long,
		Output:       c.output,
		Reasoning:    c.thinking,
	}
}
