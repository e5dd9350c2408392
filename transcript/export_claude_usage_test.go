package transcript

import (
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
		got, gotPasses, err := anthropic.DecodeUsage(claudeUsage(u, passes))
		if err != nil || got != u || !slices.Equal(gotPasses, passes) {
			t.Errorf("%+v, %+v: got %+v, %+v, %v", u, passes, got, gotPasses, err)
		}
	}
}
