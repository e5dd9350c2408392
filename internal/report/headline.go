package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/furlhq/furl/replay"
)

// headline is the outcome in plain words.
type headline struct {
	// Policy is the one that the sentence is about, "" for none.
	Policy    string
	Before    string // what comes before its name
	After     string // and behind it
	Sentences []string
	Tiles     []tile
}

// tile is one number about the headline's policy, against sending everything.
type tile struct{ Name, Value, Against string }

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
		fails = fmt.Sprintf("Sending everything would have failed on %s of %s requests, which do not fit the window", count(unsent(r)), count(r.Requests))
	}
	switch {
	case len(totals) == 0:
		h.Before = "Nothing was replayed"
	case best >= 0:
		r := &totals[best]
		h.Policy = clean(r.Policy, 40)
		h.After = " would have cut " + inputBill(r) + " by " + saved(r)
		if r.References > 0 {
			h.After += " and kept " + keptOf(r) + " the agent used again"
		}
	case fails != "":
		h.Before, fails = fails, ""
		where = " on those that do"
	case subject >= 0:
		h.Before = fmt.Sprintf("No policy is cheaper than sending everything and keeps %.0f%% of the names the agent used again", 100*worthKeeping)
	case everything < 0 || !slices.ContainsFunc(totals, func(r replay.Result) bool { return r.Policy != none && comparable(&r) }):
		h.Before = "There is nothing to compare costs with"
	default:
		h.Before = "No policy would have been cheaper than sending everything"
	}
	if fails != "" {
		h.Sentences = append(h.Sentences, fails+".")
	}
	if best < 0 && subject >= 0 {
		r := &totals[subject]
		h.Sentences = append(h.Sentences, fmt.Sprintf("The cheapest policy, %s, would have cut %s by %s%s and kept %s the agent used again.",
			clean(r.Policy, 40), inputBill(r), saved(r), where, keptOf(r)))
	}
	if subject >= 0 && everything >= 0 {
		h.tiles(&totals[subject], &totals[everything])
	}
	return h
}

// keptOf says how many of the names a policy kept.
func keptOf(r *replay.Result) string {
	if r.ReferencesKept == r.References {
		return "all names"
	}
	return share(r.ReferencesKept, r.References) + " of the names"
}

// inputBill is what a cost ratio is of.
func inputBill(r *replay.Result) string {
	if r.Cost == nil {
		return "the tokens sent"
	}
	return "the bill for input"
}

// saved is how much lower a cost is than that of sending everything.
func saved(r *replay.Result) string {
	p := 100 * (1 - *r.CostRatio)
	if p < 10 {
		return trimmed(p, 1) + "%"
	}
	return fmt.Sprintf("%.0f%%", math.Floor(p+0.5))
}

// tiles sets a policy's numbers beside those of sending everything, where that
// could send as many requests.
func (h *headline) tiles(r, all *replay.Result) {
	against := func(s string) string { return "instead of " + s }
	if n := unsent(r); n < unsent(all) {
		against = func(string) string { return "" }
		h.Tiles = append(h.Tiles, tile{"Requests sent", count(r.Requests - n), "instead of " + count(all.Requests-unsent(all))})
	}
	if r.Cost != nil && all.Cost != nil {
		h.Tiles = append(h.Tiles, tile{"Whole bill", dollars(*r.Cost), against(dollars(*all.Cost))})
	}
	h.Tiles = append(h.Tiles,
		tile{"Tokens sent", short(float64(r.TokensSent)), against(short(float64(all.TokensSent)))},
		tile{"Largest prompt", short(float64(r.Peak)), against(short(float64(all.Peak)))})
	if r.References > 0 {
		h.Tiles = append(h.Tiles, tile{"Names kept", share(r.ReferencesKept, r.References), count(r.ReferencesKept) + " of " + count(r.References)})
	}
	if r.QuotedLines > 0 {
		h.Tiles = append(h.Tiles, tile{"Quoted lines kept", share(r.QuotedLinesKept, r.QuotedLines), count(r.QuotedLinesKept) + " of " + count(r.QuotedLines)})
	}
}
