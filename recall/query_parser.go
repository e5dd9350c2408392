package recall

import (
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/lexer"
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
	for run := range runs(text) {
		if known[run.text] {
			continue
		}
		known[run.text] = true
		r := queryRun{text: run.text, whole: -1}
		tokens := 0
		full := !queryTokens(run.text, func(t token) bool {
			tokens++
			n, ok := numbers[t.term()]
			if !ok {
				if n = len(q.terms); n == maxQueryTerms {
					return false
				}
				numbers[t.term()] = n
				whole := t.to-t.from == len(run.text)
				t.from, t.to = run.place(&t)
				q.terms = append(q.terms, t)
				if whole && r.whole < 0 {
					r.whole = n
				}
			} else if t.to-t.from == len(run.text) && r.whole < 0 {
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

// queryTokens returns the tokens of one run of a query. A name with a line number has
// the name without it too.
func queryTokens(run string, yield func(token) bool) bool {
	name := true
	return analyzeRun(run, func(t token) bool {
		if t.extra {
			return true
		}
		if !yield(t) {
			return false
		}
		if name && t.kind == nameToken {
			name = false
			if base := withoutLine(run); base != run && lexer.IsName(base) {
				return yield(token{text: base, kind: nameToken, to: len(base), base: true})
			}
		}
		return true
	})
}

// withoutLine returns a run without the numbers of a line and column at its end:
// render.go:99 is render.go.
func withoutLine(run string) string {
	for {
		rest := strings.TrimRight(run, "0123456789")
		mark := strings.TrimSuffix(strings.TrimSuffix(rest, "#L"), ":")
		if rest == run || mark == rest {
			return run
		}
		run = mark
	}
}

// searchableInside reports whether a run is long enough to be searched for inside
// words and names.
func (r queryRun) searchableInside() bool {
	return utf8.RuneCountInString(r.text) >= 3 || len(r.text) > 3
}

// boost returns the weight of a term of a query before its rarity.
func (t *token) boost() float64 {
	switch {
	case t.base:
		return 2
	case t.kind == nameToken, strings.HasSuffix(t.text, "++"), strings.HasSuffix(t.text, "#"):
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
		if q.terms[i].kind == nameToken && !q.terms[i].base {
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
