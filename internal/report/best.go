package report

import "github.com/furlhq/furl/replay"

// Bounds for a recommendation: the policy keeps nearly all identifiers visible,
// and is cheaper by more than rounding.
const (
	worthKeeping = 0.95
	worthTaking  = 0.995
)

// none is the policy that hides nothing. All others are compared with it.
const none = "none"

// Best is the index of the policy to recommend: the cheapest that costs less
// than as recorded, sends only valid requests that fit the window, and keeps at
// least 95% of the identifiers visible. It is -1 if there is none.
func Best(results []replay.Result) int {
	return cheapest(results, worthKeeping)
}

// cheapest is the index of the cheapest policy that sends only valid requests
// and keeps this share of the identifiers visible, or -1.
func cheapest(results []replay.Result, keeping float64) int {
	found := -1
	for i := range results {
		r := &results[i]
		if r.Policy == none || !comparable(r) || *r.CostRatio >= worthTaking || r.Overflows > 0 || r.InvalidRequests > 0 {
			continue
		}
		if kept, ok := fraction(r.ReferencesKept, r.References); ok && kept < keeping {
			continue
		}
		if found < 0 || *r.CostRatio < *results[found].CostRatio {
			found = i
		}
	}
	return found
}

// comparable reports whether the cost of a policy can be compared with that as
// recorded.
func comparable(r *replay.Result) bool {
	return r.CostRatio != nil && finite(*r.CostRatio) && *r.CostRatio >= 0
}

// unsent is the number of requests that do not fit the window.
func unsent(r *replay.Result) int { return r.Overflows + r.Impossible }

// find is the index of a policy's result, or -1.
func find(results []replay.Result, policy string) int {
	for i := range results {
		if results[i].Policy == policy {
			return i
		}
	}
	return -1
}
