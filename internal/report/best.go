package report

import "github.com/furlhq/furl/replay"

// none is the policy that hides nothing. All others are compared with it.
const none = "none"

// comparable reports whether the cost of a policy can be compared with that as
// recorded.
func comparable(r *replay.Result) bool {
	return r.CostShare != nil && finite(*r.CostShare) && *r.CostShare >= 0
}

// find is the index of a policy's result, or -1.
func find(results []replay.Result, policy string) int {
	for i := range results {
		if results[i].Policy == policy {
			return i
		}
	}
	return -1
}
