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
// count as the default lifetime. Missing or null fields are 0, and so is a null
// usage.
//
// If the request had several passes, "iterations" lists them. The counters outside
// the list are then the sum over those that wrote a part of the reply, or those of
// the model that answered after another one declined. They say neither how large
// the prompt is nor what a compaction or an advisor cost, so the usage is that of the
// last such pass.
//
// The terms are in speed, inference_geo, service_tier and server_tool_use.
func DecodeUsage(usage []byte) (furl.Usage, furl.Passes, furl.Terms, error) {
	var c counts
	if err := c.read(usage); err != nil {
		return furl.Usage{}, nil, furl.Terms{}, fmt.Errorf("decode usage: %w", err)
	}
	u, passes := c.usage()
	return u, passes, c.terms, nil
}

// counts are the counters of a usage object. In a stream they arrive in
// several objects; a counter that is missing or 0 in a later one keeps its
// value. Only the last object has all iterations.
type counts struct {
	counters
	iterations []iteration
	terms      furl.Terms
}

type counters struct {
	input, cached, written, short, long, output, thinking int
}

// iteration is an element of "iterations".
type iteration struct {
	counters
	typ, model string
}

// maxIterations bounds the list. The provider ends a request with so many long before;
// of a longer list only the counters outside it are used.
const maxIterations = 1000

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
	c.iterations = nil
	for key := range r.Fields() {
		if string(key) == "iterations" && r.Kind() == '[' {
			c.iterations = readIterations(r)
			continue
		}
		if !readTerm(r, string(key), &c.terms) {
			c.counters.read(r, string(key))
		}
	}
	return r.End()
}

func readIterations(r *rawjson.Reader) (list []iteration) {
	n := 0
	for range r.Elements() {
		if n++; n > maxIterations || r.Kind() != '{' {
			continue
		}
		var it iteration
		for key := range r.Fields() {
			switch string(key) {
			case "type":
				it.typ, _ = r.String()
			case "model":
				it.model, _ = r.String()
			default:
				it.read(r, string(key))
			}
		}
		list = append(list, it)
	}
	if n > maxIterations {
		return nil
	}
	return list
}

// read reads a counter.
func (c *counters) read(r *rawjson.Reader, key string) {
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
	switch key {
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

func (c *counters) usage() furl.Usage {
	return furl.Usage{
		Input:        c.input,
		CacheRead:    c.cached,
		CacheWrite:   max(c.short, c.written-c.long),
		CacheWrite1h: c.long,
		Output:       c.output,
		Reasoning:    c.thinking,
	}
}

// usage returns the usage of the last pass whose prompt was the conversation, and all
// passes if there were several.
func (c *counts) usage() (furl.Usage, furl.Passes) {
	all := c.counters.usage()
	if len(c.iterations) == 0 || len(c.iterations) == 1 && c.iterations[0].typ == furl.PassMessage {
		return all, nil
	}
	passes := make(furl.Passes, 0, len(c.iterations)+1)
	for i := range c.iterations {
		it := &c.iterations[i]
		if it.short+it.long == 0 && c.long > 0 { // the split is only outside the list
			it.long = int(float64(it.written) * float64(c.long) / float64(c.short+c.long))
		}
		passes = append(passes, furl.Pass{Kind: it.kind(), Model: it.model, Usage: it.counters.usage()})
	}
	last := passes.Last()
	if last < 0 { // the counters outside the list are those of a pass
		last, passes = len(passes), append(passes, furl.Pass{Kind: furl.PassMessage, Usage: all})
	}
	if p := &passes[last]; p.Kind == furl.PassMessage { // reasoning is only outside the list
		p.Usage.Reasoning = max(p.Usage.Reasoning, min(c.thinking, p.Usage.Output))
	}
	return passes[last].Usage, passes
}

// fallbackMessage is the type of a pass by another model, after the first one declined.
const fallbackMessage = "fallback_message"

func (it *iteration) kind() string {
	if it.typ == fallbackMessage {
		return furl.PassMessage
	}
	return it.typ
}
