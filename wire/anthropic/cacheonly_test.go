package anthropic_test

import (
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire"
)

// A request that only renews the cache differs from the client's in max_tokens and
// stream, and nowhere else. There is none for settings that the provider refuses with
// it, or that are part of the cache's key and would have to change.
func TestCacheOnly(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"streamed", `{"model":"m", "max_tokens":32000,"stream":true,"messages":[ {"role":"user","content":"hi"}]}`, `{"model":"m", "max_tokens":0,"messages":[ {"role":"user","content":"hi"}]}`},
		{"whole", `{"messages":[],"max_tokens":1}`, `{"messages":[],"max_tokens":0}`},
		{"adaptive thinking", `{"max_tokens":9,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`, `{"max_tokens":0,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`},
		{"a free choice of tools", `{"max_tokens":9,"tool_choice":{"type":"auto"}}`, `{"max_tokens":0,"tool_choice":{"type":"auto"}}`},
		{"clearing of tool results", `{"max_tokens":9,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}}`, `{"max_tokens":0,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}}`},
		{"a thinking budget", `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":4000}}`, ""},
		{"a forced call", `{"max_tokens":9,"tool_choice":{"type":"any"}}`, ""},
		{"a forced tool", `{"max_tokens":9,"tool_choice":{"type":"tool","name":"x"}}`, ""},
		{"an output format", `{"max_tokens":9,"output_config":{"format":{"type":"json_schema"}}}`, ""},
		{"an output format of the beta", `{"max_tokens":9,"output_format":{"type":"json_schema"}}`, ""},
		{"a compaction", `{"max_tokens":9,"compaction":{"type":"summarize"}}`, ""},
		{"a thread", `{"max_tokens":9,"thread":{"type":"continue","thread_id":"t"}}`, ""},
		{"a compaction at a threshold", `{"max_tokens":9,"context_management":{"edits":[{"type":"compact_20260112"}]}}`, ""},
		{"without a limit", `{"messages":[]}`, ""},
		{"not an object", `[]`, ""},
		{"cut off", `{"max_tokens":9,`, ""},
	}
	for _, tt := range tests {
		got, ok := wire.For(furl.FormatAnthropic).CacheOnly([]byte(tt.body))
		if string(got) != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %s, %t, want %s", tt.name, got, ok, tt.want)
		}
	}
	for _, format := range []furl.Format{furl.FormatChat, furl.FormatResponses} {
		if _, ok := wire.For(format).CacheOnly([]byte(`{"model":"m","messages":[]}`)); ok {
			t.Errorf("%s has a request that only renews the cache", format)
		}
	}
}
