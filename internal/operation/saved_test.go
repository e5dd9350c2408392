package operation

import (
	"testing"

	"github.com/furlhq/furl/storage"
)

// What was saved is a range where the two agents without furl differ.
func TestSavedWords(t *testing.T) {
	for want, s := range map[string]storage.Savings{
		"1,000 tokens sent, none saved":                                                                                                       {Tokens: 1000, TokensWithout: 1000},
		"1,000 tokens sent, none saved; list price $2.00":                                                                                     {Tokens: 1000, TokensWithout: 1000, Cost: 2, CostWithout: 2},
		"1,000 tokens sent instead of 4,000 (75% less); list price $2.00 instead of $4.00 (50% less)":                                         {Tokens: 1000, TokensWithout: 4000, Cost: 2, CostWithout: 4},
		"1,000 tokens sent instead of 2,000 to 4,000 (50% to 75% less); list price $3.00 instead of $4.00 to $6.00 (25% to 50% less)":         {Tokens: 1000, TokensWithout: 2000, TokensSpread: 2000, Cost: 2, SummaryCost: 1, CostWithout: 4, CostSpread: 2},
		"1,000 tokens sent instead of 800 to 2,000 (25% more to 50% less); list price $3.00 instead of $2.00 to $4.00 (50% more to 25% less)": {Tokens: 1000, TokensWithout: 800, TokensSpread: 1200, Cost: 3, CostWithout: 4, CostSpread: -2},
		"1,000 tokens sent instead of 1,000 to 2,000 (50% less)":                                                                              {Tokens: 1000, TokensWithout: 1000, TokensSpread: 1000},
	} {
		if got := SavedWords(s); got != want {
			t.Errorf("%+v: got\n%s\nwant\n%s", s, got, want)
		}
	}
	if got := OverWords(storage.Savings{OverWindow: 1}); got != "With everything in their prompts, 1 request would not have fit the context window. An agent without furl is assumed to compact, or to keep its prompts at the window." {
		t.Error(got)
	}
	if got := OverWords(storage.Savings{}); got != "" {
		t.Error(got)
	}
}
