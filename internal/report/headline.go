package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/furlhq/furl/internal/numbers"
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
	Part      bool // of a page that has a heading of its own
}

// tile is one number of the headline's policy, compared with the recording.
type tile struct{ Name, Value, Compared string }

// newHeadline is about the policy with this index: one that fits the wish, or else
// the closest; -1 if there is none.
func newHeadline(totals []replay.Result, subject int, fits bool, wish replay.Wish) headline {
	var h headline
	everything := find(totals, none)
	fails := ""
	if everything >= 0 && totals[everything].Unsent() > 0 {
		r := &totals[everything]
		fails = fmt.Sprintf("As recorded, %s of %s requests do not fit the context window", count(r.Unsent()), count(r.Requests))
	}
	switch {
	case len(totals) == 0:
		h.Before = "Nothing was replayed"
	case fits:
		r := &totals[subject]
		h.Policy = clean(r.Policy, 40)
		h.After = " would have " + changed(r)
		if fails != "" { // they have no price to compare with
			h.After = fmt.Sprintf(" would have fit %s into the context window", counted(r.Requests-r.Unsent(), "request"))
		}
		if r.References > 0 {
			h.After += " and kept " + keptOf(r) + " visible"
		}
	case fails != "" && subject >= 0:
		h.Before, fails = fails, fmt.Sprintf("No policy that costs less than as recorded %s", wish)
	case fails != "":
		h.Before, fails = fails, ""
	case subject >= 0:
		h.Before = fmt.Sprintf("No policy that costs less than as recorded %s", wish)
	case everything < 0 || !slices.ContainsFunc(totals, func(r replay.Result) bool { return r.Policy != none && comparable(&r) }):
		h.Before = "There are no costs to compare"
	default:
		h.Before = "No policy would have cut the cost"
	}
	if fails != "" {
		h.Sentences = append(h.Sentences, fails+".")
	}
	if !fits && subject >= 0 {
		r := &totals[subject]
		who := "The closest, " + clean(r.Policy, 40)
		if r.Edits > 0 && wish.Cost == 0 {
			who = fmt.Sprintf("The one with the fewest blind edits (%s), %s", share(r.BlindEdits, r.Edits), clean(r.Policy, 40))
		}
		what := changed(r)
		if everything >= 0 && totals[everything].Unsent() > 0 {
			what = fmt.Sprintf("fit %s into the context window", counted(r.Requests-r.Unsent(), "request"))
		}
		h.Sentences = append(h.Sentences, fmt.Sprintf("None is recommended. %s, would have %s and kept %s visible.", who, what, keptOf(r)))
	}
	if subject >= 0 && everything >= 0 {
		h.tiles(&totals[subject], &totals[everything])
	}
	return h
}

// Outcome says what a policy would have changed, compared with the result of policy none, if that is
// not nil: the cost and what stayed visible.
func Outcome(r, asRecorded *replay.Result) string {
	text := ""
	switch {
	case asRecorded != nil && asRecorded.Unsent() > r.Unsent(): // what does not fit has no price to compare with
		text = fmt.Sprintf("Would have fit %s more into the context window", counted(asRecorded.Unsent()-r.Unsent(), "request"))
	case !comparable(r):
		return "Its cost cannot be compared."
	default:
		text = "Would have " + changed(r)
	}
	if comparable(r) && math.Abs(*r.CostShare-1) < 0.0005 {
		text = "Would have cost the same"
	}
	if r.References > 0 {
		text += " and kept " + keptOf(r) + " visible"
	}
	if n := r.Unsent(); n > 0 {
		text += fmt.Sprintf("; %s would not have fit the context window", counted(n, "request"))
	}
	return text + "."
}

// keptOf is the share of the identifiers that a policy kept visible.
func keptOf(r *replay.Result) string {
	if r.ReferencesKept == r.References {
		return "all reused identifiers"
	}
	return share(r.ReferencesKept, r.References) + " of the reused identifiers"
}

// changed says how a policy changes the cost, or the tokens if no price is known.
func changed(r *replay.Result) string {
	what := "the cost"
	if r.Cost == nil {
		what = "the tokens sent"
	}
	if *r.CostShare > 1 {
		return "raised " + what + " by " + percentOf(*r.CostShare-1)
	}
	return "cut " + what + " by " + percentOf(1-*r.CostShare)
}

// percentOf writes a share as a percentage, with a decimal if it is small.
func percentOf(share float64) string {
	p := 100 * share
	if p < 10 {
		return trimmed(p, 1) + "%"
	}
	return fmt.Sprintf("%.0f%%", math.Floor(p+0.5))
}

// tiles compares a policy's numbers with the recording: tokens only if as many
// requests fit the window in both.
func (h *headline) tiles(r, all *replay.Result) {
	compared := func(s string) string { return s + " as recorded" }
	if mine, recorded := r.Total(), all.Total(); mine != nil && recorded != nil {
		what := dollars(*recorded) + " " + all.Label()
		if all.Label() == "billed" && all.Unrecorded >= 0.005 {
			what = fmt.Sprintf("%s billed and %s of compactions", dollars(*all.Recorded()), dollars(all.Unrecorded))
		}
		if interval := interval(r); interval != "–" {
			what = fmt.Sprintf("%s; %s", interval, what)
		}
		h.Tiles = append(h.Tiles, tile{"Total cost", dollars(*mine), what})
	}
	if n := r.Unsent(); n < all.Unsent() {
		h.Tiles = append(h.Tiles, tile{"Requests that fit", count(r.Requests - n), compared(count(all.Requests - all.Unsent()))})
		compared = func(string) string { return "" }
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
	if r.Edits > 0 || r.EditsNotMeasured > 0 {
		what := count(r.BlindEdits) + " of " + count(r.Edits)
		if r.EditsNotMeasured > 0 {
			what += fmt.Sprintf("; edits not measured in %s", numbers.Count(r.EditsNotMeasured, "request"))
		}
		h.Tiles = append(h.Tiles, tile{"Blind edits", share(r.BlindEdits, r.Edits), what})
	}
}
