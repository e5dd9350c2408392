package furlhttp_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/protocol"
)

func TestHintsOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header http.Header
		body   string
		want   protocol.Hints
	}{
		{"nothing", nil, `{}`, protocol.Hints{}},
		{"furl's own", http.Header{"X-Furl-Session": {"abc"}}, `{"prompt_cache_key":"k"}`, protocol.Hints{Session: "abc", Hint: "k"}},
		{"furl's own, not valid", http.Header{"X-Furl-Session": {"a b"}}, `{}`, protocol.Hints{}},
		{"codex", http.Header{"Session-Id": {"s1"}, "User-Agent": {"codex_exec/0.169.0 (x)"}}, `{"prompt_cache_key":"k"}`, protocol.Hints{Hint: "s1", Client: "Codex"}},
		{"opencode", http.Header{"X-Session-Id": {"ses_1"}}, `{}`, protocol.Hints{Hint: "ses_1"}},
		{"an affinity", http.Header{"X-Session-Affinity": {"a1"}}, `{}`, protocol.Hints{Hint: "a1"}},
		{"pi", http.Header{"Session_id": {"p1"}}, `{}`, protocol.Hints{Hint: "p1"}},
		{"a cache key", nil, `{"prompt_cache_key":"k"}`, protocol.Hints{Hint: "k"}},
		{"claude code", nil, `{"metadata":{"user_id":"user_ab_account_cd_session_ef-1"}}`, protocol.Hints{Hint: "ef-1"}},
		{"claude code, newer", nil, `{"metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"ef-2\"}"}}`, protocol.Hints{Hint: "ef-2"}},
		{"claude code's sub-agent", http.Header{"X-Claude-Code-Session-Id": {"ef-3"}, "X-Claude-Code-Agent-Id": {"a1"}}, `{}`, protocol.Hints{Hint: "ef-3/a1", Parent: "ef-3", SubAgent: true}},
		{"an agent without a session", http.Header{"X-Claude-Code-Agent-Id": {"a1"}}, `{}`, protocol.Hints{SubAgent: true}},
		{"codex, one thread", http.Header{"Session-Id": {"s1"}, "Thread-Id": {"s1"}}, `{}`, protocol.Hints{Hint: "s1"}},
		{"codex's sub-agent", http.Header{"Session-Id": {"s1"}, "Thread-Id": {"t2"}}, `{}`, protocol.Hints{Hint: "s1/t2", Parent: "s1", SubAgent: true}},
		{"codex's sub-agent with its parent's key", http.Header{"X-Openai-Subagent": {"collab_spawn"}}, `{"prompt_cache_key":"k"}`, protocol.Hints{Hint: "k", SubAgent: true}},
		{"a thread alone", http.Header{"Thread-Id": {"t2"}}, `{}`, protocol.Hints{Hint: "t2"}},
		{"kimi-code", nil, `{"metadata":{"user_id":"session_01234567-89ab-cdef-0123-456789abcdef"}}`, protocol.Hints{Hint: "session_01234567-89ab-cdef-0123-456789abcdef"}},
		{"a user whose name begins so", nil, `{"metadata":{"user_id":"session_manager"}}`, protocol.Hints{}},
		{"a user of an application", nil, `{"metadata":{"user_id":"user-17"}}`, protocol.Hints{}},
		{"hostile", nil, `{"metadata":{"user_id":"{\"session_id\":"},"prompt_cache_key":7}`, protocol.Hints{}},
		{"no object", nil, `[]`, protocol.Hints{}},
	} {
		if got := furlhttp.HintsOf(tt.header.Get, &protocol.Request{Body: []byte(tt.body)}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
	long := fmt.Sprintf(`{"prompt_cache_key":"%0300d"}`, 1)
	if got := furlhttp.HintsOf(http.Header{}.Get, &protocol.Request{Body: []byte(long)}); got.Hint != "" {
		t.Errorf("a hint of %d bytes was taken", len(got.Hint))
	}
}
