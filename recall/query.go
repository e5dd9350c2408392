package recall

import (
	"math/bits"
	"unicode/utf8"
)

// Query is a search text cut into what is looked for.
type Query struct {
	Text  string
	Terms []Term // distinct, in order; From and To are places in Text
	// Names says that the text consists of names alone: then what contains
	// exactly these comes first.
	Names bool

	runs []queryRun
}

// queryRun is one run of a query: its terms are Terms[from:to], or fewer if
// some stood before.
type queryRun struct {
	text  string
	whole int // the term that stands for all of it; -1 if there is none
}

// maxTerms bounds a query; what is behind is not looked for.
const maxTerms = 64

// Parse cuts a search text into terms.
func Parse(text string) Query {
	q := Query{Text: text, Names: true}
	type key struct {
		text string
		name bool
	}
	seen := make(map[key]int)
	known := make(map[string]bool)
	for run, at := range runs(text) {
		if known[run] {
			continue
		}
		known[run] = true
		r := queryRun{text: run, whole: -1}
		words := 0
		full := !eachTerm(run, func(t Term) bool {
			words++
			k := key{t.Text, t.Kind == Name}
			n, ok := seen[k]
			if !ok {
				if n = len(q.Terms); n == maxTerms {
					return false
				}
				seen[k] = n
				t.From, t.To = t.From+at, t.To+at
				q.Terms = append(q.Terms, t)
			}
			if t.To-t.From == len(run) && r.whole < 0 {
				r.whole = n
			}
			return true
		})
		if words > 0 && (r.whole < 0 || q.Terms[r.whole].Kind != Name) {
			q.Names = false
		}
		if full || len(q.runs) == maxTerms {
			break
		}
		q.runs = append(q.runs, r)
	}
	q.Names = q.Names && len(q.runs) > 0
	return q
}

// pieceable reports whether a run is long enough to be looked for inside
// others.
func (r queryRun) pieceable() bool {
	return utf8.RuneCountInString(r.text) >= 3 || len(r.text) > 3
}

// weight is what a match of the term counts for.
func (t *Term) weight() float64 {
	switch {
	case t.Kind == Name:
		return 3
	case t.Kind == Part:
		return 1.2
	case common[t.Text]:
		return 0.3
	}
	return 1
}

// common are the terms that say little, if there are others.
func (q *Query) common() uint64 {
	mask := uint64(0)
	for i := range q.Terms {
		if q.Terms[i].Kind == Word && common[q.Terms[i].Text] {
			mask |= 1 << i
		}
	}
	if bits.OnesCount64(mask) == len(q.Terms) {
		return 0
	}
	return mask
}

// matched gives the pieces of the query that these terms and runs stand for:
// a term that stands in another one matched is not among them.
func (q *Query) matched(terms, runs uint64) []string {
	var out []string
	end := 0
	for i, t := range q.Terms {
		if terms>>i&1 != 0 && t.To > end {
			out = append(out, q.Text[t.From:t.To])
			end = t.To
		}
	}
	for i, r := range q.runs {
		if runs>>i&1 != 0 {
			out = append(out, r.text)
		}
	}
	return out
}
