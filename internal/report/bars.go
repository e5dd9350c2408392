package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/furlhq/furl/replay"
)

// bars are the costs of all policies, lowest first.
type bars struct {
	Rows    []bar
	Classes []class
	// Tokens is set if no price is known: bars then show tokens.
	Tokens bool
	// Idle are the policies that changed no request.
	Idle []string
}

// class is one part of a cost.
type class struct{ Class, Name, About string }

var classes = []class{
	{"read", "cache read", "prompt tokens read from the cache"},
	{"write", "cache write", "prompt tokens written to the cache"},
	{"fresh", "uncached input", "prompt tokens that were not cached"},
	{"output", "output", "the replies, the same for every policy"},
	{"own", "own calls", "the policy's own model calls"},
	{"agent", "agent's compactions", "summaries that the agent itself had a model write; estimated where it did not record them"},
	{"over", "over the window", "requests that the provider would have refused as too long, at list price"},
}

type bar struct {
	Key      key
	Best     bool
	Segments []segment
	Total    string
	Against  string // cost as a multiple of that as recorded
	Unsent   string
	// Low and High are where the interval of the cost is, Range what it is; "" if there is none.
	Low, High, Range string
	total            float64
	low, high        float64
}

type segment struct {
	Class, X, Width, Middle, Label, Title string
}

func newBars(results []replay.Result, keys map[string]key, best string) bars {
	b := bars{Tokens: true}
	for i := range results {
		b.Tokens = b.Tokens && results[i].Cost == nil
	}
	used := make(map[string]bool)
	top := 0.0
	var parts [][]float64
	for i := range results {
		r := &results[i]
		row := bar{Key: keys[r.Policy], Best: r.Policy == best}
		if comparable(r) && r.Policy != none {
			row.Against = ratio(r.CostShare) + "×"
		}
		if n := r.Unsent(); n > 0 {
			row.Unsent = counted(n, "request") + " over the window"
		}
		amounts := []float64{r.Split.CacheRead, r.Split.CacheWrite, r.Split.Fresh, r.Split.Output, r.Split.Own, r.Split.Compactions, r.OverflowCost}
		if b.Tokens {
			amounts = []float64{0, 0, float64(r.TokensSent), 0, 0, 0, 0}
		}
		for j, a := range amounts {
			if !finite(a) || a < 0 || a > most {
				amounts[j] = 0
			}
			row.total += amounts[j]
			used[classes[j].Class] = used[classes[j].Class] || amounts[j] > 0
		}
		row.Total = b.amount(row.total)
		if billed := r.Recorded(); r.Label() == "billed" && billed != nil && r.Unrecorded >= 0.005 {
			row.Total, row.Against = b.amount(*billed), "+ "+b.amount(r.Unrecorded)
		}
		if interval := interval(r); interval != "–" && !b.Tokens {
			row.low, row.high, row.Range = *r.CostLow+r.OverflowCost, *r.CostHigh+r.OverflowCost, row.Key.Name+": between "+interval
		}
		top = max(top, row.total, row.high)
		b.Rows = append(b.Rows, row)
		parts = append(parts, amounts)
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		row.Segments = b.segments(row, parts[i], top)
		if row.Range != "" {
			row.Low, row.High = percent(row.low/top), percent(row.high/top)
		}
	}
	slices.SortStableFunc(b.Rows, func(x, y bar) int { return cmp.Compare(x.total, y.total) })
	for _, c := range classes {
		if used[c.Class] && !b.Tokens {
			b.Classes = append(b.Classes, c)
		}
	}
	return b
}

func (b *bars) amount(x float64) string {
	if b.Tokens {
		return short(x) + " tokens"
	}
	return dollars(x)
}

func (b *bars) segments(row *bar, amounts []float64, top float64) []segment {
	var out []segment
	from := 0.0
	for i, a := range amounts {
		if a <= 0 || top <= 0 {
			continue
		}
		s := segment{Class: classes[i].Class, X: percent(from / top), Width: percent(a / top), Middle: percent((from + a/2) / top)}
		s.Title = fmt.Sprintf("%s: %s %s, %s of its cost", row.Key.Name, classes[i].Name, b.amount(a), share(int(1000*a/row.total), 1000))
		if b.Tokens {
			s.Title = fmt.Sprintf("%s: %s sent", row.Key.Name, b.amount(a))
		}
		if a/top > 0.13 {
			s.Label = b.amount(a)
		}
		from += a
		out = append(out, s)
	}
	return out
}
