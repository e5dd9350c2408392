package openai

import (
	"testing"
	"time"

	"github.com/furlhq/furl/protocol"
)

// A request says how long the provider keeps its prompt.
func TestCacheRequest(t *testing.T) {
	for _, tt := range []struct {
		fields string
		want   time.Duration
	}{
		{``, 0},
		{`,"prompt_cache_retention":null`, 0},
		{`,"prompt_cache_retention":"in_memory"`, 10 * time.Minute},
		{`,"prompt_cache_retention":"24h"`, 24 * time.Hour},
		{`,"prompt_cache_retention":"for ever"`, 0},
		{`,"prompt_cache_options":{"mode":"implicit","ttl":"30m"}`, 30 * time.Minute},
		{`,"prompt_cache_options":"x"`, 0},
	} {
		want := protocol.CacheRequest{Lifetime: tt.want, HourTail: -1}
		for name, got := range map[string]protocol.CacheRequest{
			"chat":      Chat.CacheRequest(&protocol.Request{Body: []byte(`{"messages":[]` + tt.fields + `}`)}),
			"responses": Responses.CacheRequest(&protocol.Request{Body: []byte(`{"input":[]` + tt.fields + `}`)}),
		} {
			if got != want {
				t.Errorf("%s%s: %+v, want %+v", name, tt.fields, got, want)
			}
		}
	}
}
