package catalog_test

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/price"
)

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		// dated, in other spellings, in other case
		"claude-opus-4-5-20251101":   "claude-opus-4-5",
		"claude-sonnet-4-5-20250929": "claude-sonnet-4-5",
		"Claude-Sonnet-4.5":          "claude-sonnet-4-5",
		"claude-haiku-4-5-20251001":  "claude-haiku-4-5",
		"claude-opus-4-1-20250805":   "claude-opus-4-1",
		"claude-opus-4-20250514":     "claude-opus-4",
		"claude-3-sonnet-20240229":   "claude-3-sonnet",
		"claude-3-5-sonnet-latest":   "claude-3-5-sonnet",
		"gpt-4o-2024-08-06":          "gpt-4o",
		"gpt-4o-2024-05-13":          "gpt-4o-2024-05-13",
		"gpt-4-0613":                 "gpt-4",
		"gpt-4-1106-preview":         "gpt-4-turbo",
		"gpt-5-2025-08-07":           "gpt-5",
		"gpt-5-chat-latest":          "gpt-5-chat",
		"o3-2025-04-16":              "o3",
		"kimi-k2-0905-preview":       "kimi-k2",

		"gemini-2.5-flash-preview-09-2025": "gemini-2.5-flash",
		"gemini-2.5-pro-preview-05-06":     "gemini-2.5-pro",
		"gemini-3-pro-preview":             "gemini-3-pro",

		// by a route
		"anthropic/claude-sonnet-4.5":                          "claude-sonnet-4-5",
		"openrouter/anthropic/claude-opus-4.5:beta":            "claude-opus-4-5",
		"bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0": "claude-sonnet-4-5",
		"bedrock/converse/anthropic.claude-opus-4-6-v1":        "claude-opus-4-6",
		"global.anthropic.claude-haiku-4-5-20251001-v1:0":      "claude-haiku-4-5",
		"us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0":     "claude-sonnet-4-5",
		"vertex_ai/claude-opus-4-5@20251101":                   "claude-opus-4-5",
		"openai/gpt-5":                                         "gpt-5",
		"azure/gpt-4o":                                         "gpt-4o",
		"models/gemini-2.5-pro":                                "gemini-2.5-pro",
		"openai/openrouter-llama-4-maverick":                   "llama-4-maverick",
		"meta-llama/llama-4-maverick":                          "llama-4-maverick",
		"claude-opus-4-6[1m]":                                  "claude-opus-4-6",
		" gpt-5.5 ":                                            "gpt-5.5",
		"arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-5-20251101-v1:0": "claude-opus-4-5",

		// different models with similar names
		"gpt-5-codex":            "gpt-5-codex",
		"gpt-5-mini":             "gpt-5-mini",
		"gpt-5.3-codex-spark":    "",
		"gpt-5-something":        "",
		"gpt-5-9":                "",
		"gpt-55":                 "",
		"gpt-4o-audio-preview":   "",
		"gpt-3.5-turbo-instruct": "",
		"claude-opus-4-9":        "",
		"claude-opus":            "",
		"claude":                 "",
		"qwen3:32b":              "",
		"<synthetic>":            "",
		"default":                "",
		"":                       "",
		"/":                      "",
		"-20251101":              "",
		"openai/":                "",
	} {
		m, ok := catalog.Default().Lookup(name)
		if m.ID != want || ok != (want != "") {
			t.Errorf("%q: got %q, want %q", name, m.ID, want)
		}
		if !ok && m.Window != 0 {
			t.Errorf("%q: a window of %d for an unknown model", name, m.Window)
		}
	}
}

// Claude Code's suffix requests the long window.
func TestLookupLongWindow(t *testing.T) {
	short, _ := catalog.Default().Lookup("claude-sonnet-4-5")
	long, ok := catalog.Default().Lookup("claude-sonnet-4-5[1m]")
	if !ok || short.Window != 200_000 || long.Window != 1_000_000 {
		t.Errorf("windows %d and %d, want 200000 and 1000000", short.Window, long.Window)
	}
	if p := price.For(&long, 250_000); p.Input != 6 {
		t.Errorf("a prompt of 250,000 tokens at %v, want 6", p.Input)
	}
}

// Names come from requests: long or odd ones must be cheap.
func TestLookupHostileNames(t *testing.T) {
	for _, name := range []string{
		strings.Repeat("a/", 1<<20),
		strings.Repeat("/", 250),
		strings.Repeat("-latest", 30),
		"x" + strings.Repeat("-v1", 80),
		strings.Repeat("us.anthropic.", 19),
	} {
		if _, ok := catalog.Default().Lookup(name); ok {
			t.Errorf("%.40q… is found", name)
		}
	}
}
