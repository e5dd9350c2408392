package transcript

import (
	"reflect"
	"slices"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/anthropic"
)

// The usage of an exported request is read as it was recorded.
func TestClaudeUsage(t *testing.T) {
	message := func(model string, input int) furl.Pass {
		return furl.Pass{Kind: furl.PassMessage, Model: model, Usage: furl.Usage{Input: input, CacheRead: 3, CacheWrite1h: 5, Output: 2}}
	}
	for _, passes := range []furl.Passes{
		nil,
		{message("another-model", 10)},
		{message("", 10), message("another-model", 20)},
		{{Kind: furl.PassCompaction, Usage: furl.Usage{Input: 7, Output: 1}}},
	} {
		u := furl.Usage{Input: 10, CacheRead: 1, Output: 2}
		if len(passes) > 0 {
			u = passes[passes.Last()].Usage
		}
		for _, terms := range []furl.Terms{{}, {Speed: "fast", Tools: []furl.ToolUses{{Name: "web_fetch", Uses: 1}, {Name: "web_search", Uses: 2}}}, {Geo: "us", Tier: "batch"}} {
			got, gotPasses, gotTerms, err := anthropic.DecodeUsage(claudeUsage(&furl.Exchange{Usage: u, Passes: passes, Terms: terms}))
			if err != nil || got != u || !slices.Equal(gotPasses, passes) || !reflect.DeepEqual(gotTerms, terms) {
				t.Errorf("%+v, %+v, %+v: got %+v, %+v, %+v, %v", u, passes, terms, got, gotPasses, gotTerms, err)
			}
		}
	}
}
