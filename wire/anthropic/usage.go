package anthropic

import (
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// DecodeUsage decodes the usage object of a response or stream event. The
// three input counters do not overlap; together they are the prompt. What was
// written to the cache is split by lifetime where the response says, and
// otherwise counts as the default lifetime. Passes of the request's own, such
// as a compaction, which only "iterations" lists, are not included. Fields
// that are missing or null are 0, and so is a usage of null.
func DecodeUsage(usage []byte) (furl.Usage, error) {
	var u furl.Usage
	var written, short, long int
	r := rawjson.NewReader(usage)
	switch r.Kind() {
	case '{':
	case 'n':
		r.Skip()
		return u, r.End()
	default:
		if r.Skip(); r.Err() != nil {
			return u, fmt.Errorf("decode usage: %w", r.Err())
		}
		return u, errors.New("decode usage: want an object")
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
			count(&u.Input)
		case "cache_read_input_tokens":
			count(&u.CacheRead)
		case "cache_creation_input_tokens":
			count(&written)
		case "cache_creation":
			nested(func(key string) {
				switch key {
				case "ephemeral_5m_input_tokens":
					count(&short)
				case "ephemeral_1h_input_tokens":
					count(&long)
				}
			})
		case "output_tokens":
			count(&u.Output)
		case "output_tokens_details":
			nested(func(key string) {
				if key == "thinking_tokens" || key == "reasoning_tokens" {
					count(&u.Reasoning)
				}
			})
		}
	}
	if err := r.End(); err != nil {
		return furl.Usage{}, fmt.Errorf("decode usage: %w", err)
	}
	u.CacheWrite1h = long
	u.CacheWrite = max(short, written-long)
	return u, nil
}
