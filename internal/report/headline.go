package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/furlhq/furl/replay"
)

// headline states the outcome in a sentence.
type headline struct {
	// Policy is the subject of the sentence, or "".
	Policy    string
	Before    string // text before its name
	After     string // text after its name
	Sentences []string
	Tiles     []tile
}

// tile is one number of the headline's policy, compared with the recording.
type tile struct{ Name, Value, Compared string }

func newHeadline(totals []replay.Result, best int) headline {
	var h headline
	subject := best
	if best < 0 {
		subject = cheapest(totals, 0)
	}
	everything := find(totals, none)
	fails, where := "", ""
	if everything >= 0 && unsent(&totals[everything]) > 0 {
		r := &totals[everything]
		fails = fmt.Sprintf("As recorded, %s of %s requests do not fit the context window", count(unsent(r)), count(r.Requests))
	}
	switch {
	case len(totals) == 0:
		h.Before = "Nothing was replayed"
	case best >= 0:
		r := &totals[best]
		h.Policy = clean(r.Policy, 40)
		h.After = " would have cut " + inputCost(r) + " by " + saved(r)
		if r.References > 0 {
			h.After += " and kept " + keptOf(r) + " visible"
		}
	case fails != "":
		h.Before, fails = fails, ""
		where = " over the requests that do"
	case subject >= 0:
		h.Before = fmt.Sprintf("No policy would have cut the cost and kept %.0f%% of the reused identifiers visible", 100*worthKeeping)
	case everything < 0 || !slices.ContainsFunc(totals, func(r replay.Result) bool { return r.Policy != none && comparable(&r) }):
		h.Before = "There are no costs to compare"
	default:
		h.Before = "No policy would have cut the cost"
	}
	if fails != "" {
		h.Sentences = append(h.Sentences, fails+".")
	}
	if best < 0 && subject >= 0 {
		r := &totals[subject]
		h.Sentences = append(h.Sentences, fmt.Sprintf("The cheapest policy, %s, would have cut %s by %s%s and kept %s visible.",
			clean(r.Policy, 40), inputCost(r), saved(r), where, keptOf(r)))
	}
	if subject >= 0 && everything >= 0 {
		h.tiles(&totals[subject], &totals[everything])
	}
	return h
}

// keptOf is the share of the identifiers that a policy kept visible.
func keptOf(r *replay.Result) string {
	if r.ReferencesKept == r.References {
		return "all reused identifiers"
	}
	return share(r.ReferencesKept, r.References) + " of the reused identifiers"
}

// inputCost names what a cost ratio compares.
func inputCost(r *replay.Result) string {
	if r.Cost == nil {
		return "the tokens sent"
	}
	return "the input cost"
}

// saved is how much lower the cost is than as recorded.
func saved(r *replay.Result) string {
	p := 100 * (1 - *r.CostRatio)
	if p < 10 {
		return trimmed(p, 1) + "%"
	}
	return fmt.Sprintf("%.0f%%", math.Floor(p+0.5))
}

// tiles compares a policy's numbers with the recording, if as many requests fit
// the window in both.
func (h *headline) tiles(r, all *replay.Result) {
	compared := func(s string) string { return s + " as recorded" }
	if n := unsent(r); n < unsent(all) {
		h.Tiles = append(h.Tiles, tile{"Requests that fit", count(r.Requests - n), compared(count(all.Requests - unsent(all)))})
		compared = func(string) string { return "" }
	}
	if r.Cost != nil && all.Cost != nil {
		h.Tiles = append(h.Tiles, tile{"Total cost", dollars(*r.Cost), compared(dollars(*all.Cost))})
	}
	h.Tiles = append(h.Tiles,
		tile{"Tokens sent", short(float64(r.TokensSent)), compared(short(float64(all.TokensSent)))},
		tile{"Largest prompt", short(float64(r.Peak)), compared(short(float64(all.Peak)))})
	if r.References > 0 {
		h.Tiles = append(h.Tiles, tile{"Identifiers still visible", share(r.ReferencesKept, r.References), count(r.ReferencesKept) + " of " + count(r.References)})
	}
	if r.QuotedLines > 0 {
		h.Tiles = append(h.Tiles, tile{"Quoted lines still visible", share(r.QuotedLinesKept, r.QuotedLines), count(r.QuotedLinesKept) + " of " + count(r.QuotedLines)})
	}
}
