package report

import "github.com/furlhq/furl/replay"

// Bounds of advice: a policy worth taking keeps nearly all names, and is
// cheaper by more than rounding.
const (
	worthKeeping = 0.95
	worthTaking  = 0.995
)

// none is the policy that sends everything, which all are compared with.
const none = "none"

// Best is the index of the policy to recommend: the cheapest of those that cost
// less than sending everything, send only requests the provider takes, and keep
// at least 95 of 100 names. It is -1 if there is none.
func Best(results []replay.Result) int {
	return cheapest(results, worthKeeping)
}

// cheapest is the index of the cheapest sound policy that keeps that share of
// the names, or -1.
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

// comparable reports whether the cost of a policy could be set against that of
// sending everything.
func comparable(r *replay.Result) bool {
	return r.CostRatio != nil && finite(*r.CostRatio) && *r.CostRatio >= 0
}

// unsent is how many requests were too large to be sent.
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
