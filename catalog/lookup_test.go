package catalog_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
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
	if p := price.For(&long, 250_000, time.Time{}); p.Input != 6 {
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

// Models that the catalogue lacks take the strictest rules of their family.
func TestAssume(t *testing.T) {
	const none = ""
	for _, tt := range []struct {
		name, like string
		window     int
		binds      bool
	}{
		{"claude-fable-5-9", "claude-fable-5-2", 1_000_000, true},
		{"claude-mythos-6", "claude-fable-5-2", 1_000_000, true},
		{"claude-haiku-6", "claude-haiku-5-5", 1_000_000, true}, // Haiku 5.5 does not bind, the others do
		{"claude-saga-1", "claude-opus-5-5", 0, true},           // of an older generation by its number
		{"claude-next", "claude-opus-5-5", 1_000_000, true},
		{"claude-opus-4-9", "claude-opus-5-5", 0, true},
		{"anthropic/claude-sonnet-6", "claude-sonnet-5-5", 1_000_000, true},
		{"openrouter/anthropic/claude-sonnet-6:beta", "claude-sonnet-5-5", 1_000_000, true},
		{"claude-sonnet-6-20270301", "claude-sonnet-5-5", 1_000_000, true},
		{"claude-opus-6@20270301", "claude-opus-5-5", 1_000_000, true},
		{"eu.anthropic.claude-opus-6-20270301-v1:0", "claude-opus-5-5", 1_000_000, true},
		{"arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-6-v1:0", "claude-opus-5-5", 1_000_000, true},
		{"gpt-6.3-sol", "gpt-6.2-sol", 1_050_000, false},
		{"gpt-6.3-vega", "gpt-6.2-astra", 1_050_000, false},
		{"gpt-7", "gpt-6.2-astra", 1_050_000, false},
		{"gpt-5-something", "gpt-6.2-astra", 0, false},
		{"gemini-4-carbon", "gemini-4-neon", 1_048_576, false},
		{"models/gemini-4-flash", "gemini-4-neon", 1_048_576, false},
		{"deepseek-v5-pro", "deepseek-v4-pro", 1_048_576, false},
		{"glm-5.4", "glm-5.3", 204_800, false}, // the smallest of the generation
		{"kimi-k4", "kimi-k3", 1_048_576, false},
		{"gpt-oss-120b", none, 0, false},
		{"gpt-image-2", none, 0, false},
		{"deepseek-r1:14b", none, 0, false},
		{"kimi-k4:cloud", none, 0, false},
		{"claudette-5", none, 0, false},
		{"qwen3:32b", none, 0, false},
		{"my-claude-5", none, 0, false},
		{"", none, 0, false},
	} {
		m, ok := catalog.Default().Assume(tt.name)
		if m.Like != tt.like || ok != (tt.like != none) || m.Window != tt.window || m.WindowAssumed != (tt.window > 0) || m.Thinking.Binds != tt.binds {
			t.Errorf("%q is assumed to be like %q, window %d, binds %t; want %q, %d, %t", tt.name, m.Like, m.Window, m.Thinking.Binds, tt.like, tt.window, tt.binds)
			continue
		}
		if !ok {
			continue
		}
		like, _ := catalog.Default().Lookup(m.Like)
		switch {
		case m.ID != tt.name || m.Provider != like.Provider || m.Caching != like.Caching || m.MaxOutput > m.Window:
			t.Errorf("%q: got %+v, want the rules of %s", tt.name, m, m.Like)
		case m.Thinking.Removable || m.Thinking.Binds && m.Thinking.LastOnly:
			t.Errorf("%q: the thinking rules %+v are not the strictest", tt.name, m.Thinking)
		case price.Known(m.Prices) || m.LongAbove > 0 || m.TimedPrices != nil:
			t.Errorf("%q has the prices of another model", tt.name)
		}
		if got := catalog.Default().Describe(tt.name, furl.FormatChat); !reflect.DeepEqual(got, m) {
			t.Errorf("%q is described as %+v, want what is assumed", tt.name, got)
		}
	}
	if m := catalog.Default().Describe("qwen3:32b", furl.FormatChat); !reflect.DeepEqual(m, catalog.Unknown("qwen3:32b", furl.FormatChat)) {
		t.Errorf("a model without a family: %+v", m)
	}
	if m := catalog.Default().Describe("claude-opus-4-6", furl.FormatAnthropic); m.Like != "" || m.Thinking.Binds || m.Thinking.LastOnly || !m.Thinking.Removable {
		t.Errorf("a known model has assumed rules: %+v", m)
	}
}

// A user's entry for such a model changes what it names, and keeps what is assumed.
func TestMergeAssumed(t *testing.T) {
	c, err := catalog.Default().Merge(parse(t, "user.yaml", "models:\n  - {id: claude-fable-5-9, window: 500000, prices: {input: 9, output: 45}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	e, ok := c.Entry("anthropic/claude-fable-5.9")
	if m := e.Model; !ok || m.Window != 500_000 || m.WindowAssumed || m.Prices.Input != 9 || !m.Thinking.Binds || m.Format != furl.FormatAnthropic || m.Like != "" || e.Source != "user.yaml" || e.Date != "" {
		t.Errorf("got %+v", e)
	}
}

// A user's families are looked at first.
func TestOwnFamily(t *testing.T) {
	c, err := catalog.Default().Merge(parse(t, "user.yaml", `
families: [{name: house, except: [house-embed]}, {name: gpt-oss}]
models:
  - {id: house-1, window: 32_000, format: openai-chat}
  - {id: house-2-large, window: 64_000}
  - {id: gpt-oss-20b, window: 131_072}
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"house-3": 64_000, "house-embed-3": 0, "gpt-oss-120b": 131_072} {
		if m, _ := c.Assume(name); m.Window != want {
			t.Errorf("%s: window %d, want %d", name, m.Window, want)
		}
	}
	for _, text := range []string{"families: [{except: [a]}]", "families: [claude]", "families: {name: a}"} {
		if _, err := catalog.Parse("user.yaml", []byte(text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}
