package price_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/price"
)

// One request of the built-in Claude Opus 5 ($5, $0.50, $6.25, $10, $25) and GPT-5.5 under
// each term. The costs are computed by hand.
func TestRequestUnderTerms(t *testing.T) {
	usage := furl.Usage{Input: 1000, CacheRead: 100_000, CacheWrite: 10_000, CacheWrite1h: 1000, Output: 2000} // $0.005 + $0.05 + $0.0625 + $0.01 + $0.05
	const usual = 0.1775
	advised := furl.Passes{{Kind: furl.PassMessage, Usage: usage}, {Kind: "advisor_message", Model: "claude-sonnet-4-5", Usage: furl.Usage{Input: 10_000, Output: 1000}}} // $0.03 + $0.015
	for _, tt := range []struct {
		name, model string
		terms       furl.Terms
		passes      furl.Passes
		want        float64
		unpriced    []string
	}{
		{"usual", "claude-opus-5", furl.Terms{}, nil, usual, nil},
		{"fast mode", "claude-opus-5", furl.Terms{Speed: "fast"}, nil, 2 * usual, nil},
		{"fast mode of an older model", "claude-opus-4-7", furl.Terms{Speed: "fast"}, nil, 6 * usual, nil},
		{"in the US", "claude-opus-5", furl.Terms{Geo: "us"}, nil, 1.1 * usual, nil},
		{"a batch", "claude-opus-5", furl.Terms{Tier: "batch"}, nil, usual / 2, nil},
		{"a batch in the US", "claude-opus-5", furl.Terms{Tier: "batch", Geo: "us"}, nil, 1.1 * usual / 2, nil},
		{"web searches, which no factor changes", "claude-opus-5", furl.Terms{Geo: "us", Tools: []furl.ToolUses{{Name: "web_fetch", Uses: 3}, {Name: "web_search", Uses: 5}}}, nil, 1.1*usual + 0.05, nil},
		{"an advisor", "claude-opus-5", furl.Terms{}, advised, usual + 0.045, nil},
		{"fast mode does not apply to an advisor", "claude-opus-5", furl.Terms{Speed: "fast"}, advised, 2*usual + 0.045, nil},
		{"a tier without a price", "claude-opus-5", furl.Terms{Tier: "priority"}, nil, usual, []string{`service tier "priority"`}},
		{"unknown words", "claude-opus-5", furl.Terms{Speed: "ludicrous", Geo: "mars", Tools: []furl.ToolUses{{Name: "code_execution", Uses: 1}}}, nil, usual,
			[]string{`speed "ludicrous"`, `geography "mars"`, `tool "code_execution"`}},
		{"flex", "gpt-5.5", furl.Terms{Tier: "flex"}, nil, (1000*5 + 100_000*0.5 + 11_000*5 + 2000*30) / 2e6, nil},
		{"priority", "gpt-5.5", furl.Terms{Tier: "priority"}, nil, 2.5 * (1000*5 + 100_000*0.5 + 11_000*5 + 2000*30) / 1e6, nil},
	} {
		m, ok := catalog.Default().Lookup(tt.model)
		if !ok {
			t.Fatal(tt.model)
		}
		r := &price.Request{Model: &m, Usage: usage, Passes: tt.passes, Terms: tt.terms, At: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC), Models: func(name string) furl.Model {
			m, _ := catalog.Default().Lookup(name)
			return m
		}}
		c, priced := r.Cost()
		if got := c.Sum(); !priced || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: got $%v, want $%v", tt.name, got, tt.want)
		}
		if got := r.Unpriced(); !slices.Equal(got, tt.unpriced) {
			t.Errorf("%s: got %q without a price, want %q", tt.name, got, tt.unpriced)
		}
	}
}

// A request is not priced in part.
func TestRequestWithUnknownPrice(t *testing.T) {
	m, _ := catalog.Default().Lookup("claude-opus-5")
	r := &price.Request{Model: &m, Passes: furl.Passes{{Kind: furl.PassMessage, Usage: furl.Usage{Input: 1}}, {Kind: "advisor_message", Model: "x", Usage: furl.Usage{Input: 1}}},
		Models: func(name string) furl.Model { return furl.Model{ID: name} }, Terms: furl.Terms{Tools: []furl.ToolUses{{Name: "web_search", Uses: 1}}}}
	if c, priced := r.Cost(); priced || c != (price.Cost{}) {
		t.Errorf("got %+v, %v", c, priced)
	}
}
