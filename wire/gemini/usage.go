package gemini

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// DecodeUsage decodes usageMetadata. promptTokenCount includes cachedContentTokenCount;
// thoughtsTokenCount is not in candidatesTokenCount, and toolUsePromptTokenCount, what tools
// run by Google added to the prompt, not in promptTokenCount. totalTokenCount is the sum
// (ai.google.dev/api/generate-content, "UsageMetadata", 2026-11). Missing fields are 0.
func DecodeUsage(usage []byte) (furl.Usage, error) {
	r := rawjson.NewReader(usage)
	switch r.Kind() {
	case '{':
	case 'n':
		r.Skip()
		return furl.Usage{}, r.End()
	default:
		if r.Skip(); r.Err() != nil {
			return furl.Usage{}, fmt.Errorf("decode usage: %w", r.Err())
		}
		return furl.Usage{}, errors.New("decode usage: expected an object")
	}
	var prompt, cached, tools, candidates, thoughts int
	counters := map[string]*int{
		"promptTokenCount": &prompt, "cachedContentTokenCount": &cached, "toolUsePromptTokenCount": &tools,
		"candidatesTokenCount": &candidates, "thoughtsTokenCount": &thoughts,
	}
	for key := range r.Fields() {
		if to := counters[string(key)]; to != nil {
			if n, ok := r.Int(); ok && n > 0 {
				*to = n
			}
		}
	}
	if err := r.End(); err != nil {
		return furl.Usage{}, fmt.Errorf("decode usage: %w", err)
	}
	cached = min(cached, prompt)
	return furl.Usage{Input: prompt - cached + tools, CacheRead: cached, Output: candidates + thoughts, Reasoning: thoughts}, nil
}

// setUsage changes the counts of usageMetadata in a body or a piece of a stream; without one
// it is unchanged. Details of the counts, which would no longer add up, are removed.
func setUsage(body []byte, u furl.Usage) []byte {
	return editing(body, "usageMetadata", func(usage []byte) []byte {
		for _, name := range []string{"toolUsePromptTokenCount", "promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails", "toolUsePromptTokensDetails"} {
			usage = rawjson.Splice(usage, rawjson.DropField(usage, name))
		}
		usage = setCount(usage, "promptTokenCount", u.Prompt())
		usage = setCount(usage, "cachedContentTokenCount", u.CacheRead)
		usage = setCount(usage, "candidatesTokenCount", u.Output-u.Reasoning)
		usage = setCount(usage, "thoughtsTokenCount", u.Reasoning)
		return setCount(usage, "totalTokenCount", u.Prompt()+u.Output)
	})
}

// setCount changes a number. A missing number is added if n is not 0.
func setCount(obj []byte, name string, n int) []byte {
	if rawjson.Field(obj, name) == nil && n == 0 {
		return obj
	}
	return rawjson.WithField(obj, name, strconv.AppendInt(nil, int64(n), 10))
}
