package furl

// Terms are the terms under which a provider billed a request, in the words of its
// response. The zero value says: the usual ones, or none were reported.
type Terms struct {
	// Speed is "fast" for Anthropic's fast mode, else "".
	Speed string
	// Geo is where the model ran if that was restricted, such as "us"; "": anywhere.
	Geo string
	// Tier is the service tier, such as "batch", "flex" or "priority"; "": the usual one.
	Tier string
	// Tools are the uses of the provider's own tools, by their names, sorted.
	Tools []ToolUses
}

// ToolUses is how often a provider ran one of its own tools for a request.
type ToolUses struct {
	Name string // such as "web_search"
	Uses int
}

// Usual reports whether no terms are known that may change what a request costs.
func (t *Terms) Usual() bool {
	return t.Speed == "" && t.Geo == "" && t.Tier == "" && len(t.Tools) == 0
}

// Billing says how the terms of a request change what it costs. A term without an entry
// has no known price.
type Billing struct {
	// Speed, Geo and Tier are factors of all prices of tokens, by the words of Terms.
	Speed, Geo, Tier map[string]float64
	// Tools are prices in US dollars for 1,000 uses of a tool of the provider.
	Tools map[string]float64
}
