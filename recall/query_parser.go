package recall

import (
	"math/bits"
	"unicode/utf8"
)

// query is a parsed search text. Sets of its terms and runs are bit masks.
type query struct {
	terms []token // distinct, in order; from and to are offsets in text
	text  string
	// namesOnly says that the text consists of names. Then the blocks with
	// most of them come first.
	namesOnly bool
	runs      []queryRun // distinct, in order
}

// queryRun is a run of a query.
type queryRun struct {
	text  string
	whole int // the term that is the whole run; -1: none
}

// maxQueryTerms limits the terms of a query. The rest of the text is ignored.
const maxQueryTerms = 64

// parseQuery analyzes a search text.
func parseQuery(text string) query {
	q := query{text: text, namesOnly: true}
	numbers := make(map[term]int)
	known := make(map[string]bool)
	for run, at := range runs(text) {
		if known[run] {
			continue
		}
		known[run] = true
		r := queryRun{text: run, whole: -1}
		tokens := 0
		full := !analyzeRun(run, func(t token) bool {
			tokens++
			n, ok := numbers[t.term()]
			if !ok {
				if n = len(q.terms); n == maxQueryTerms {
					return false
				}
				numbers[t.term()] = n
				t.from, t.to = t.from+at, t.to+at
				q.terms = append(q.terms, t)
			}
			if t.to-t.from == len(run) && r.whole < 0 {
				r.whole = n
			}
			return true
		})
		if tokens > 0 && (r.whole < 0 || q.terms[r.whole].kind != nameToken) {
			q.namesOnly = false
		}
		if full || len(q.runs) == maxQueryTerms {
			break
		}
		q.runs = append(q.runs, r)
	}
	q.namesOnly = q.namesOnly && len(q.runs) > 0
	return q
}

// searchableInside reports whether a run is long enough to be searched for inside
// words and names.
func (r queryRun) searchableInside() bool {
	return utf8.RuneCountInString(r.text) >= 3 || len(r.text) > 3
}

// boost returns the weight of a term of a query before its rarity.
func (t *token) boost() float64 {
	switch {
	case t.kind == nameToken:
		return 3
	case t.kind == partToken:
		return 1.2
	case stopWords[t.text]:
		return 0.3
	}
	return 1
}

// names returns the terms that are names.
func (q *query) names() uint64 {
	mask := uint64(0)
	for i := range q.terms {
		if q.terms[i].kind == nameToken {
			mask |= 1 << i
		}
	}
	return mask
}

// stopWords returns the terms that are stop words, unless all are.
func (q *query) stopWords() uint64 {
	mask := uint64(0)
	for i := range q.terms {
		if q.terms[i].kind == wordToken && stopWords[q.terms[i].text] {
			mask |= 1 << i
		}
	}
	if bits.OnesCount64(mask) == len(q.terms) {
		return 0
	}
	return mask
}

// matched returns the pieces of the query's text for a set of terms and a set of
// runs. It leaves out terms inside of other terms of the set.
func (q *query) matched(terms, runs uint64) []string {
	var out []string
	end := 0
	for i, t := range q.terms {
		if terms>>i&1 != 0 && t.to > end {
			out = append(out, q.text[t.from:t.to])
			end = t.to
		}
	}
	for i, r := range q.runs {
		if runs>>i&1 != 0 {
			out = append(out, r.text)
		}
	}
	return out
}
