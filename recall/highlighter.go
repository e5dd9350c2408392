package recall

import (
	"strings"
	"unicode/utf8"
)

// excerpt returns the piece text[from:to] of at most limit bytes that has as many
// different terms of a query as possible, with "…" where text is cut off. It
// begins and ends between words, and between lines if that costs little. Without
// a match it is the beginning of the text.
func excerpt(text string, q *query, limit int) (excerpt string, from, to int) {
	if len(text) <= limit {
		return text, 0, len(text)
	}
	from, to = widen(text, bestSpan(text, q, limit), limit)
	if from == to {
		return "", from, to
	}
	excerpt = text[from:to]
	if from > 0 {
		excerpt = "…" + excerpt
	}
	if to < len(text) {
		excerpt += "…"
	}
	return excerpt, from, to
}

type span struct{ from, to int }

// match is a place of a term of the query in a text.
type match struct {
	span
	term int
}

// bestSpan returns the shortest span of at most limit bytes with the highest
// weight of distinct terms; the first of several. It is longer if a single match
// is, and empty without a match.
func bestSpan(text string, q *query, limit int) span {
	matches := findTerms(text, q)
	if len(matches) == 0 {
		return findInfix(text, q)
	}
	best, bestWeight, weight := span{}, 0.0, 0.0
	counts := make([]int, len(q.terms)) // in the window matches[first:n+1]
	first, end := 0, 0
	for n, m := range matches {
		end = max(end, m.to) // a name ends after its parts
		if counts[m.term]++; counts[m.term] == 1 {
			weight += q.terms[m.term].boost()
		}
		// Drop matches that are too far away or occur again.
		for ; first < n; first++ {
			f := matches[first]
			if end-f.from <= limit && counts[f.term] == 1 {
				break
			}
			if counts[f.term]--; counts[f.term] == 0 {
				weight -= q.terms[f.term].boost()
			}
		}
		at := span{matches[first].from, end}
		if weight > bestWeight+slack || weight > bestWeight-slack && at.to-at.from < best.to-best.from {
			best, bestWeight = at, weight
		}
	}
	return best
}

// slack is the rounding error of equal sums of weights.
const slack = 1e-9

// findTerms returns the places of the query's terms in a text, in order.
func findTerms(text string, q *query) []match {
	numbers := make(map[term]int, len(q.terms))
	for i := range q.terms {
		numbers[q.terms[i].term()] = i
	}
	var matches []match
	for t := range analyze(text) {
		if i, ok := numbers[t.term()]; ok {
			matches = append(matches, match{span{t.from, t.to}, i})
		}
	}
	return matches
}

// findInfix returns the first run of a text that contains a run of the query.
func findInfix(text string, q *query) span {
	for _, r := range q.runs {
		if !r.searchableInside() {
			continue
		}
		want := lower(r.text)
		for run := range runs(text) {
			if strings.Contains(lower(run.text), want) {
				return span{run.from, run.to}
			}
		}
	}
	return span{}
}

// widen extends a span to limit bytes, a third of the free space before it, or
// shortens it, and moves the ends to the ends of words or lines.
func widen(text string, at span, limit int) (from, to int) {
	limit = max(limit, 0)
	if at.to-at.from > limit {
		from = nextRune(text, at.from)
		return from, max(from, runeStart(text, at.from+limit))
	}
	free := limit - (at.to - at.from)
	from = max(at.from-free/3, 0)
	to = min(from+limit, len(text))
	from = max(to-limit, 0)
	if from > 0 {
		from = startBetween(text, from, at.from)
		to = min(from+limit, len(text))
	}
	if to < len(text) {
		to = endBetween(text, max(at.to, from), to)
	}
	return from, to
}

// startBetween returns a good start of an excerpt between from and a match.
func startBetween(text string, from, match int) int {
	gap := text[from:match]
	if i := strings.IndexByte(gap, '\n'); i >= 0 && i < len(gap)/2 {
		return from + i + 1
	}
	if i := strings.IndexAny(gap, " \t\n"); i >= 0 {
		return from + i + 1
	}
	return min(nextRune(text, from), match)
}

// endBetween returns a good end of an excerpt between a match and to.
func endBetween(text string, match, to int) int {
	gap := text[match:to]
	if i := strings.LastIndexByte(gap, '\n'); i > len(gap)/2 {
		return match + i
	}
	if i := strings.LastIndexAny(gap, " \t\n"); i > 0 {
		return match + i
	}
	return max(runeStart(text, to), match)
}

// runeStart returns i, or the start of the character that i is inside of.
func runeStart(text string, i int) int {
	for n := 0; n < utf8.UTFMax-1 && i > 0 && i < len(text) && !utf8.RuneStart(text[i]); n++ {
		i--
	}
	return i
}

// nextRune returns i, or the end of the character that i is inside of.
func nextRune(text string, i int) int {
	for n := 0; n < utf8.UTFMax-1 && i > 0 && i < len(text) && !utf8.RuneStart(text[i]); n++ {
		i++
	}
	return i
}
