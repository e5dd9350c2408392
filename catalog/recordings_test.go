package catalog_test

import (
	"testing"

	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/price"
)

// The models named by recorded sessions are known and have a price.
func TestRecordedModels(t *testing.T) {
	for _, name := range []string{
		"claude-opus-4-5-20251101", "claude-opus-4-6", "claude-sonnet-4-5-20250929", // Claude Code
		"claude-haiku-4-5-20251001", "claude-3-sonnet-20240229", "claude-sonnet-4",
		"gpt-5.5",           // Codex
		"gpt-5.3-codex",     // opencode
		"claude-sonnet-4.6", // Copilot CLI
		"gemini-2.5-flash",  // Gemini CLI
		"claude-sonnet-4-5", // pi
		"gpt-5.1-codex",     // pi
		"gpt4", "gpt-4o",    // SWE-agent, tau-bench
		"openai/openrouter-llama-4-maverick", "meta-llama/llama-4-maverick", // OpenHands
	} {
		m, ok := catalog.Default().Lookup(name)
		if !ok || m.Window == 0 || !price.Known(m.Prices) {
			t.Errorf("%s: known %v, window %d, prices %+v", name, ok, m.Window, m.Prices)
		}
	}
}
